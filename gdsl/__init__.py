"""gdsl: declare a delta-rule recurrence once, compile it to NKI, verify it in numpy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gdsl.version import __version__ as __version__

if TYPE_CHECKING:
    from gdsl.api import (
        Definition,
        Program,
        check,
        compile,
        load,
        loads,
        random_inputs,
        run,
        simulate,
        verify,
    )
    from gdsl.arrays import load_npz, save_npz
    from gdsl.errors import GdslError

__all__ = [
    "Definition",
    "GdslError",
    "Program",
    "check",
    "compile",
    "load",
    "load_npz",
    "loads",
    "random_inputs",
    "run",
    "save_npz",
    "simulate",
    "verify",
]

_ELSEWHERE = {
    "GdslError": "gdsl.errors",
    "load_npz": "gdsl.arrays",
    "save_npz": "gdsl.arrays",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `gdsl --help` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module `gdsl` has no attribute `{name}`")
    value = getattr(import_module(_ELSEWHERE.get(name, "gdsl.api")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
