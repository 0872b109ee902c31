"""The enumerations of `nki.isa` as classes. Kernels pass members; integers are not accepted."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

from backends.isa import instructions

_ORDERED = frozenset({"nc_version"})
"""Generations are compared (`get_nc_version() <= nisa.nc_version.gen3`); nothing else is."""


def _enumeration(name: str, members: dict[str, int]) -> type[Enum]:
    kind: Any = IntEnum if name in _ORDERED else Enum
    made: type[Enum] = kind(name, members)
    if kind is Enum:
        # Members are single objects; the hash of `Enum` goes by the name and takes much longer.
        made.__hash__ = object.__hash__  # type: ignore[method-assign]
    return made


ENUMS: dict[str, type[Enum]] = {
    name: _enumeration(name, members) for name, members in instructions.ENUMERATIONS.items()
}
ENGINE_ALIASES: dict[str, Enum] = {
    alias: ENUMS["engine"][member] for alias, member in instructions.ENGINE_ALIASES.items()
}
