"""States stored [V, K]: they travel with V on partitions, and TensorE turns them on chip.

Element by element through the DMA would take forty times as long as the bytes do. A state arrives
in slices of 128 values, [values, K], one head after the other, slice after slice; each is turned
into [K, V] before it is read, and the new state is turned back before it leaves. Two transposes of
TensorE per head and the copies out of PSUM, which ScalarE and VectorE share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import Space, View
from backends.nki.program.numbers import ONE, ZERO, Number, smallest
from backends.nki.schedules.decode.calls import ROWS
from backends.nki.select.addressing import strides
from backends.nki.select.layouts import SCALAR, TENSOR, VECTOR
from gdsl.canonical.form import Delta
from gdsl.ir.dims import Dim

if TYPE_CHECKING:
    from backends.nki.schedules.decode.phases import Phases

SCALAR_TURN = 2
"""ScalarE brings one new state in so many out of PSUM, VectorE the others."""


def value_major(dims: tuple[Dim, ...], delta: Delta) -> bool:
    """Whether a state tensor has V before K."""
    axes = strides(dims).axes
    return axes.index(delta.value_axis) < axes.index(delta.key_axis)


def turned_shape(phases: Phases, heads: Number) -> tuple[Number, Number]:
    """Shape of states with V on partitions, 128 values at a time."""
    K, V = phases.sizes
    return smallest(V, ROWS), (V + ROWS - 1) // ROWS * heads * K


def slice_of(
    phases: Phases,
    tile: View,
    of: Number,
    heads: tuple[Number, Number],
    values: tuple[Number, Number],
) -> View:
    """Values (start, width) of heads (first, count) in a tile of `of` states."""
    K = phases.sizes[0]
    (first, count), (start, width) = heads, values
    return part(tile, (ZERO, width), ((start // ROWS * of + first) * K, count * K))


def turn_in(phases: Phases, block: Block, of: Number, head: Number) -> None:
    """Put state `head` of the `of` that arrived at its place among the states, [K, V]."""
    K, V = phases.sizes
    turned = block.tile("state_T_psum", (K, V), phases.stored, Space.PSUM)
    with phases.value_slices(block) as (body, start, width):
        source = slice_of(phases, phases.arrived, of, (head, ONE), (start, width))
        dst = part(turned, None, (start, width))
        body.do("nc_transpose", dst=dst, data=source, engine=TENSOR)
    place = part(phases.state, None, (head * V, V))
    block.do("tensor_copy", dst=place, src=turned, engine=SCALAR)


def turn_out(
    phases: Phases,
    block: Block,
    source: tuple[View, Number],
    leaving: View,
    of: Number,
    head: Number,
) -> None:
    """Put the state that begins at a column of a tile at place `head` of the `of` that leave."""
    K, (tile, column) = phases.sizes[0], source
    with phases.value_slices(block) as (body, start, width):
        turned = body.tile("new_T_psum", (width, K), phases.held, Space.PSUM)
        data = part(tile, None, (column + start, width))
        body.do("nc_transpose", dst=turned, data=data, engine=TENSOR)
        dst = slice_of(phases, leaving, of, (head, ONE), (start, width))
        mine, others = body.inner(), body.inner()
        mine.do("tensor_copy", dst=dst, src=turned, engine=SCALAR)
        others.do("tensor_copy", dst=dst, src=turned, engine=VECTOR)
        body.decide(compare("==", head % SCALAR_TURN, ZERO), mine, others)
