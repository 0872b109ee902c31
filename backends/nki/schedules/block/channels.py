"""Where channels lie: those of a field in a tensor, and a field's heads among the decode rows."""

from __future__ import annotations

from attrs import frozen

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import Element, Pattern, Token, View
from backends.nki.program.numbers import ONE, ZERO, Name, Number, product
from backends.nki.refusal import refuse
from backends.nki.schedules.block.sections import Field, Value
from backends.nki.select.addressing import Level, Strides, field_strides, row_levels
from backends.nki.select.inputs import RowWindow
from gdsl.ir.dims import Dim
from gdsl.source import Span


@frozen
class Lying:
    """The channels of a field in a tensor: heads at one stride, the channels of a head as a run."""

    first: Number
    """The element of the first channel of this core."""
    step: Number
    """Elements from head to head."""
    strides: Strides
    """Of every axis, for entries and tokens."""


def lying(
    dims: tuple[Dim, ...], field: Field, window: RowWindow, run: Number, span: Span | None
) -> Lying:
    """Return where a field lies; its channels are `run` elements apart.

    Raises CompileError where heads or channels do not follow each other.
    """
    strides, first = field_strides(dims, dict(field.packed))
    levels = row_levels(strides, field.heads, window.sizes)
    if len(levels) != 1 or field.wide is None or strides.of(field.wide) != run:
        raise refuse(
            f"the channels of `{field.name}` are not heads of `{field.wide}` side by side", span
        )
    for axis, share in window.shares.items():
        first = first + share.first * strides.of(axis)
    return Lying(first, levels[0].step, strides)


@frozen
class Rows:
    """What the columns of a channel-major tile enumerate: tokens, entries, heads.

    A tile of rows has one token at a time; a kernel for one token has no such axis.
    """

    token: str | None
    entry: str
    axes: tuple[str, ...]
    """The heads of the delta rule."""
    window: RowWindow

    @property
    def tokens(self) -> Number:
        """Tokens."""
        return ONE if self.token is None else Name(self.token)

    @property
    def entries(self) -> Number:
        """Entries of the batch, or of a team of them."""
        return self.window.size((self.entry,))

    @property
    def count(self) -> Number:
        """Rows of all tokens."""
        return self.tokens * self.entries * self.window.size(self.axes)

    def columns(self, field: Field) -> Number:
        """Columns of a field's channel-major tile."""
        return self.tokens * self.entries * self.window.size(field.heads)

    def complete(self, field: Field) -> bool:
        """Whether a field has a column for each row."""
        return field.heads == self.axes

    def spread(
        self, block: Block, value: Value, src: View, function: str, element: Element
    ) -> View:
        """Write a field's columns once for each row: heads in a group see those of their head."""
        field = value.port.field
        dst = block.tile(f"{value.name}_T_sb", (src.shape[0], self.count), element)
        if self.complete(field):
            block.do("activation", dst=dst, op=Token(function), data=src)
            return dst
        levels = self._levels(field)
        counts = tuple(level.count for level in levels)
        steps = tuple((product(counts[i + 1 :]), count) for i, count in enumerate(counts))
        wide = src.shape[0]
        to = Pattern(dst.tile, ((self.count, wide), *steps), ZERO)
        data = Pattern(
            src.tile,
            ((self.columns(field), wide), *((level.step, level.count) for level in levels)),
            ZERO,
        )
        block.do("activation", dst=to, op=Token(function), data=data)
        return dst

    def _levels(self, field: Field) -> tuple[Level, ...]:
        sizes = self.window.sizes
        inner: tuple[Number, ...] = ()
        steps: list[tuple[str, tuple[Number, ...]]] = []
        around = (self.entry,) if self.token is None else (self.token, self.entry)
        for axis in reversed((*around, *field.heads)):
            steps.append((axis, inner))
            inner = (sizes.get(axis, Name(axis)), *inner)
        return row_levels(Strides(tuple(steps)), (*around, *self.axes), sizes)

    def at_hand(self, view: View) -> View:
        """The columns of the tile of rows that is processed, of a view with all rows."""
        window = self.window
        first = window.first
        if self.token is not None:
            first = window.outer[self.token] * window.size(window.axes) + first
        return part(view, None, (first, window.count))

    def column_at_hand(self, view: View) -> View:
        """The same for one number per row, kept 128 to a column."""
        return part(view, (ZERO, self.window.count), (self.window.first // Name("ROWS"), ONE))
