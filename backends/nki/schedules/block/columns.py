"""Where the channels of a field lie among the columns of a weight.

Channels are used in *slices*: those of one head, side by side on partitions. Heads that lie at one
stride are units of one slice; where the outer head's fields are packed side by side (`(Hk P)`), a
unit is one outer head with the slices of its inner heads behind each other.
"""

from __future__ import annotations

from attrs import frozen

from backends.nki.program.numbers import ONE, Name, Number
from backends.nki.refusal import refuse
from backends.nki.schedules.block.sections import Field
from backends.nki.select.addressing import Level, field_strides, row_levels
from backends.nki.select.inputs import RowWindow
from gdsl.ir.kernel import Input


@frozen
class Columns:
    """`units` units `step` columns apart, each of `slices` slices of `width` columns."""

    first: Number
    units: Number
    step: Number
    slices: Number
    width: Number

    @property
    def run(self) -> Number:
        """Columns of a unit."""
        return self.slices * self.width

    @property
    def whole(self) -> bool:
        """Whether units follow each other without a gap."""
        return self.step == self.run

    @property
    def count(self) -> Number:
        """All slices."""
        return self.units * self.slices


def columns_of(weight: Input, part: Field, window: RowWindow) -> Columns:
    """Return the columns of a field on this core: the heads of its share.

    Heads without a wide axis are slices of one column.
    """
    strides, offset = field_strides(weight.dims, dict(part.packed))
    width = ONE if part.wide is None else Name(part.wide)
    if part.wide is not None and strides.of(part.wide) != ONE:
        raise refuse(f"`{part.wide}` is not the innermost axis of `{weight.name}`", weight.span)
    if not part.heads:
        return Columns(offset, ONE, width, ONE, width)
    if not {*window.shares} <= {part.heads[0]}:
        shared = next(iter(window.shares))
        raise refuse(
            f"heads of `{weight.name}` begin with `{part.heads[0]}`, but cores share `{shared}`",
            weight.span,
        )
    first = offset
    for axis, share in window.shares.items():
        first = first + share.first * strides.of(axis)
    match row_levels(strides, part.heads):
        case (Level(step=step),):
            return Columns(first, window.size(part.heads), step, ONE, width)
        case (Level(step=step), Level(step=inside)) if inside == width:
            inner = window.size(part.heads[1:])
            return Columns(first, window.size(part.heads[:1]), step, inner, width)
    lying = (*part.heads, part.wide) if part.wide else part.heads
    raise refuse(
        f"the heads of `{weight.name}` do not lie side by side",
        weight.span,
        label=f"`{part.name}` is used as heads [{', '.join(part.heads)}]",
        help=f"lay its channels out as ({' '.join(lying)}), the last cycling fastest",
    )


def spanned(columns: Columns) -> Columns:
    """Return one unit from the first column to the last: single columns are no run to transfer."""
    span = columns.units * columns.run
    if not columns.whole:
        span = (columns.units - 1) * columns.step + columns.run
    return Columns(columns.first, ONE, span, ONE, span)
