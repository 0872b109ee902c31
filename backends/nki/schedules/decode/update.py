"""The update of one state: S <- D * S + sum of key (x) delta, on four engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.nki.program.build import Block, compare, part, repeated
from backends.nki.program.nodes import F32, If, Operand, Space, Token, View
from backends.nki.program.numbers import ONE, ZERO, Name, Number
from backends.nki.select.layouts import GPSIMD, Layout
from backends.nki.select.terms import Known, Stage, Term

if TYPE_CHECKING:
    from backends.nki.schedules.decode.phases import Phases

STORE = 4
"""Heads per transfer of new states: they leave early."""
GPSIMD_TURN = 8
"""One head in so many is added by GpSimdE when the state is narrower than fp32."""


def update_head(phases: Phases, deltas: list[View]) -> None:
    block, step = phases.blocks["update_head"], phases.step
    row = phases.lane + phases.head
    old = [phases.state.heads(keys, phases.place) for keys in phases.key_tiles]
    current = _decayed(phases, old, row)
    turned = phases.leaves_turned
    of = phases.heads if turned else Name("count")
    place = phases.head if turned else phases.head % STORE
    new = phases.states_in(phases.new_tile(of), of)
    target = old if phases.resident else [new.heads(keys, place) for keys in phases.key_tiles]
    for update, delta in zip(step.terms.updates, deltas, strict=True):
        spread = _spread(phases, "delta", row, delta)
        for keys, dst, decayed in zip(phases.key_tiles, target, current, strict=True):
            key = phases.key_column(keys, row, step.columns.index(update.key))
            _add(
                phases, block, dst, keys.columns(spread, ZERO, ZERO, phases.sizes[1]), key, decayed
            )
        current = target
    if not step.terms.updates:
        for dst, src in zip(target, current, strict=True):
            block.do("tensor_copy", dst=dst, src=src)


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


def _decayed(phases: Phases, old: list[View], row: Number) -> list[View]:
    """D * S of one head, tile of keys by tile of keys."""
    decay, block = phases.step.terms.decay, phases.blocks["update_head"]
    if decay is None:
        return old
    if decay.wide == phases.step.delta.value_axis:
        return _decayed_values(phases, decay, old, row)
    found = []
    for scale, view in zip(_scales(phases, decay, row), old, strict=True):
        decayed = block.tile("decayed_sb", view.shape, F32)
        block.do("activation", dst=decayed, op=Token("nl.copy"), data=view, scale=scale)
        found.append(decayed)
    return found


def _scales(phases: Phases, decay: Term, row: Number) -> list[Operand]:
    """A decay as the scale of each tile of keys: a number, or a column."""
    if isinstance(decay, Known):
        return [decay.value for _ in phases.key_tiles]
    phases.ask("prepare_rows")
    if decay.wide is None:
        # The deltas use it as a row factor anyway.
        phases.selector.value(decay, Layout.ROWS, Stage.INPUTS)
        phases.ask("spread_decay")
    by_key = phases.selector.value(decay, Layout.KEYS, Stage.INPUTS)
    assert isinstance(by_key, View)
    if not phases.selector.is_tile(decay, Layout.KEYS):
        return [keys.columns(by_key, ZERO, ZERO, ONE) for keys in phases.key_tiles]
    return [keys.columns(by_key, phases.window.count, row, ONE) for keys in phases.key_tiles]


def _decayed_values(phases: Phases, decay: Term, old: list[View], row: Number) -> list[View]:
    """A decay along V, which lies on the row of its head, is spread over K like the delta."""
    block = phases.blocks["update_head"]
    phases.ask("prepare_rows")
    by_row = phases.selector.tile(decay, Layout.ROWS, Stage.INPUTS)
    assert isinstance(by_row, View)
    spread = _spread(phases, "decay", row, View(by_row.tile, by_row.tile.shape))
    found = []
    for keys, view in zip(phases.key_tiles, old, strict=True):
        decayed = block.tile("decayed_sb", view.shape, F32)
        factor = keys.columns(spread, ZERO, ZERO, phases.sizes[1])
        block.do("tensor_tensor", dst=decayed, data1=factor, data2=view, op=Token("nl.multiply"))
        found.append(decayed)
    return found


def _spread(phases: Phases, name: str, row: Number, values: View) -> View:
    """A vector along V of one row, on every partition of a tile of keys."""
    block, rows = phases.blocks["update_head"], phases.lane + phases.heads
    partitions = phases.key_tiles.partitions
    spread = block.tile(f"{name}_psum", (partitions, phases.sizes[1]), F32, Space.PSUM)
    block.do(
        "nc_matmul",
        dst=spread,
        stationary=repeated(phases.constants.identity(), row, rows, partitions),
        moving=part(values, (0, rows), None),
        is_stationary_onezero=True,
        accumulate=False,
    )
    return spread


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
