"""Checked calls that can be used again: same instruction, same layouts, same constants.

Kernels issue the same few calls many thousand times. What the rules look at is part of the key, so
a call whose key is known needs no checking, only its tiles put in place.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
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
            (operand, kwargs[place] if isinstance(place, str) else args[place])
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
    """The key of a call, or None when an argument has a type that is not cached.

    On the hot path of shape-only runs: one flat list, no calls for the common kinds of arguments.
    A number stands behind its type: 1, 1.0 and True are equal but not the same constant to a rule.
    """
    key: list[Any] = [name, len(args), tuple(kwargs)]
    for value in (*args, *kwargs.values()):
        kind = type(value)
        if kind is NkiTensor:
            storage, dtype, dynamic = value.storage, value.dtype, value.dynamic
            key += (value.shape, dtype.name, dynamic and (dynamic.kind, dynamic.unit))
            region = storage.region
            if region.on_chip:
                start, inner = divmod(value.offset, storage.bytes_per_partition // dtype.bytes)
                key.append(storage.start_partition + start)
                if region is MemoryRegion.psum:
                    key += (inner, value.strides)
            else:
                key.append("shared" if region is MemoryRegion.shared_hbm else "private")
        elif kind in _AS_THEY_ARE:
            key.append(value)
        elif kind in _NUMBERS:
            key += (kind, value)
        elif kind in _MEMBERS:
            key.append(value.name)
        elif kind is list or kind is tuple:
            items = _constants(value)
            if items is None:
                return None
            key.append(items)
        else:
            return None
    return tuple(key)


def _constants(values: Sequence[Any]) -> Key | None:
    """A list of numbers, or of such lists, as part of a key; None when it holds anything else."""
    items: list[Any] = []
    for value in values:
        nested = isinstance(value, (list, tuple))
        item = _constants(value) if nested else (type(value), value)
        if item is None or not (nested or type(value) in _NUMBERS):
            return None
        items.append(item)
    return tuple(items)


_AS_THEY_ARE = frozenset({OpToken, type(None), str})
_NUMBERS = frozenset({int, float, bool})
_MEMBERS = frozenset(ENUMS.values())
