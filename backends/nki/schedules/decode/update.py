"""The update of one state: S <- D * S + sum of key (x) delta, on four engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.nki.program.build import Block, compare, part, repeated
from backends.nki.program.nodes import F32, If, Operand, Space, Token, View
from backends.nki.program.numbers import Literal, Number
from backends.nki.select.layouts import GPSIMD, Layout
from backends.nki.select.terms import Known, Stage, Term

if TYPE_CHECKING:
    from backends.nki.schedules.decode.phases import Phases

STORE = 4
"""Heads per transfer of new states: they leave early."""
GPSIMD_TURN = 8
"""One head in so many is added by GpSimdE when the state is narrower than fp32."""


def update_head(phases: Phases, deltas: list[View]) -> None:
    (K, V), block, step = phases.sizes, phases.blocks["update_head"], phases.step
    row = phases.lane + phases.head
    old = part(phases.state, None, (phases.place * V, V))
    current = _decayed(phases, old, row)
    turned = phases.leaves_turned
    new = phases.new_tile(phases.heads if turned else Literal(STORE))
    place = phases.head if turned else phases.head % STORE
    target = old if phases.resident else part(View(new, new.shape), None, (place * V, V))
    for update, delta in zip(step.terms.updates, deltas, strict=True):
        spread = block.tile("delta_psum", (K, V), F32, Space.PSUM)
        block.do(
            "nc_matmul",
            dst=spread,
            stationary=repeated(phases.constants.identity(), row, phases.lane + phases.heads, K),
            moving=part(delta, (0, phases.lane + phases.heads), None),
            is_stationary_onezero=True,
            accumulate=False,
        )
        key = phases.key_columns(phases.keys, row, step.columns.index(update.key), 1)
        _add(phases, block, target, spread, key, current)
        current = target
    if not step.terms.updates:
        block.do("tensor_copy", dst=target, src=current)


def _add(phases: Phases, block: Block, dst: View, spread: View, key: View, decayed: View) -> None:
    """dst <- spread * key + decayed."""
    if phases.held == F32:
        _multiply_add(block, dst, spread, key, decayed)
        return
    mine, others = block.inner(), block.inner()
    mine.comment("With half the bytes to move VectorE would be the limit: GpSimdE adds here.")
    scaled = mine.tile("scaled_sb", dst.shape, F32)
    mine.do("activation", dst=scaled, op=Token("nl.copy"), data=spread, scale=key)
    mine.do(
        "tensor_tensor",
        dst=dst,
        data1=scaled,
        data2=decayed,
        op=Token("nl.add"),
        engine=GPSIMD,
    )
    _multiply_add(others, dst, spread, key, decayed)
    turn = compare("==", phases.head % GPSIMD_TURN, GPSIMD_TURN - 1)
    block.statements.append(If(turn, tuple(mine.statements), tuple(others.statements)))


def _decayed(phases: Phases, old: View, row: Number) -> View:
    decay, block = phases.step.terms.decay, phases.blocks["update_head"]
    if decay is None:
        return old
    if decay.wide == phases.step.delta.value_axis:
        return _decayed_values(phases, decay, old, row)
    scale: Operand
    if isinstance(decay, Known):
        scale = decay.value
    else:
        phases.ask("prepare_rows")
        if decay.wide is None:
            # The deltas use it as a row factor anyway.
            phases.selector.value(decay, Layout.ROWS, Stage.INPUTS)
            phases.ask("spread_decay")
        by_key = phases.selector.value(decay, Layout.KEYS, Stage.INPUTS)
        assert isinstance(by_key, View)
        varies = phases.selector.is_tile(decay, Layout.KEYS)
        scale = part(by_key, None, (row, 1)) if varies else by_key
    decayed = block.tile("decayed_sb", old.shape, F32)
    block.do("activation", dst=decayed, op=Token("nl.copy"), data=old, scale=scale)
    return decayed


def _decayed_values(phases: Phases, decay: Term, old: View, row: Number) -> View:
    """A decay along V, which lies on the row of its head, is spread over K like the delta."""
    block, shape = phases.blocks["update_head"], old.shape
    phases.ask("prepare_rows")
    by_row = phases.selector.tile(decay, Layout.ROWS, Stage.INPUTS)
    assert isinstance(by_row, View)
    spread = block.tile("decay_psum", shape, F32, Space.PSUM)
    rows = phases.lane + phases.heads
    block.do(
        "nc_matmul",
        dst=spread,
        stationary=repeated(phases.constants.identity(), row, rows, shape[0]),
        moving=part(View(by_row.tile, by_row.tile.shape), (0, rows), None),
        is_stationary_onezero=True,
        accumulate=False,
    )
    decayed = block.tile("decayed_sb", shape, F32)
    block.do("tensor_tensor", dst=decayed, data1=spread, data2=old, op=Token("nl.multiply"))
    return decayed


def _multiply_add(block: Block, dst: View, data: View, scale: View, summand: View) -> None:
    block.do(
        "scalar_tensor_tensor",
        dst=dst,
        data=data,
        op0=Token("nl.multiply"),
        operand0=scale,
        op1=Token("nl.add"),
        operand1=summand,
    )
