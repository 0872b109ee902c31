"""States on their way between HBM and SBUF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import Tile, View
from backends.nki.program.numbers import NONE, ZERO, Literal, Name, Number, number, smallest
from backends.nki.refusal import refuse
from backends.nki.schedules.addresses import dimension
from backends.nki.schedules.decode.ended import entries_of_token
from backends.nki.schedules.decode.turned import slice_of, turn_in, turn_out, turned_shape
from backends.nki.select.layouts import GPSIMD, SCALAR
from backends.nki.select.state_moves import Index, move_states
from gdsl.ir.dims import Atom, Dim
from gdsl.ir.kernel import Output

if TYPE_CHECKING:
    from backends.nki.schedules.decode.phases import Phases

LOAD = 8
"""Heads per transfer in: 4 KiB per partition. As many leave at once where states are resident."""


def load_states(phases: Phases) -> None:
    (K, V), block = phases.sizes, phases.blocks["load_states"]
    heads = phases.window.count if phases.resident else phases.heads
    phases.state = chip = block.tile("state_sb", (K, heads * V), phases.held)
    state = phases.step.state
    turned = phases.turned(state.dims)
    if turned or phases.held != phases.stored:
        shape = turned_shape(phases, heads) if turned else phases.state.shape
        chip = phases.arrived = block.tile("arrived_sb", shape, phases.stored)
    pool, index = phases.contract.tensors[state.argument], _read_index(phases)
    if state.slots is not None:
        block.do("memset", dst=chip, value=Literal(0.0), engine=GPSIMD)
        rows = (Name("row"), heads)
        _transfer(phases, block, pool, state.dims, rows, (chip, heads), store=False, index=index)
    elif state.argument in phases.contract.optional:
        zeros, given = block.inner(), block.inner()
        zeros.do("memset", dst=chip, value=Literal(0.0), engine=GPSIMD)
        _fetch_states(phases, given, pool, (chip, heads), index)
        missing = compare("==", Name(state.argument), NONE)
        if state.inplace:
            missing = Name(f"{state.argument}_missing")
        block.decide(missing, zeros, given)
    else:
        _fetch_states(phases, block, pool, (chip, heads), index)
    if turned and phases.resident:
        with block.loop("head", 0, heads) as (body, head):
            turn_in(phases, body, heads, head)
    elif phases.held != phases.stored:
        with block.loop("start", 0, heads, LOAD) as (body, start):
            columns = (start * V, smallest(LOAD, heads - start) * V)
            dst, src = (part(tile, None, columns) for tile in (phases.state, chip))
            body.do("tensor_copy", dst=dst, src=src, engine=SCALAR)


def _fetch_states(
    phases: Phases, block: Block, pool: Tile, chip: tuple[View, Number], index: Index | None
) -> None:
    dims = phases.step.state.dims
    if phases.step.state.unless is not None:
        block.comment("Rows that start anew are not read: they begin with zeros.")
        block.do("memset", dst=chip[0], value=Literal(0.0), engine=GPSIMD)
    with block.loop("start", 0, chip[1], LOAD) as (body, start):
        count = body.let_named("count", smallest(LOAD, chip[1] - start))
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
        new, of, start = phases.new_tile(count), number(count), number(0)
        if phases.turned(output.dims):
            new, of, start = phases.leaving_tile(phases.heads), phases.heads, Name("start")
        chip = (View(new, new.shape), of)
        _transfer(phases, block, tensor, output.dims, rows, chip, start, store=True, index=index)


def _store_resident(
    phases: Phases, block: Block, outputs: Sequence[Output], index: Index | None
) -> None:
    """States start, start + 1, ... of a group of a tile of rows to HBM, `count` of them."""
    first, count = Name("lane") + Name("start"), Name("count")
    for output in outputs:
        tensor, at = phases.contract.outputs[output.name], (Name("row") + first, count)
        chip, start, V = (phases.state, phases.window.count), first, phases.sizes[1]
        if not phases.turned(output.dims) and tensor.element != phases.held:
            leaving = block.tile("leaving_sb", (phases.sizes[0], count * V), tensor.element)
            new = part(phases.state, None, (first * V, count * V))
            block.do("tensor_copy", dst=leaving, src=new, engine=GPSIMD)
            chip, start = (leaving, count), ZERO
        if phases.turned(output.dims):
            leaving = block.tile("leaving_sb", turned_shape(phases, count), tensor.element)
            with block.loop("head", 0, count) as (each, head):
                old = (phases.state, (first + head) * V)
                turn_out(phases, each, old, leaving, count, head)
            chip, start = (leaving, count), ZERO
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
        shape: tuple[Number, ...] = (phases.sizes[0], LOAD * phases.sizes[1])
        if phases.turned(output.dims):
            shape = turned_shape(phases, Literal(LOAD))
        tensor = phases.contract.outputs[output.name]
        zeros = phases.constants.zeros(shape, tensor.element)
        rows = (Name("row") + Name("lane") + Name("start"), count)
        chip = (zeros, Literal(LOAD))
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
    chip: tuple[View, Number],
    start: Number = ZERO,
    *,
    store: bool,
    index: Index | None,
) -> None:
    """Move the states of rows (first, count) to or from head `start` of a tile of so many."""
    (tile, of), count, V, step = chip, rows[1], phases.sizes[1], phases.step

    def move(body: Block, held: View, values: tuple[Number, Number] | None) -> None:
        move_states(
            body,
            tensor,
            dims,
            phases.window,
            rows,
            step.delta,
            held,
            store=store,
            values=values,
            index=index,
            ring=phases.ring,
        )

    if not phases.turned(dims):
        move(block, part(tile, None, (start * V, count * V)), None)
        return
    with phases.value_slices(block) as (body, first, width):
        values = (first, width)
        move(body, slice_of(phases, tile, of, (start, count), values), values)
