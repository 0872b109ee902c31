"""Finds backends by name: entry points of the installed distribution, or this checkout's list.

`gdsl` never imports `backends`; it loads the object that a "module:attribute" string names, when it
is first asked for. The object is the backend: a Runner, Simulator, Emitter or Profiler.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gdsl.errors import BackendUnavailable
from gdsl.suggest import did_you_mean

if TYPE_CHECKING:
    from gdsl.emitter import Emitter
    from gdsl.profiler import Profiler
    from gdsl.runner import Runner
    from gdsl.simulator import Simulator

GROUP = "gdsl.backends"


@cache
def backend_specs() -> Mapping[str, str]:
    """Return {name: "module:attribute"} for every known backend, sorted by name.

    A `pyproject.toml` of gdsl beside the package wins over installed metadata, which an editable
    install does not refresh.
    """
    specs = {point.name: point.value for point in entry_points(group=GROUP)}
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    if pyproject.is_file():
        project = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == "gdsl":
            specs |= project.get("entry-points", {}).get(GROUP, {})
    return dict(sorted(specs.items()))


def load_backend(name: str) -> Any:
    """Return the object that backend `name` announces. Raises BackendUnavailable."""
    spec = backend_specs().get(name)
    if spec is None:
        raise BackendUnavailable(
            f"there is no backend `{name}`{did_you_mean(name, backend_specs())}; "
            f"known: {', '.join(backend_specs()) or 'none'}; "
            "a backend is announced by the entry-point group `gdsl.backends`"
        )
    module, _, attribute = spec.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        missing = error.name or module
        raise BackendUnavailable(
            f"backend `{name}` cannot be imported: {error}; {_what_to_type(missing)}"
        ) from error
    except AttributeError as error:
        raise BackendUnavailable(
            f"backend `{name}` is announced as `{spec}`, but module `{module}` has no "
            f"`{attribute}`; reinstall with `pip install --force-reinstall gdsl`"
        ) from error


def _what_to_type(module: str) -> str:
    top = module.partition(".")[0]
    if top in ("backends", "gdsl", "kernels_dsl"):
        return "reinstall with `pip install --force-reinstall gdsl`"
    return f"install the package that provides `{top}`, for example `pip install {top}`"


def interpreter() -> Runner:
    """The definition of the language. Raises BackendUnavailable."""
    return cast("Runner", load_backend("interpreter"))


def simulator() -> Simulator:
    """The numpy machine that runs NKI text. Raises BackendUnavailable."""
    return cast("Simulator", load_backend("simulator"))


def emitter() -> Emitter:
    """What writes NKI text. Raises BackendUnavailable."""
    return cast("Emitter", load_backend("nki"))


def profiler() -> Profiler:
    """What estimates time from a trace. Raises BackendUnavailable."""
    return cast("Profiler", load_backend("cost"))
