"""Rows of different lengths (right padding): zeros behind the end, the window at the end.

Tokens behind the end may be anything, NaN included: no sum before the end sees them, and what
they give is replaced, never multiplied by zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import frozen

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import (
    F32,
    I32,
    U8,
    Element,
    Integers,
    Operand,
    Pattern,
    Space,
    Tile,
    Token,
    View,
)
from backends.nki.program.numbers import NONE, ONE, ZERO, Literal, Name, Number, binary, smallest
from backends.nki.schedules.window.tensors import (
    LANES,
    MANY,
    ROW,
    ROWS,
    SYNC,
    Tensors,
)
from backends.nki.select.addressing import axes_of

TOKEN, COUNT = Name("token"), Name("tokens")


@frozen
class Lengths:
    """The instructions that lengths need; none for a kernel without."""

    tensors: Tensors

    def write_load(self, block: Block) -> None:
        """Bring in the lengths, on every partition and as places of transfers."""
        length = self.tensors.filter.length
        if length is None:
            return
        batch = Name(self.tensors.filter.batch)
        source = self.tensors.argument(length.name)
        zero_sb = block.tile("zero_sb", (LANES, ONE), self._out)
        with self._given(block) as given:
            given.origin = length.span
            given.comment("Lengths on every partition, and where each row's last window begins.")
            raw_sb = given.tile("raw_sb", (LANES, batch), source.element)
            every = Pattern(source, ((ZERO, LANES), (ONE, batch)), ZERO)
            given.do("dma_copy", dst=raw_sb, src=every, **SYNC)
            length_sb = given.tile("length_sb", (LANES, batch), F32)
            given.do(
                "tensor_scalar",
                dst=length_sb,
                data=raw_sb,
                op0=Token("nl.minimum"),
                operand0=self._total,
            )
            begin_sb = given.tile("begin_sb", (ONE, batch), I32)
            given.do(
                "tensor_scalar",
                dst=begin_sb,
                data=part(length_sb, (ZERO, ONE), None),
                op0=Token("nl.subtract"),
                operand0=self.tensors.columns,
            )
            given.do("memset", dst=zero_sb, value=Literal(0.0))

    def write_dead(self, block: Block) -> None:
        """Mark the tokens of this tile that lie behind the end of their row."""
        filter = self.tensors.filter
        if filter.length is None:
            return
        dead_sb = block.tile("dead_sb", (LANES, ROWS, COUNT), U8)
        with self._given(block) as given:
            given.origin = filter.run.span
            given.comment("Tokens behind the end of their row.")
            place_sb = given.tile("place_sb", (LANES, COUNT), F32)
            pattern = Integers(((ONE, COUNT),))
            given.do("iota", dst=place_sb, pattern=pattern, offset=TOKEN)
            with given.loop("entry", ZERO, ROWS) as (body, entry):
                body.do(
                    "tensor_scalar",
                    dst=part(dead_sb, None, (entry, ONE), None),
                    data=place_sb,
                    op0=Token("nl.greater_equal"),
                    operand0=part(self._lengths, None, (ROW + entry, ONE)),
                )

    def write_zeros(self, block: Block, out_sb: View) -> None:
        """Put zeros where no token is."""
        if self.tensors.filter.length is None:
            return
        with self._given(block) as given:
            zero = Tile("zero_sb", (LANES, ONE), self._out, Space.SBUF)
            dead = Tile("dead_sb", (LANES, ROWS, COUNT), U8, Space.SBUF)
            given.do(
                "tensor_copy_predicated",
                dst=out_sb,
                src=Pattern(zero, ((ONE, LANES), (ZERO, ROWS), (ZERO, COUNT)), ZERO),
                predicate=View(dead, dead.shape),
            )

    def write_dead_windows(self, block: Block, shown_sb: View, place: Number) -> None:
        """Put zeros where the token at `place` is none: [lanes, rows, channels, columns]."""
        if self.tensors.filter.length is None:
            return
        many = shown_sb.shape[2] * shown_sb.shape[3]
        with self._given(block) as given:
            zero = given.tile("no_window_sb", (LANES, ONE), shown_sb.tile.element)
            given.do("memset", dst=zero, value=Literal(0.0))
            dead = Tile("dead_sb", (LANES, ROWS, COUNT), U8, Space.SBUF)
            given.do(
                "tensor_copy_predicated",
                dst=Pattern(shown_sb.tile, ((ROWS * many, LANES), (many, ROWS), (ONE, many)), ZERO),
                src=Pattern(zero.tile, ((ONE, LANES), (ZERO, ROWS), (ZERO, many)), ZERO),
                predicate=Pattern(
                    dead, ((ROWS * COUNT, LANES), (COUNT, ROWS), (ZERO, many)), place
                ),
            )

    def write_windows(self, block: Block, window_sb: View, new_sb: View) -> None:
        """Find the windows at the end of each row, with the first tokens' lines under way."""
        if self.tensors.filter.length is None or self.tensors.filter.new_state is None:
            return
        first = compare("==", TOKEN, ZERO)
        condition = self.tensors.lengths()
        if condition is not None and condition != Literal(True):
            first = binary("and", condition, first)
        with block.when(first) as inner:
            inner.origin = self.tensors.filter.state.span
            inner.do("memset", dst=new_sb, value=Literal(0.0))
            self._inside(inner, new_sb)
            self._near_the_start(inner, window_sb, new_sb)

    @property
    def missing(self) -> Number:
        """The condition that every row has all tokens; false for a kernel that needs lengths."""
        length = self.tensors.filter.length
        if length is None:
            return Literal(True)
        if length.name in self.tensors.contract.optional:
            return compare("==", Name(length.name), NONE)
        return Literal(False)

    def _inside(self, block: Block, new_sb: View) -> None:
        """Rows that are longer than a window end in the tokens alone."""
        tensors, filter = self.tensors, self.tensors.filter
        columns, axis = tensors.columns, filter.run.axis or ""
        block.comment("Rows as long as a window: its columns from HBM; no transfer for others.")
        place = [a for dim in filter.token.dims for a in (axes_of((dim,)) or [""])].index(axis)
        with block.when(compare(">=", self._total, columns)) as long:
            begin = Tile("begin_sb", (ONE, Name(filter.batch)), I32, Space.SBUF)
            with long.loop("entry", ZERO, ROWS) as (body, entry):
                at = part(View(begin, begin.shape), None, (ROW + entry, ONE))
                source = tensors.block(
                    tensors.argument(filter.token.name),
                    filter.token.dims,
                    (axis, ZERO, columns),
                    index=(at, place),
                    one_row=ROW + entry,
                )
                skip: Operand = Token("nisa.oob_mode.skip")
                target = part(new_sb, None, (entry, ONE), None, None)
                body.do("dma_copy", dst=target, src=source, oob_mode=skip)

    def _near_the_start(self, block: Block, window_sb: View, new_sb: View) -> None:
        """Rows shorter than a window keep columns of the old one."""
        tensors, filter = self.tensors, self.tensors.filter
        columns = tensors.columns
        block.comment("Shorter rows: columns of the old window and of the first tokens.")
        few = block.let_named("few", smallest(self._total, columns))
        element = new_sb.tile.element
        head_sb = block.tile("head_sb", (LANES, ROWS, MANY, columns + few), element)
        block.do("tensor_copy", dst=part(head_sb, None, None, None, (ZERO, columns)), src=window_sb)
        tokens_sb = block.tile(
            "first_sb", (LANES, ROWS, MANY, few), tensors.argument(filter.token.name).element
        )
        source = tensors.argument(filter.token.name)
        with block.loop("entry", ZERO, ROWS) as (body, entry):
            hbm = tensors.block(
                source,
                filter.token.dims,
                (filter.run.axis or "", ZERO, few),
                one_row=ROW + entry,
            )
            target = part(tokens_sb, None, (entry, ONE), None, None)
            body.do("dma_copy", dst=target, src=hbm, **SYNC)
        block.do("tensor_copy", dst=part(head_sb, None, None, None, (columns, few)), src=tokens_sb)
        with block.loop("length", ZERO, smallest(self._total + 1, columns)) as (body, length):
            equal_sb = body.tile("equal_sb", (LANES, ROWS), U8)
            body.do(
                "tensor_scalar",
                dst=equal_sb,
                data=part(self._lengths, None, (ROW, ROWS)),
                op0=Token("nl.equal"),
                operand0=length,
            )
            body.do(
                "tensor_copy_predicated",
                dst=new_sb,
                src=part(head_sb, None, None, None, (length, columns)),
                predicate=tensors.per_row(equal_sb, MANY * columns),
            )

    @property
    def _total(self) -> Number:
        return Name(self.tensors.filter.run.axis or "")

    @property
    def _out(self) -> Element:
        return self.tensors.contract.outputs[self.tensors.filter.out.name].element

    @property
    def _lengths(self) -> View:
        tile = Tile("length_sb", (LANES, Name(self.tensors.filter.batch)), F32, Space.SBUF)
        return View(tile, tile.shape)

    @contextmanager
    def _given(self, block: Block) -> Iterator[Block]:
        """What happens only if the caller gave lengths."""
        condition = self.tensors.lengths()
        if condition is None or condition == Literal(True):
            yield block
            return
        with block.when(condition) as inner:
            yield inner
