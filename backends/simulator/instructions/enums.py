"""The enumerations of `nki.isa` as classes. Kernels pass members; integers are not accepted."""

from __future__ import annotations

from enum import Enum, IntEnum

from backends.isa import instructions

ENUMS: dict[str, type[Enum]] = {
    # Generations are compared (`get_nc_version() <= nisa.nc_version.gen3`); nothing else is.
    name: (IntEnum if name == "nc_version" else Enum)(name, members)  # type: ignore[arg-type]
    for name, members in instructions.ENUMERATIONS.items()
}
ENGINE_ALIASES: dict[str, Enum] = {
    alias: ENUMS["engine"][member] for alias, member in instructions.ENGINE_ALIASES.items()
}
