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
from backends.nki.select.key_tiles import KeyTile
from backends.nki.select.layouts import SCALAR, TENSOR, VECTOR
from gdsl.canonical.form import Delta
from gdsl.ir.dims import Dim

if TYPE_CHECKING:
    from backends.nki.schedules.decode.phases import Phases
    from backends.nki.schedules.decode.state_tile import StateTile

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
    phases: Phases, tile: StateTile, heads: tuple[Number, Number], values: tuple[Number, Number]
) -> View:
    """Values (start, width) of heads (first, count)."""
    K = phases.sizes[0]
    (first, count), (start, width) = heads, values
    return part(tile.view, (ZERO, width), ((start // ROWS * tile.of + first) * K, count * K))


def keys_of(
    phases: Phases, tile: StateTile, head: Number, keys: KeyTile, values: tuple[Number, Number]
) -> View:
    """The same of one head, in one tile of keys."""
    start, width = values
    first = (start // ROWS * tile.of + head) * phases.sizes[0] + keys.first
    return part(tile.view, (ZERO, width), (first, keys.width))


def turn_in(phases: Phases, block: Block, head: Number) -> None:
    """Put one of the states that arrived at its place among the states, [K, V]."""
    V = phases.sizes[1]
    for keys in phases.key_tiles:
        turned = block.tile("state_T_psum", (keys.width, V), phases.stored, Space.PSUM)
        with phases.value_slices(block) as (body, start, width):
            source = keys_of(phases, phases.arrived, head, keys, (start, width))
            dst = part(turned, None, (start, width))
            body.do("nc_transpose", dst=dst, data=source, engine=TENSOR)
        place = phases.state.heads(keys, head)
        block.do("tensor_copy", dst=place, src=turned, engine=SCALAR)


def turn_out(
    phases: Phases,
    block: Block,
    source: tuple[StateTile, Number],
    leaving: tuple[StateTile, Number],
) -> None:
    """Put a state among those that leave; both a tile and which of its heads."""
    K, (tile, head) = phases.sizes[0], source
    with phases.value_slices(block) as (body, start, width):
        turned = body.tile("new_T_psum", (width, K), phases.held, Space.PSUM)
        for keys in phases.key_tiles:
            data = tile.some_values(keys, head, start, width)
            into = part(turned, None, (keys.first, keys.width))
            body.do("nc_transpose", dst=into, data=data, engine=TENSOR)
        dst = slice_of(phases, leaving[0], (leaving[1], ONE), (start, width))
        mine, others = body.inner(), body.inner()
        mine.do("tensor_copy", dst=dst, src=turned, engine=SCALAR)
        others.do("tensor_copy", dst=dst, src=turned, engine=VECTOR)
        body.decide(compare("==", leaving[1] % SCALAR_TURN, ZERO), mine, others)


def turn_heads(phases: Phases) -> None:
    """Turn the states of a group one by one; resident ones are turned as they come and go."""
    if phases.resident:
        return
    head, heads = phases.head, phases.heads
    if phases.turned(phases.step.state.dims):
        turn_in(phases, phases.blocks["arrive_head"], head)
    if phases.leaves_turned:
        new = phases.states_in(phases.new_tile(heads), heads)
        leaving = phases.states_in(phases.leaving_tile(heads), heads)
        turn_out(phases, phases.blocks["leave_head"], (new, head), (leaving, head))
