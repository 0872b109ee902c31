"""States on their way between HBM and SBUF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import U8, Pattern, Tile, View
from backends.nki.program.numbers import NONE, ZERO, Literal, Name, Number, smallest
from backends.nki.schedules.decode.slots import accepted
from backends.nki.schedules.decode.turned import slice_of, turn_in, turn_out, turned_shape
from backends.nki.select.inputs import move_states
from backends.nki.select.layouts import GPSIMD, Layout
from backends.nki.select.terms import Stage
from gdsl.ir.dims import Dim
from gdsl.ir.kernel import Output

if TYPE_CHECKING:
    from backends.nki.schedules.decode.phases import Phases

LOAD = 8
"""Heads per transfer in: 4 KiB per partition."""


def load_states(phases: Phases) -> None:
    (K, V), block = phases.sizes, phases.blocks["load_states"]
    heads = phases.window.count if phases.resident else phases.heads
    phases.state = chip = block.tile("state_sb", (K, heads * V), phases.stored)
    turned = phases.turned(phases.step.state.dims)
    if turned:
        chip = block.tile("arrived_sb", turned_shape(phases, heads), phases.stored)
        phases.arrived = chip
    pool = phases.contract.tensors[phases.step.state.argument]
    state = phases.step.state
    if phases.slots is not None:
        block.do("memset", dst=chip, value=Literal(0.0), engine=GPSIMD)
        _transfer(phases, block, pool, state.dims, (Name("row"), heads), (chip, heads), store=False)
    elif state.argument in phases.contract.optional:
        zeros, given = block.inner(), block.inner()
        zeros.do("memset", dst=chip, value=Literal(0.0), engine=GPSIMD)
        _fetch_states(phases, given, pool, (chip, heads))
        missing = compare("==", Name(state.argument), NONE)
        if state.inplace:
            missing = Name(f"{state.argument}_missing")
        block.decide(missing, zeros, given)
    else:
        _fetch_states(phases, block, pool, (chip, heads))
    if turned and phases.resident:
        with block.loop("head", 0, heads) as (body, head):
            turn_in(phases, body, heads, head)


def _fetch_states(phases: Phases, block: Block, pool: Tile, chip: tuple[View, Number]) -> None:
    dims = phases.step.state.dims
    with block.loop("start", 0, chip[1], LOAD) as (body, start):
        count = body.let_named("count", smallest(LOAD, chip[1] - start))
        rows = (Name("row") + start, count)
        _transfer(phases, body, pool, dims, rows, chip, start, store=False)


def store_states(phases: Phases) -> None:
    block = phases.blocks["store_states"]
    if phases.resident:
        _store_resident(phases, block, phases.state, phases.step.states)
        return
    count = Name("count")
    new = phases.new_tile(count)
    for output in phases.step.states:
        tensor, rows = phases.contract.outputs[output.name], (Name("row"), count)
        chip = (View(new, new.shape), count)
        _transfer(phases, block, tensor, output.dims, rows, chip, store=True)


def _store_resident(phases: Phases, block: Block, source: View, outputs: Sequence[Output]) -> None:
    """All states of a tile of rows to HBM, a few at a time."""
    V, rows = phases.sizes[1], phases.window.count
    for output in outputs:
        with block.loop("start", 0, rows, LOAD) as (body, start):
            count = body.let_named("count", smallest(LOAD, rows - start))
            tensor = phases.contract.outputs[output.name]
            at = (Name("row") + start, count)
            if not phases.turned(output.dims):
                _transfer(phases, body, tensor, output.dims, at, (source, rows), start, store=True)
                continue
            leaving = body.tile("leaving_sb", turned_shape(phases, count), phases.stored)
            with body.loop("head", 0, count) as (each, head):
                old = (source, (start + head) * V)
                turn_out(phases, each, old, leaving, count, head)
            _transfer(phases, body, tensor, output.dims, at, (leaving, count), store=True)


def store_token_states(phases: Phases) -> None:
    """The states after the token at hand; zeros for sequences that have ended."""
    step, block, (K, V) = phases.step, phases.blocks["store_token_states"], phases.sizes
    if not step.token_states:
        return
    source, rows = phases.state, phases.window.count
    if step.alive is not None:
        phases.ask("prepare_rows")
        alive = phases.selector.value(step.alive, Layout.KEYS, Stage.INPUTS)
        assert isinstance(alive, View)
        flags = block.tile("alive_flags_sb", (K, rows), U8)
        block.do("tensor_copy", dst=flags, src=alive)
        source = block.tile("shown_sb", phases.state.shape, phases.stored)
        block.do("memset", dst=source, value=Literal(0.0), engine=GPSIMD)
        with block.loop("head", 0, rows) as (body, head):
            shown = (head * V, V)
            body.do(
                "tensor_copy_predicated",
                dst=part(source, None, shown),
                src=part(phases.state, None, shown),
                predicate=Pattern(flags.tile, ((rows, K), (ZERO, V)), head),
            )
    _store_resident(phases, block, source, step.token_states)


def _transfer(
    phases: Phases,
    block: Block,
    tensor: Tile,
    dims: tuple[Dim, ...],
    rows: tuple[Number, Number],
    chip: tuple[View, Number],
    start: Number = ZERO,
    *,
    store: bool,
) -> None:
    """Move the states of rows (first, count) to or from head `start` of a tile of so many."""
    (tile, of), count, V = chip, rows[1], phases.sizes[1]
    if not phases.turned(dims):
        held = part(tile, None, (start * V, count * V))
        _move(phases, block, tensor, dims, rows, held, None, store=store)
        return
    with phases.value_slices(block) as (body, *values):
        held = slice_of(phases, tile, of, (start, count), (values[0], values[1]))
        _move(phases, body, tensor, dims, rows, held, (values[0], values[1]), store=store)


def _move(
    phases: Phases,
    block: Block,
    tile: Tile,
    dims: tuple[Dim, ...],
    rows: tuple[Number, Number],
    chip: View,
    values: tuple[Number, Number] | None,
    *,
    store: bool,
) -> None:
    """Move states of rows (first, count); those of a pool by their slots."""
    step, window = phases.step, phases.window
    if phases.slots is not None:
        phases.slots.transfer(block, tile, chip, window, rows, store=store, values=values)
        return

    def kept(states: Pattern) -> Pattern:
        if store or step.state.accepted is None:
            return states
        return accepted(states, step, phases.accepted)

    move_states(
        block,
        tile,
        dims,
        window,
        rows,
        step.delta,
        chip,
        store=store,
        values=values,
        kept=kept,
        ring=phases.ring,
    )
