"""`gdsl doctor`: what is installed, what can run, and what to type for what cannot."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from typing import Literal

from attrs import asdict, frozen

from gdsl import registry
from gdsl.errors import BackendUnavailable
from gdsl.library import library_kernels
from gdsl.options import TARGETS, VARIABLES, default_target
from gdsl.version import __version__

DESCRIPTION = """\
Say what is installed and what can run, one line each; `wrong` lines make the exit code 1."""

State = Literal["ok", "missing", "wrong"]
_CORE = ("numpy", "attrs", "lark", "ml_dtypes")
_EXTRAS: dict[str, str] = {
    "rich": "gdsl[cli]",
    "matplotlib": "gdsl[plot]",
    "torch": "gdsl[oracle]",
    "transformers": "gdsl[oracle]",
}


@frozen
class Line:
    """One thing that was looked at."""

    what: str
    state: State
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    """Look at everything and print it."""
    lines = list(look())
    wrong = any(line.state == "wrong" for line in lines)
    if args.json:
        document = {"schema": 1, "gdsl": __version__, "ok": not wrong}
        print(json.dumps(document | {"lines": [asdict(line) for line in lines]}, indent=2))
    else:
        width = max(len(line.what) for line in lines)
        for line in lines:
            print(f"{line.state:<7}  {line.what:<{width}}  {line.detail}".rstrip())
    return 1 if wrong else 0


def look() -> Iterator[Line]:
    """Yield one line per thing."""
    yield Line("gdsl", "ok", f"{__version__}, Python {platform.python_version()}")
    for package in _CORE:
        yield _package(package, f"pip install {package}", "wrong")
    for package, extra in _EXTRAS.items():
        yield _package(package, f"optional: pip install '{extra}'", "missing")
    yield _toolchain()
    for name in registry.backend_specs():
        yield _backend(name)
    yield from _top_level_names()
    yield Line("library", "ok", f"{len(library_kernels())} kernels")
    yield _target()
    for variable in VARIABLES:
        value = variable.value
        yield Line(variable.name, "ok", f"{value or 'not set'}: {variable.doc}")
    yield Line("terminal", "ok", f"stdout is {'a terminal' if sys.stdout.isatty() else 'a pipe'}")


def _package(name: str, hint: str, without: State) -> Line:
    try:
        return Line(name, "ok", version(name))
    except PackageNotFoundError:
        return Line(name, without, hint)


def _toolchain() -> Line:
    """The vendor's NKI package; the public index holds a placeholder of the same name."""
    if find_spec("nki") is None:
        return Line(
            "nki", "missing", "optional: the vendor's toolchain, `gdsl[neuron]` from its own index"
        )
    try:
        found = find_spec("nki.isa") is not None
    except ImportError:
        found = False
    if not found:
        return Line("nki", "wrong", "a placeholder package; pip uninstall nki")
    return Line("nki", "ok", version("nki"))


def _backend(name: str) -> Line:
    try:
        backend = registry.load_backend(name)
    except BackendUnavailable as error:
        return Line(f"backend {name}", "wrong", str(error))
    refused: tuple[str, ...] = getattr(backend, "not_simulated", tuple)()
    detail = registry.backend_specs()[name]
    if refused:
        detail += f"; not simulated: {', '.join(refused)}"
    return Line(f"backend {name}", "ok", detail)


def _top_level_names() -> Iterator[Line]:
    """`backends` is a common name: say so when another distribution holds it too."""
    owners = packages_distributions()
    for name in ("gdsl", "backends", "kernels_dsl"):
        others = sorted(set(owners.get(name, ())) - {"gdsl"})
        if others:
            yield Line(
                f"package {name}",
                "wrong",
                f"also installed by {', '.join(others)}; pip uninstall one of them",
            )


def _target() -> Line:
    name = default_target()
    if name in TARGETS:
        return Line("target", "ok", f"{name} unless -t says otherwise")
    return Line("target", "wrong", f"`{name}` is not one of {', '.join(TARGETS)}")
