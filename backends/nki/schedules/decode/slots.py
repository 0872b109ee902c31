"""States in a pool of slots: row b of the batch reads slot read[b] and writes slot write[b].

The slot numbers lie in SBUF, on one partition, and address each transfer when the kernel runs. A
number outside the pool skips the transfer: memory was zeroed before, so the row starts from zeros;
nothing is written, so the slot keeps its bits. A row without an initial state reads slot -1. Rows
that neither read nor write give zeros.
"""

from __future__ import annotations

from attrs import evolve, frozen

from backends.nki.program.build import Block
from backends.nki.program.nodes import Operand, Pattern, Tile, Token, View
from backends.nki.program.numbers import Name, Number
from backends.nki.refusal import refuse
from backends.nki.schedules.addresses import Addresses, dimension, of_entry
from backends.nki.schedules.decode.step import Step
from backends.nki.select.addressing import strides
from backends.nki.select.inputs import RowWindow, base_of, columns_of, entries_of, state_steps

SKIP = Token("nisa.oob_mode.skip")


@frozen
class Slots:
    """The slot numbers of a pool, in SBUF: [1, batch]."""

    step: Step
    read: View
    write: View | None

    def transfer(
        self,
        block: Block,
        pool: Tile,
        chip: View,
        window: RowWindow,
        rows: tuple[Number, Number],
        *,
        store: bool,
        values: tuple[Number, Number] | None = None,
    ) -> None:
        """Move the states of rows (first, count): one transfer per entry of the batch."""
        slots = self.write if store else self.read
        if slots is None:
            return
        delta, tensor = self.step.delta, strides(self.step.state.dims)
        width = Name(delta.key_axis if values else delta.value_axis)
        step = tensor.of(self.step.window_axes[-1])
        with entries_of(block, window, rows) as (body, entry, begin, many, place):
            steps, within = state_steps(tensor, delta, (step, many), values)
            start = base_of(tensor, window) + begin * step + within
            hbm = Pattern(pool, steps, start, of_entry(slots, entry))
            on_chip = columns_of(chip, place * width, many * width)
            sides: dict[str, Operand] = (
                {"dst": hbm, "src": on_chip} if store else {"dst": on_chip, "src": hbm}
            )
            body.do("dma_copy", **sides, oob_mode=SKIP)


def slots_of(addresses: Addresses, step: Step) -> Slots | None:
    """Return the slots of a state; None for a state that is in no pool."""
    declared = step.state.slots
    if declared is None:
        return None
    if step.window_axes[0] != declared.batch:
        raise refuse("a pool whose batch axis is not the outermost one", step.state.span)
    read = addresses.read(step.state)
    assert read is not None
    return Slots(step, read, addresses.write(step.state))


def accepted(source: Pattern, step: Step, counts: View | None) -> Pattern:
    """Return the states after as many tokens as the batch entry kept."""
    declared = step.state.accepted
    assert declared is not None
    assert counts is not None
    place = dimension(step.state.dims, declared.axis)
    return evolve(source, index=of_entry(counts, Name("entry")), indexed_dim=place)
