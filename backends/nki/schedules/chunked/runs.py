"""Channels of a field of a packed axis, among all channels of a tensor.

Where a checkpoint keeps q, k, v and z side by side for each key head (`(Hk P)`), the channels of
one of them lie in *runs*: those of a head side by side, the next head's a fixed step behind them.
What goes through them in blocks of its own brings a block in run by run; blocks need not begin or
end where runs do. All channels of a tensor are one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import frozen

from backends.nki.program.build import Block
from backends.nki.program.numbers import ONE, ZERO, Largest, Name, Number, smallest
from backends.nki.program.structures import Record
from backends.nki.refusal import refuse
from backends.nki.select.addressing import Level, field_strides, row_levels
from gdsl.ir.dims import Atom, Dim, Product
from gdsl.source import Span

Part = tuple[tuple[str, str], ...]
"""(packed axis, field): which part of a tensor's packed axes something is; () for all of it."""
RECORD = "runs"
"""What functions know of runs; its fields follow."""
FIELDS = ("all_channels", "first_channel", "run_channels", "run_step")
ALL, FIRST, RUN, STEP = (Name(name) for name in FIELDS)


@frozen
class Runs:
    """Runs of `run` channels, `step` channels apart, of a tensor that has `channels`."""

    channels: Number
    first: Number
    run: Number
    step: Number

    @property
    def record(self) -> Record:
        """What `pieces` reads."""
        values = (self.channels, self.first, self.run, self.step)
        return Record(tuple(zip(FIELDS, values, strict=True)))


def whole(channels: Number) -> Runs:
    """Return the one run that all channels of a tensor are."""
    return Runs(channels, ZERO, channels, channels)


def runs_of(dims: Sequence[Dim], part: Part, channels: Number, span: Span | None) -> Runs:
    """Return where a part of a tensor's channels lies. Raises CompileError for other than runs."""
    if not part:
        return whole(channels)
    strides, first = field_strides(dims, dict(part))
    levels = row_levels(strides, strides.axes)
    run = levels[-1].count
    match levels:
        case (Level(step=last),) if last == ONE:
            return Runs(channels, first, run, run)
        case (Level(step=step), Level(step=last)) if last == ONE:
            return Runs(channels, first, run, step)
    raise refuse(
        "the channels of a field that lie neither side by side nor in runs at one distance",
        span,
        label=f"`{part[-1][1]}` is a field of it",
        help="pack fields within one axis of heads, as in `(Hk P)`, or beside one another",
    )


def part_of(dims: Sequence[Dim], part: Part) -> tuple[Dim, ...]:
    """Return the dimensions of a tensor that holds a part of the channels alone, in their order."""
    if not part:
        return tuple(dims)
    axes = tuple(Atom(axis) for axis in field_strides(dims, dict(part))[0].axes)
    return axes if len(axes) == 1 else (Product(axes),)


@contextmanager
def pieces(
    block: Block, begin: Number, count: Number
) -> Iterator[tuple[Block, Number, Number, Number]]:
    """Go through channels `begin` to `begin + count`, run by run; the record has been brought in.

    Yields the body, how many channels before, how many there are, and the first one's place in the
    tensor.
    """
    with block.loop("run", begin // RUN, (begin + count - 1) // RUN + 1) as (body, run):
        start = body.let("start", Largest(begin, run * RUN))
        many = body.let("many", smallest(begin + count, (run + 1) * RUN) - start)
        place = body.let("place", FIRST + run * (STEP - RUN) + start)
        yield body, start - begin, many, place
