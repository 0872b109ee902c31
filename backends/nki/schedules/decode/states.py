"""States on their way between HBM and SBUF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import U8, Pattern, Space, Tile, View
from backends.nki.program.numbers import NONE, ZERO, Literal, Name, Number, smallest
from backends.nki.schedules.decode.slots import accepted
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
    phases.state = block.tile("state_sb", (K, heads * V), phases.stored)
    pool = phases.contract.tensors[phases.step.state.argument]
    if phases.slots is not None:
        block.do("memset", dst=phases.state, value=Literal(0.0), engine=GPSIMD)
        rows = (Name("row"), phases.heads)
        phases.slots.transfer(block, pool, phases.state, phases.window, rows, store=False)
        return
    state = phases.step.state
    if state.argument in phases.contract.optional:
        zeros, given = block.inner(), block.inner()
        zeros.do("memset", dst=phases.state, value=Literal(0.0), engine=GPSIMD)
        _fetch_states(phases, given, pool, heads)
        missing = compare("==", Name(state.argument), NONE)
        if state.inplace:
            missing = Name(f"{state.argument}_missing")
        block.decide(missing, zeros, given)
        return
    _fetch_states(phases, block, pool, heads)


def _fetch_states(phases: Phases, block: Block, pool: Tile, heads: Number) -> None:
    V, dims = phases.sizes[1], phases.step.state.dims
    with block.loop("start", 0, heads, LOAD) as (body, start):
        count = body.let_named("count", smallest(LOAD, heads - start))
        chip = part(phases.state, None, (start * V, count * V))
        _move(phases, body, pool, dims, (Name("row") + start, count), chip, store=False)


def store_states(phases: Phases) -> None:
    (K, V), block = phases.sizes, phases.blocks["store_states"]
    if phases.resident:
        _store_resident(phases, block, phases.state, phases.step.states)
        return
    count = Name("count")
    phases.new = View(Tile("new_sb", (K, count * V), phases.stored, Space.SBUF), (K, count * V))
    for output in phases.step.states:
        tensor = phases.contract.outputs[output.name]
        rows = (Name("row"), count)
        if phases.slots is not None:
            phases.slots.transfer(block, tensor, phases.new, phases.window, rows, store=True)
            continue
        _move(phases, block, tensor, output.dims, rows, phases.new, store=True)


def _store_resident(phases: Phases, block: Block, source: View, outputs: Sequence[Output]) -> None:
    """All states of a tile of rows to HBM, a few at a time."""
    V, rows = phases.sizes[1], phases.window.count
    for output in outputs:
        with block.loop("start", 0, rows, LOAD) as (body, start):
            count = body.let_named("count", smallest(LOAD, rows - start))
            tensor = phases.contract.outputs[output.name]
            chip = part(source, None, (start * V, count * V))
            at = (Name("row") + start, count)
            _move(phases, body, tensor, output.dims, at, chip, store=True)


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


def _move(
    phases: Phases,
    block: Block,
    tile: Tile,
    dims: tuple[Dim, ...],
    rows: tuple[Number, Number],
    chip: View,
    *,
    store: bool,
) -> None:
    """Move the states of rows (first, count), [K, count * V] on chip."""
    step = phases.step

    def kept(states: Pattern) -> Pattern:
        if store or step.state.accepted is None:
            return states
        return accepted(states, step, phases.accepted)

    move_states(block, tile, dims, phases.window, rows, step.delta, chip, store=store, kept=kept)
