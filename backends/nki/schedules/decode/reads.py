"""The operands of the reads: the state, which is stationary, and the vectors along K that move.

TensorE multiplies fp32 in four passes and two-byte elements in one. With `reads=bf16` an fp32 state
is rounded to bf16 on its way in, and the vectors are a sum of two in bf16: two passes. Products are
summed in fp32, and the update still has the state and the keys in fp32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import BF16, F32, Element, Token, View
from backends.nki.program.numbers import ZERO, Number
from backends.nki.select.layouts import GPSIMD, SCALAR

if TYPE_CHECKING:
    from backends.nki.schedules.decode.phases import Phases

SCALAR_TURN = 2
"""ScalarE rounds one state in so many, GpSimdE the others: neither has time for all."""


def moving_keys(phases: Phases, block: Block) -> tuple[View, ...]:
    """The keys of a tile of rows as a sum of operands that TensorE multiplies with the states."""
    if phases.rounds:
        return _limbs(phases, block, BF16)
    return (phases.keys,) if phases.stored == F32 else _limbs(phases, block, phases.stored)


def state_to_read(phases: Phases, block: Block) -> tuple[View, Number]:
    """The tile that holds the state at hand as an operand, and the column where it begins."""
    K, V = phases.sizes
    if not phases.rounds:
        return phases.state, phases.place * V
    rounded = block.tile("state_bf16_sb", (K, V), BF16)
    state = part(phases.state, None, (phases.place * V, V))
    mine, others = block.inner(), block.inner()
    mine.do("tensor_copy", dst=rounded, src=state, engine=SCALAR)
    others.do("tensor_copy", dst=rounded, src=state, engine=GPSIMD)
    block.decide(compare("==", phases.head % SCALAR_TURN, ZERO), mine, others)
    return rounded, ZERO


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
