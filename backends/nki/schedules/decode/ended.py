"""Which entries of the batch have the token at hand, as addresses: states of the others are zeros.

The state of a sequence that has ended stays on chip as it was. What leaves for the token is chosen
by address, which costs no engine anything: entry b goes to place b or, skipped, to -1; zeros go the
other way round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.nki.program.build import Block
from backends.nki.program.nodes import F32, I32, U8, Integers, Token, View
from backends.nki.program.numbers import ONE, Literal, Name, Number
from backends.nki.select.layouts import MULTIPLY
from backends.nki.select.state_moves import Index
from gdsl.ir.node import Symbol

if TYPE_CHECKING:
    from backends.nki.schedules.decode.phases import Phases


def entries_of_token(phases: Phases) -> tuple[Index, Index]:
    """Places of the entries that have the token at hand, and of those that do not."""
    block, once = phases.blocks["token_entries"], phases.constants.block
    batch = Name(phases.window.axes[0])
    shape: tuple[Number, Number] = (ONE, batch)
    places, nowhere = once.tile("places_sb", shape, I32), once.tile("nowhere_sb", shape, I32)
    once.do("iota", dst=places, pattern=Integers(((ONE, batch),)), offset=Literal(0))
    once.do("memset", dst=nowhere, value=Literal(-1))
    flags = _flags(phases, block, shape)
    found = []
    for name, start, chosen in (("alive", nowhere, places), ("ended", places, nowhere)):
        entries = block.tile(f"{name}_entries_sb", shape, I32)
        block.do("tensor_copy", dst=entries, src=start)
        block.do("tensor_copy_predicated", dst=entries, src=chosen, predicate=flags)
        found.append(Index(entries))
    return found[0], found[1]


def _flags(phases: Phases, block: Block, shape: tuple[Number, Number]) -> View:
    """1 for the entries that have the token at hand."""
    run, state = phases.step.run, phases.step.state
    flags = block.tile("token_flags_sb", shape, U8)
    if run.valid_len is not None:
        lengths = phases.addresses.numbers(run.valid_len)
        block.do(
            "tensor_scalar",
            dst=flags,
            data=lengths,
            op0=Token("nl.greater"),
            operand0=phases.window.outer[str(run.axis)],
        )
        return flags
    assert state.slots is not None
    slots = [state.slots.read, state.slots.write]
    first, *more = [_inside(phases, block, s, shape) for s in slots if s is not None]
    for other in more:
        block.do("tensor_tensor", dst=first, data1=first, data2=other, op=Token("nl.maximum"))
    block.do("tensor_copy", dst=flags, src=first)
    return flags


def _inside(phases: Phases, block: Block, symbol: Symbol, shape: tuple[Number, Number]) -> View:
    """1 where a slot is in the pool."""
    slots = phases.step.state.slots
    assert slots is not None
    numbers = phases.addresses.numbers(symbol)
    inside = block.tile("inside_sb", shape, F32)
    below = block.tile("below_sb", shape, F32)
    limits = ((inside, "nl.greater_equal", Literal(0.0)), (below, "nl.less", Name(slots.axis)))
    for dst, op, limit in limits:
        block.do("tensor_scalar", dst=dst, data=numbers, op0=Token(op), operand0=limit)
    block.do("tensor_tensor", dst=inside, data1=inside, data2=below, op=Token(MULTIPLY))
    return inside
