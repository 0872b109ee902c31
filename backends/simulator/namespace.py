"""Module objects made from names; a missing name is a fault that is also an AttributeError."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from backends.isa.versions import CHANGES
from backends.simulator.faults import MissingName

_PREFIXES = {"nki.language": "nl", "nki.isa": "nisa"}
_INSTEAD = {
    change.name: change.rule
    for change in CHANGES
    if change.where == "call" and change.removed is not None
}


def namespace(name: str, contents: Mapping[str, Any]) -> ModuleType:
    """Return a module object `name` with `contents`, which explains what it does not have."""
    module = ModuleType(name)

    def missing(wanted: str) -> Any:
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        instead = _INSTEAD.get(f"{_PREFIXES.get(name)}.{wanted}")
        if instead is None:
            close = get_close_matches(wanted, vars(module), 1)
            instead = f"did you mean `{close[0]}`?" if close else None
        raise MissingName("S107", f"`{name}` has no `{wanted}`", help=instead)

    # A function in the module rather than a class of its own: Python looks names up in plain
    # modules several times faster.
    vars(module).update(contents, __getattr__=missing)
    return module
