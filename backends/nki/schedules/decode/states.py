"""States on their way between HBM and SBUF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import Tile, View
from backends.nki.program.numbers import NONE, ZERO, Literal, Name, Number, smallest
from backends.nki.refusal import refuse
from backends.nki.schedules.addresses import dimension
from backends.nki.schedules.decode.ended import entries_of_token
from backends.nki.schedules.decode.state_tile import StateTile
from backends.nki.schedules.decode.turned import slice_of, turn_in, turn_out
from backends.nki.select.layouts import GPSIMD, SCALAR
from backends.nki.select.state_moves import Across, Index, move_states
from gdsl.ir.dims import Atom, Dim
from gdsl.ir.kernel import Output

if TYPE_CHECKING:
    from backends.nki.schedules.decode.phases import Phases

LOAD = 8
"""Heads per transfer in: 4 KiB per partition. As many leave at once where states are resident."""


def load_states(phases: Phases) -> None:
    block, state = phases.blocks["load_states"], phases.step.state
    heads = phases.window.count if phases.resident else phases.heads
    chip = phases.states_in(block.tile("state_sb", phases.states_shape(heads), phases.held), heads)
    phases.state = chip
    turned = phases.turned(state.dims)
    if turned or phases.held != phases.stored:
        arrived = block.tile("arrived_sb", phases.states_shape(heads, turned=turned), phases.stored)
        chip = phases.arrived = phases.states_in(arrived, heads)
    pool, index = phases.contract.tensors[state.argument], _read_index(phases)
    if state.slots is not None:
        block.do("memset", dst=chip.view, value=Literal(0.0), engine=GPSIMD)
        rows = (Name("row"), heads)
        _transfer(phases, block, pool, state.dims, rows, chip, store=False, index=index)
    elif state.argument in phases.contract.optional:
        zeros, given = block.inner(), block.inner()
        zeros.do("memset", dst=chip.view, value=Literal(0.0), engine=GPSIMD)
        _fetch_states(phases, given, pool, chip, index)
        missing = compare("==", Name(state.argument), NONE)
        if state.inplace:
            missing = Name(f"{state.argument}_missing")
        block.decide(missing, zeros, given)
    else:
        _fetch_states(phases, block, pool, chip, index)
    if turned and phases.resident:
        with block.loop("head", 0, heads) as (body, head):
            turn_in(phases, body, head)
    elif phases.held != phases.stored:
        with block.loop("start", 0, heads, LOAD) as (body, start):
            count = smallest(LOAD, heads - start)
            for keys in phases.key_tiles:
                dst, src = (held.heads(keys, start, count) for held in (phases.state, chip))
                body.do("tensor_copy", dst=dst, src=src, engine=SCALAR)


def _fetch_states(
    phases: Phases, block: Block, pool: Tile, chip: StateTile, index: Index | None
) -> None:
    dims = phases.step.state.dims
    if phases.step.state.unless is not None:
        block.comment("Rows that start anew are not read: they begin with zeros.")
        block.do("memset", dst=chip.view, value=Literal(0.0), engine=GPSIMD)
    with block.loop("start", 0, chip.of, LOAD) as (body, start):
        count = body.let_named("count", smallest(LOAD, chip.of - start))
        rows = (Name("row") + start, count)
        _transfer(phases, body, pool, dims, rows, chip, start, store=False, index=index)


def store_states(phases: Phases) -> None:
    block, state, count = phases.blocks["store_states"], phases.step.state, Name("count")
    numbers = phases.addresses.write(state)
    if state.slots is not None and numbers is None:
        return
    index = None if numbers is None else Index(numbers)
    if phases.resident:
        _store_resident(phases, block, phases.step.states, index)
        return
    for output in phases.step.states:
        tensor, rows = phases.contract.outputs[output.name], (Name("row"), count)
        start: Number = ZERO
        chip = phases.states_in(phases.new_tile(count), count)
        if phases.turned(output.dims):
            start = Name("start")
            chip = phases.states_in(phases.leaving_tile(phases.heads), phases.heads)
        _transfer(phases, block, tensor, output.dims, rows, chip, start, store=True, index=index)


def _store_resident(
    phases: Phases, block: Block, outputs: Sequence[Output], index: Index | None
) -> None:
    """States start, start + 1, ... of a group of a tile of rows to HBM, `count` of them."""
    first, count = Name("lane") + Name("start"), Name("count")
    for output in outputs:
        tensor, at = phases.contract.outputs[output.name], (Name("row") + first, count)
        chip, start, turned = phases.state, first, phases.turned(output.dims)
        if turned or tensor.element != phases.held:
            shape = phases.states_shape(count, turned=turned)
            leaving = block.tile("leaving_sb", shape, tensor.element)
            chip, start = phases.states_in(leaving, count), ZERO
        if turned:
            with block.loop("head", 0, count) as (each, head):
                turn_out(phases, each, (phases.state, first + head), (chip, head))
        elif chip is not phases.state:
            for keys in phases.key_tiles:
                dst, new = chip.heads(keys, ZERO, count), phases.state.heads(keys, first, count)
                block.do("tensor_copy", dst=dst, src=new, engine=GPSIMD)
        _transfer(phases, block, tensor, output.dims, at, chip, start, store=True, index=index)


def store_token_states(phases: Phases) -> None:
    """The states after the token at hand; zeros for sequences that have ended."""
    step, block = phases.step, phases.blocks["store_token_states"]
    if not step.token_states:
        return
    if step.alive is None:
        _store_resident(phases, block, step.token_states, None)
        return
    alive, ended = entries_of_token(phases)
    _store_resident(phases, block, step.token_states, alive)
    count = Name("count")
    for output in step.token_states:
        shape = phases.states_shape(Literal(LOAD), turned=phases.turned(output.dims))
        tensor = phases.contract.outputs[output.name]
        zeros = phases.constants.zeros(shape, tensor.element)
        rows = (Name("row") + Name("lane") + Name("start"), count)
        chip = phases.states_in(zeros, Literal(LOAD))
        _transfer(phases, block, tensor, output.dims, rows, chip, store=True, index=ended)


def _read_index(phases: Phases) -> Index | None:
    """Who addresses the states that are read, beside the kernel's shapes."""
    state, addresses = phases.step.state, phases.addresses
    if state.slots is not None:
        if phases.step.window_axes[0] != state.slots.batch:
            raise refuse(
                f"the batch axis `{state.slots.batch}` of a pool is not the outermost one",
                state.span,
                help="let the state's first axis be that of the slots",
            )
        numbers = addresses.read(state)
        assert numbers is not None
        return Index(numbers)
    if state.unless is not None:
        return _carried_index(phases)
    if state.accepted is None:
        return None
    numbers = addresses.kept(state)
    assert numbers is not None
    return Index(numbers, dimension(state.dims, state.accepted.axis), slot=False)


def _carried_index(phases: Phases) -> Index:
    """Who addresses the states of a kernel whose flag starts rows from zeros, in no pool."""
    state = phases.step.state
    if state.accepted is not None:
        raise refuse(
            "a flag beside the tokens that were kept is not emitted",
            state.span,
            help="leave out `unless`, and let a new row keep 0 tokens of a state of zeros",
        )
    numbers = phases.addresses.carried(state)
    flag = next(i for i in phases.contract.kernel.inputs if i.symbol == state.unless)
    outermost = state.dims[0]
    if not isinstance(outermost, Atom) or flag.type.axes != (outermost.axis,):
        raise refuse(
            f"the flag `{flag.name}` is over [{', '.join(flag.type.axes)}], which is not the "
            f"outermost axis of `{state.argument}`",
            state.span,
            help="let the state's first axis be that of the flag",
        )
    assert numbers is not None
    return Index(numbers)


def _transfer(
    phases: Phases,
    block: Block,
    tensor: Tile,
    dims: tuple[Dim, ...],
    rows: tuple[Number, Number],
    chip: StateTile,
    start: Number = ZERO,
    *,
    store: bool,
    index: Index | None,
) -> None:
    """Move the states of rows (first, count) to or from head `start` of a tile of so many."""
    count, delta = rows[1], phases.step.delta

    def move(body: Block, held: View, across: Across) -> None:
        move_states(
            body,
            tensor,
            dims,
            phases.window,
            rows,
            delta,
            held,
            across,
            store=store,
            index=index,
            ring=phases.ring,
        )

    if not phases.turned(dims):
        for keys in phases.key_tiles:
            held = chip.heads(keys, start, count)
            move(block, held, Across(delta.key_axis, keys.first, keys.width))
        return
    with phases.value_slices(block) as (body, first, width):
        held = slice_of(phases, chip, (start, count), (first, width))
        move(body, held, Across(delta.value_axis, first, width))
