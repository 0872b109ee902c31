"""One token through the windows of a field: the sums over the taps, and the window slid.

Windows are moved with (entry, head) on partitions, so that the columns of all channels of a head
are one run; sums are formed with the channels of a head on partitions, where tokens come from a
projection and where the delta rule wants its keys. TensorE turns one into the other, column by
column; the newest column goes back the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import frozen

from backends.nki.program.build import Block, Names, compare, every, interleaved, part
from backends.nki.program.nodes import (
    F32,
    Element,
    Function,
    Pattern,
    Space,
    Tile,
    Token,
    View,
    dtype_of,
)
from backends.nki.program.numbers import ONE, ZERO, Extent, Literal, Name, Number
from backends.nki.program.outline import outline
from backends.nki.schedules.block.row_chunks import (
    CHUNK,
    COUNT,
    ENTRIES,
    ENTRY,
    HEAD,
    HEADS,
    ROWS,
    SOME,
    chunks,
    fetched,
)
from backends.nki.schedules.block.window_places import (
    COLUMNS,
    NEW,
    SKIP,
    TAPS,
    TOKEN,
    WIDE,
    WINDOW,
    Place,
)
from backends.nki.select.helpers import QUEUE
from backends.nki.select.layouts import GPSIMD, SCALAR, TENSOR, VECTOR

COLUMN, BEGIN = Name("column"), Name("begin")


@frozen
class TokenStep:
    """What differs between kernels; each combination is one function of the module."""

    before: int
    """Column of the old window that tap 0 weighs."""
    given: bool
    """Whether tokens come from HBM, entries with heads, or from a tile with channels turned."""
    rounded: Element | None
    """What tokens from HBM are rounded to."""
    element: Element
    """Of the window."""
    optional: bool
    """Whether the window may be left out."""
    reads_slots: bool
    writes_slots: bool
    stored: bool
    """Whether the new window is stored at all."""

    def fetch(self, name: str) -> Function:
        """Return the function that brings in the windows of a field, all entries and heads."""
        block = Block(Names())
        windows = _windows(self.element)
        if self.reads_slots:
            block.do("memset", dst=windows, value=Literal(0.0), engine=GPSIMD)
        target = block.inner()
        with _bodies(target) as body:
            body.fetch(self)
        if self.optional and not self.reads_slots:
            missing = block.inner()
            missing.do("memset", dst=windows, value=Literal(0.0), engine=GPSIMD)
            block.decide(Name("missing"), missing, target)
        else:
            block.extend(target)
        doc = "Bring in windows, an (entry, head) per partition, 128 of them side by side."
        return outline(name, doc, block.statements)

    def function(self, name: str) -> Function:
        """Return the function that filters: one call does all entries and heads of a field."""
        block = Block(Names())
        block.let_named("wide", Extent("sum_sb", 0))
        with _bodies(block) as body:
            body.write(self)
        doc = "Slide the windows of one token and sum over the taps: `heads` heads, all entries."
        return outline(name, doc, block.statements)


def _windows(element: Element) -> View:
    return fetched("windows_sb", element)


@contextmanager
def _bodies(block: Block) -> Iterator[_Body]:
    """Go through all (entry, head), up to 128 at once."""
    with chunks(block) as body:
        body.let_named("begin", CHUNK * (WIDE * COLUMNS))
        yield _Body(body)


@frozen
class _Body:
    """The instructions for up to 128 (entry, head)."""

    block: Block

    def write(self, form: TokenStep) -> None:
        self.block.let_named("column", ENTRY * HEADS + HEAD)
        newest, newest_row = self._token(form)
        if form.stored:
            self._slide(form, newest_row)
        self._sum(form, newest)

    def fetch(self, form: TokenStep) -> None:
        windows, run = _windows(form.element), WIDE * COLUMNS
        if form.reads_slots:
            self._slots(WINDOW, (windows, BEGIN), "read_slots", store=False)
            return
        mine = part(windows, (ZERO, ROWS), (BEGIN, run))
        self.block.do("dma_copy", dst=mine, src=WINDOW.runs(run), **QUEUE)

    def _slots(self, place: Place, chip: tuple[View, Number], slots: str, *, store: bool) -> None:
        """The windows of the slots of some entries, one transfer each; none outside the pool."""
        numbers = Tile(slots, (ONE, ENTRIES), F32, Space.SBUF)
        with self.block.loop("member", ZERO, SOME, exact=True) as (body, member):
            index = part(View(numbers, numbers.shape), None, (ENTRY + member, ONE))
            steps = ((place.step, COUNT), (ONE, WIDE * COLUMNS))
            hbm = Pattern(place.tile, steps, place.first + HEAD * place.step, index)
            mine = part(chip[0], (member * COUNT, COUNT), (chip[1], WIDE * COLUMNS))
            dst, src = (hbm, mine) if store else (mine, hbm)
            body.do("dma_copy", dst=dst, src=src, oob_mode=SKIP)

    def _token(self, form: TokenStep) -> tuple[Pattern, View]:
        """The newest column: channels turned, as [wide, some, count], and as rows."""
        block = self.block
        if not form.given:
            turned = Tile("token_sb", (WIDE, ENTRIES * HEADS), form.element, Space.SBUF)
            mine = part(View(turned, turned.shape), None, (COLUMN, ROWS))
            element = dtype_of("token_sb", F32.bytes)
            row = block.tile("token_psum", (ROWS, WIDE), element, Space.PSUM)
            block.do("nc_transpose", dst=row, data=mine, engine=TENSOR)
            return self._columns(turned, ENTRIES * HEADS, HEADS, COLUMN), row
        element = dtype_of("token", F32.bytes)
        row = block.tile("token_sb", (ROWS, WIDE), element)
        block.do("dma_copy", dst=row, src=TOKEN.runs(WIDE), **QUEUE)
        if form.rounded is not None:
            exact, row = row, block.tile("rounded_sb", (ROWS, WIDE), form.rounded)
            block.do("tensor_copy", dst=row, src=exact)
        psum = block.tile("token_psum", (WIDE, ROWS), row.tile.element, Space.PSUM)
        block.do("nc_transpose", dst=psum, data=row, engine=TENSOR)
        return self._columns(psum.tile, ROWS, COUNT, ZERO), row

    def _columns(self, tile: Tile, free: Number, apart: Number, first: Number) -> Pattern:
        """Columns (entry, head) of a tile that is turned: [wide, some, count]."""
        steps = ((free, WIDE), (apart, SOME), (ONE, COUNT))
        return Pattern(tile, steps, first)

    def _slide(self, form: TokenStep, newest: View) -> None:
        """The windows without their oldest column, and the token."""
        block, run = self.block, WIDE * COLUMNS
        block.comment("The window slides by one column.")
        new = block.tile("new_sb", (ROWS, run), dtype_of("new_window", F32.bytes))
        last = every(new, COLUMNS - 1, COLUMNS, WIDE)
        block.do("tensor_copy", dst=last, src=newest, engine=SCALAR)
        with block.when(compare(">", COLUMNS, ONE)) as older:
            windows = _windows(form.element)
            columns = (COLUMNS, WIDE), (ONE, COLUMNS - 1)
            older.do(
                "tensor_copy",
                dst=Pattern(new.tile, ((run, ROWS), *columns), ZERO),
                src=Pattern(windows.tile, ((windows.shape[1], ROWS), *columns), BEGIN + 1),
                engine=GPSIMD,
            )
        if form.writes_slots:
            self._slots(NEW, (new, ZERO), "write_slots", store=True)
            return
        block.do("dma_copy", dst=NEW.runs(run), src=new, **QUEUE)

    def _sum(self, form: TokenStep, newest: Pattern) -> None:
        """The taps over the old columns and the token, fp32."""
        block = self.block
        total = Tile("sum_sb", (WIDE, ENTRIES * HEADS), F32, Space.SBUF)
        taps = Tile("taps_sb", (WIDE, TAPS * HEADS), F32, Space.SBUF)
        dst = self._columns(total, ENTRIES * HEADS, HEADS, COLUMN)

        def weight(tap: Number) -> Pattern:
            steps = ((TAPS * HEADS, WIDE), (ZERO, SOME), (ONE, COUNT))
            return Pattern(taps, steps, tap * HEADS + HEAD)

        multiply = Token("nl.multiply")
        block.do("tensor_tensor", dst=dst, data1=newest, data2=weight(TAPS - 1), op=multiply)
        with block.loop("tap", ZERO, TAPS - 1, exact=True) as (body, tap):
            turned = body.tile("turned_psum", (WIDE, ROWS), form.element, Space.PSUM)
            place = body.let_named("place", tap + form.before)
            column = interleaved(_windows(form.element), ROWS, BEGIN, place, COLUMNS, WIDE)
            body.do("nc_transpose", dst=turned, data=column, engine=TENSOR)
            product = body.tile("product_sb", (WIDE, ROWS), F32)
            body.do(
                "tensor_tensor",
                dst=self._columns(product.tile, ROWS, COUNT, ZERO),
                data1=self._columns(turned.tile, ROWS, COUNT, ZERO),
                data2=weight(tap),
                op=multiply,
                engine=VECTOR,
            )
            body.do(
                "tensor_tensor",
                dst=part(View(total, total.shape), None, (COLUMN, ROWS)),
                data1=part(View(total, total.shape), None, (COLUMN, ROWS)),
                data2=product,
                op=Token("nl.add"),
            )
