"""States in a pool of slots: row b of the batch reads slot read[b] and writes slot write[b].

The slot numbers lie in SBUF, on one partition, and address each transfer when the kernel runs. A
number outside the pool skips the transfer: memory was zeroed before, so the row starts from zeros;
nothing is written, so the slot keeps its bits. A row without an initial state reads slot -1. Rows
that neither read nor write give zeros.
"""

from __future__ import annotations

from attrs import evolve, frozen

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import I32, U8, Operand, Pattern, Tile, Token, View
from backends.nki.program.numbers import ONE, Largest, Literal, Name, Number, product, smallest
from backends.nki.refusal import refuse
from backends.nki.schedules.decode.step import Step
from backends.nki.select.addressing import axes_of, strides
from backends.nki.select.helpers import QUEUE
from gdsl.ir.kernel import Kernel
from gdsl.ir.node import Symbol

SKIP = Token("nisa.oob_mode.skip")


@frozen
class Slots:
    """The slot numbers of a pool, in SBUF: [1, batch]."""

    step: Step
    heads: Number
    """Rows per entry of the batch."""
    read: View
    write: View | None

    def transfer(
        self, block: Block, pool: Tile, chip: View, row: Number, count: Number, *, store: bool
    ) -> None:
        """Move the states of `count` rows from `row` on: one transfer per entry of the batch."""
        slots = self.write if store else self.read
        if slots is None:
            return
        delta, tensor = self.step.delta, strides(self.step.state.dims)
        K, V = Name(delta.key_axis), Name(delta.value_axis)
        step = tensor.of(self.step.window_axes[-1])
        entries = (row // self.heads, (row + count - 1) // self.heads + 1)
        with block.loop("entry", *entries) as (body, entry):
            begin = body.let_named("begin", Largest(row, entry * self.heads))
            end = body.let_named("end", smallest(row + count, (entry + 1) * self.heads))
            hbm = Pattern(
                pool,
                ((tensor.of(delta.key_axis), K), (step, end - begin), (tensor.of(V.name), V)),
                (begin - entry * self.heads) * step,
                part(slots, None, (entry, 1)),
            )
            on_chip = part(chip, None, ((begin - row) * V, (end - begin) * V))
            sides: dict[str, Operand] = (
                {"dst": hbm, "src": on_chip} if store else {"dst": on_chip, "src": hbm}
            )
            body.do("dma_copy", **sides, oob_mode=SKIP)


def load_slots(block: Block, step: Step, tensors: dict[str, Tile]) -> Slots | None:
    """Bring in the slot numbers; None for a state that is in no pool."""
    declared = step.state.slots
    if declared is None:
        return None
    if step.window_axes[0] != declared.batch:
        raise refuse("a pool whose batch axis is not the outermost one", step.state.span)
    batch = Name(declared.batch)
    heads = product(tuple(Name(axis) for axis in step.window_axes[1:]))
    read = _row(block, tensors[_name(step.kernel, declared.read)], batch)
    if step.state.unless is not None:
        read = _selected(block, read, tensors[_name(step.kernel, step.state.unless)], batch)
    write = None
    if declared.write is not None:
        write = _row(block, tensors[_name(step.kernel, declared.write)], batch)
    return Slots(step, heads, read, write)


def load_accepted(block: Block, step: Step, tensors: dict[str, Tile]) -> View | None:
    """Bring in how many tokens were kept, [1, batch]; None for a state without that."""
    declared = step.state.accepted
    if declared is None:
        return None
    batch = Name(step.state.type.axes[0])
    return _row(block, tensors[_name(step.kernel, declared.symbol)], batch)


def accepted(source: Pattern, step: Step, counts: View | None) -> Pattern:
    """Return the states after as many tokens as the batch entry kept."""
    declared = step.state.accepted
    assert declared is not None
    assert counts is not None
    place = [axis for dim in step.state.dims for axis in axes_of((dim,))[:1]].index(declared.axis)
    return evolve(source, index=part(counts, None, (Name("entry"), 1)), indexed_dim=place)


def _row(block: Block, tensor: Tile, batch: Number) -> View:
    """A vector over the batch, on one partition."""
    row = block.tile(f"{tensor.name}_slots_sb", (ONE, batch), tensor.element)
    source = View(tensor, tensor.shape)
    block.do("dma_copy", dst=row, src=source, **QUEUE)
    return row


def _selected(block: Block, read: View, flags: Tile, batch: Number) -> View:
    """The slots to read, -1 where the flag is false."""
    flag = _row(block, flags, batch)
    predicate = block.tile(f"{flags.name}_sb", (ONE, batch), U8)
    block.do("tensor_copy", dst=predicate, src=flag)
    chosen = block.tile("initial_slots_sb", (ONE, batch), I32)
    block.do("memset", dst=chosen, value=Literal(-1))
    block.do("tensor_copy_predicated", dst=chosen, src=read, predicate=predicate)
    return chosen


def _name(kernel: Kernel, symbol: Symbol) -> str:
    return next(item.name for item in kernel.inputs if item.symbol == symbol)
