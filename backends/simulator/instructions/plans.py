"""Checked calls that can be used again: same instruction, same layouts, same constants.

Kernels issue the same few calls many thousand times. What the rules look at is part of the key, so
a call whose key is known needs no checking, only its tiles put in place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from backends.isa.schema import Engine, Instruction
from backends.isa.trace import Attribute
from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.enums import ENUMS
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion, OpToken

if TYPE_CHECKING:
    from backends.simulator.machine import Machine

Key = tuple[Hashable, ...]
Place = int | str
"""The position or the keyword of an argument."""
_SBUF, _PSUM, _SHARED = MemoryRegion.sbuf, MemoryRegion.psum, MemoryRegion.shared_hbm


@frozen(eq=False)
class Plan:
    """A call that passed every rule."""

    row: Instruction
    engine: Engine
    values: Mapping[str, Any]
    """Converted arguments; those of tiles are replaced in each call."""
    places: Mapping[str, Place]
    """Where each tile argument is found."""
    reads: tuple[tuple[str, Place], ...]
    writes: tuple[tuple[str, Place], ...]
    attributes: Mapping[str, Attribute]
    name: str | None

    def tiles(
        self, wanted: Sequence[tuple[str, Place]], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[tuple[str, NkiTensor]]:
        """The tiles of another call with the same key, with their operand names."""
        return [
            (operand, kwargs[place] if type(place) is str else args[place])
            for operand, place in wanted
        ]

    def call(self, machine: Machine, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundCall:
        """Another call with the same key, bound."""
        values = dict(self.values)
        values.update(self.tiles(tuple(self.places.items()), args, kwargs))
        call = BoundCall(self.row, values, machine)
        call.engine = self.engine
        return call


def places(row: Instruction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Place]:
    """Where the tiles of a call are."""
    found: dict[str, Place] = {
        param.name: position
        for position, (param, value) in enumerate(zip(row.params, args, strict=False))
        if isinstance(value, NkiTensor)
    }
    return found | {name: name for name, value in kwargs.items() if isinstance(value, NkiTensor)}


def key_of(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Key | None:
    """The key of a call, or None when an argument has a type that is not cached."""
    try:
        return (
            name,
            *[_KEYS[type(value)](value) for value in args],
            None,
            *[(word, _KEYS[type(value)](value)) for word, value in kwargs.items()],
        )
    except KeyError:
        return None


def _tile_key(tile: NkiTensor) -> Hashable:
    """What rules look at. On the hot path of shape-only runs, hence without properties."""
    storage = tile.storage
    region = storage.region
    dtype = tile.dtype
    dynamic = None if tile.dynamic is None else (tile.dynamic.kind, tile.dynamic.unit)
    if region is _SBUF:
        free = storage.bytes_per_partition // dtype.bytes
        return (tile.shape, dtype.name, storage.start_partition + tile.offset // free, dynamic)
    if region is _PSUM:
        free = storage.bytes_per_partition // dtype.bytes
        start, inner = divmod(tile.offset, free)
        place = (storage.start_partition + start, inner, tile.strides)
        return (tile.shape, dtype.name, place, dynamic)
    return (tile.shape, dtype.name, "shared" if region is _SHARED else "private", dynamic)


def _number_key(value: Any) -> Hashable:
    # 1, 1.0 and True are equal but not the same constant to a rule.
    return (type(value), value)


def _sequence_key(value: Sequence[Any]) -> Hashable:
    return tuple([_CONSTANT_KEYS[type(item)](item) for item in value])


# Lists of tiles have no key: only single tiles are put in place again.
_CONSTANT_KEYS: dict[type, Callable[[Any], Hashable]] = {
    OpToken: lambda token: token.token,
    type(None): lambda value: value,
    str: lambda value: value,
    int: _number_key,
    float: _number_key,
    bool: _number_key,
    list: _sequence_key,
    tuple: _sequence_key,
    **{enumeration: lambda member: member.name for enumeration in ENUMS.values()},
}
_KEYS: dict[type, Callable[[Any], Hashable]] = _CONSTANT_KEYS | {NkiTensor: _tile_key}
