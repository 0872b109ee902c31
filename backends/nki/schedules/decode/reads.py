"""The reads of a state: which operand is stationary, which vectors along K move through it.

TensorE multiplies fp32 in four passes and two-byte elements in one. With `reads=bf16` an fp32 state
and its vectors are rounded to bf16 on their way in: one pass. Products are summed in fp32, and the
update still has the state and the keys in fp32.

Every read sees the old state. An output behind an erasure is formed from its read of the old state
and what the erasure takes away again (identical keys, beta near 1), so that rounding the old state
would be up to four times worse than rounding the new one, as the definition does. `reads=bf16`
therefore leaves those reads in fp32: what it rounds is what the delta is formed from, and outputs
of rules that erase nothing. The error is then never above that of the definition in bf16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from backends.nki.program.build import Block, compare, every, part
from backends.nki.program.nodes import BF16, F32, Element, Space, Tile, Token, View
from backends.nki.program.numbers import ONE, ZERO, Number, number
from backends.nki.schedules.decode.calls import ROWS
from backends.nki.schedules.decode.state_tile import StateTile
from backends.nki.select.key_tiles import KeyTile
from backends.nki.select.layouts import GPSIMD, SCALAR

if TYPE_CHECKING:
    from backends.nki.schedules.decode.phases import Phases

SCALAR_TURN = 2
"""ScalarE rounds one state in so many, GpSimdE the others: neither has time for all."""


@frozen
class Moving:
    """Reads that share their operands: `count` of them, from read `first` on."""

    first: int
    count: int
    keys: tuple[View, ...]
    """Their vectors, as a sum of operands."""
    width: int
    """Vectors per row in those operands; theirs are the ones from `offset` on."""
    offset: int = 0
    rounded: bool = False
    """Whether they see the state rounded to bf16."""

    def columns(self, tile: KeyTile, keys: View, row: Number, rows: Number) -> View:
        """The vectors of one of so many rows."""
        first = self.width * row + self.offset
        return tile.columns(keys, self.width * rows, first, number(self.count))


def moving_keys(phases: Phases, block: Block) -> tuple[Moving, ...]:
    """The vectors of a tile of rows as TensorE multiplies them with the states."""
    terms, width = phases.step.terms, len(phases.step.columns)
    count = len(terms.reads)
    if phases.held != F32:
        limbs = _limbs(phases, block, phases.held)
        return (Moving(0, count, limbs, width),)
    low = next((i for i, read in enumerate(terms.reads) if read in terms.exact), count)
    if not phases.rounds or low == 0:
        return (Moving(0, count, (phases.keys,), width),)
    found = [Moving(0, low, (_rounded(phases, block, low),), low, rounded=True)]
    if low < count:
        found.append(Moving(low, count - low, (phases.keys,), width, offset=low))
    return tuple(found)


def read_head(phases: Phases) -> None:
    """Multiply the state at hand with all vectors that read it."""
    block, count = phases.blocks["read_head"], len(phases.step.terms.reads)
    shape, rows = phases.raw_shape(phases.heads), phases.window.count
    phases.raw = View(Tile("raw_psum", shape, F32, Space.PSUM), shape)
    rounded = any(moving.rounded for moving in phases.moving)
    low = _rounded_state(phases, block) if rounded else phases.state
    with phases.value_slices(block) as (body, start, width):
        place = count * (start // ROWS * phases.heads + phases.head)
        column = body.let_named("column", place)
        for moving in phases.moving:
            states, at = (low, ZERO) if moving.rounded else (phases.state, phases.place)
            operands = [(tile, keys) for tile in phases.key_tiles for keys in moving.keys]
            for i, (tile, keys) in enumerate(operands):
                body.do(
                    "nc_matmul",
                    dst=part(phases.raw, (0, width), (column + moving.first, moving.count)),
                    stationary=states.some_values(tile, at, start, width),
                    moving=moving.columns(tile, keys, phases.lane + phases.head, rows),
                    accumulate=i > 0,
                )


def _rounded_state(phases: Phases, block: Block) -> StateTile:
    """The state at hand in bf16."""
    rounded = phases.states_in(block.tile("state_bf16_sb", phases.states_shape(ONE), BF16), ONE)
    mine, others = block.inner(), block.inner()
    for tile in phases.key_tiles:
        dst, state = rounded.heads(tile, ZERO), phases.state.heads(tile, phases.place)
        mine.do("tensor_copy", dst=dst, src=state, engine=SCALAR)
        others.do("tensor_copy", dst=dst, src=state, engine=GPSIMD)
    block.decide(compare("==", phases.head % SCALAR_TURN, ZERO), mine, others)
    return rounded


def _rounded(phases: Phases, block: Block, count: int) -> View:
    """The first vectors of each row in bf16."""
    keys, width = phases.keys, len(phases.step.columns)
    rows = phases.tiles * phases.window.count
    stem = keys.tile.name.removesuffix("_sb")
    rounded = block.tile(f"{stem}_bf16_sb", (keys.shape[0], count * rows), BF16)
    for i in range(count):
        source = every(keys, i, width, rows)
        block.do("tensor_copy", dst=every(rounded, i, count, rows), src=source, engine=SCALAR)
    return rounded


def _limbs(phases: Phases, block: Block, element: Element) -> tuple[View, ...]:
    """The keys as a sum of two vectors of the dtype the state is read in: TensorE wants equals.

    The products are exact, so that the reads lose 2^-17 of the keys and nothing of the operand. A
    key rounded once would be off in the same direction for every value of its head.
    """
    keys = phases.keys
    stem = keys.tile.name.removesuffix("_sb")
    high = block.tile(f"{stem}_high_sb", keys.shape, element)
    block.do("tensor_copy", dst=high, src=keys, engine=SCALAR)
    rest = block.tile(f"{stem}_rest_sb", keys.shape, F32)
    block.do("tensor_tensor", dst=rest, data1=keys, data2=high, op=Token("nl.subtract"))
    low = block.tile(f"{stem}_low_sb", keys.shape, element)
    block.do("tensor_copy", dst=low, src=rest)
    return high, low
