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


class _Module(ModuleType):
    """A module that explains what it does not have."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        instead = _INSTEAD.get(f"{_PREFIXES.get(self.__name__)}.{name}")
        if instead is None:
            close = get_close_matches(name, vars(self), 1)
            instead = f"did you mean `{close[0]}`?" if close else None
        raise MissingName("S107", f"`{self.__name__}` has no `{name}`", help=instead)


def namespace(name: str, contents: Mapping[str, Any]) -> ModuleType:
    """Return a module object `name` with `contents`."""
    module = _Module(name)
    vars(module).update(contents)
    return module
