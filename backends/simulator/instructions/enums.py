"""The enumerations of `nki.isa` as classes. Kernels pass members; integers are not accepted."""

from __future__ import annotations

from enum import Enum

from backends.isa import instructions

ENUMS: dict[str, type[Enum]] = {
    name: Enum(name, members)  # type: ignore[misc]
    for name, members in instructions.ENUMERATIONS.items()
}
ENGINE_ALIASES: dict[str, Enum] = {
    alias: ENUMS["engine"][member] for alias, member in instructions.ENGINE_ALIASES.items()
}
