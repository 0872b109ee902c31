"""Instructions that a group takes once per slot, each on that slot's columns of its tiles."""

from __future__ import annotations

from backends.nki.program.build import Block
from backends.nki.program.nodes import Pattern, Space, Token, View
from backends.nki.program.numbers import Number, Numeric
from backends.nki.schedules.chunked.records import CHUNK, SLOTS, each_slot, like, slot_of
from backends.nki.select.layouts import SCALAR, TENSOR, VECTOR


def multiply_slots(
    block: Block,
    dst: View,
    stationary: View,
    moving: View,
    *,
    rows: Numeric = CHUNK,
    columns: Numeric = CHUNK,
    same_moving: bool = False,
    accumulate: bool = False,
) -> None:
    """Add dst = stationary^T @ moving for every slot.

    A slot has [CHUNK, rows] of the stationaries and [CHUNK, columns] of what moves, unless the
    slots all have the same.
    """
    with block.loop("slot", 0, SLOTS) as (body, slot):
        body.do(
            "nc_matmul",
            dst=slot_of(dst, slot, columns),
            stationary=slot_of(stationary, slot, rows),
            moving=moving if same_moving else slot_of(moving, slot, columns),
            accumulate=accumulate,
        )


def with_constant(block: Block, dst: View, data: View | Pattern, constant: View, op: Token) -> None:
    """Add dst = data op constant for a [CHUNK, CHUNK] constant and the matrices of all slots."""
    block.do("tensor_tensor", dst=dst, data1=data, data2=each_slot(constant), op=op, engine=VECTOR)


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
