"""Instructions that a group takes once per slot, each on that slot's columns of its tiles."""

from __future__ import annotations

from backends.nki.program.build import Block
from backends.nki.program.nodes import Space, View
from backends.nki.program.numbers import Number, Numeric
from backends.nki.schedules.chunked.records import CHUNK, SLOTS, like, slot_of
from backends.nki.select.layouts import SCALAR, TENSOR


def multiply_slots(
    block: Block, dst: View, stationary: View, moving: View, *, accumulate: bool = False
) -> None:
    """Add dst = stationary^T @ moving for the [CHUNK, CHUNK] matrix of every slot."""
    with block.loop("slot", 0, SLOTS) as (body, slot):
        body.do(
            "nc_matmul",
            dst=slot_of(dst, slot, CHUNK),
            stationary=slot_of(stationary, slot, CHUNK),
            moving=slot_of(moving, slot, CHUNK),
            accumulate=accumulate,
        )


def transpose_slots(block: Block, dst: View, source: View, width: Numeric) -> None:
    """Add the transpose of every slot's [CHUNK, width] matrix into PSUM."""
    with block.loop("slot", 0, SLOTS) as (body, slot):
        turned, data = slot_of(dst, slot, CHUNK), slot_of(source, slot, width)
        body.do("nc_transpose", dst=turned, data=data, engine=TENSOR)


def turn_slots(
    block: Block, name: str, source: View, width: Numeric, shape: tuple[Number, Number]
) -> View:
    """Add the transpose of every slot's [CHUNK, width] matrix; returns its tile, called `name`."""
    turned = block.tile("turned", shape, like(source), Space.PSUM)
    transpose_slots(block, turned, source, width)
    result = block.tile(name, shape, like(source))
    block.do("tensor_copy", dst=result, src=turned, engine=SCALAR)
    return result
