"""Several tokens through the windows of a field of a team of entries of the batch.

The old window and the tokens of a channel are one line of columns. It is put together with (entry,
head) on partitions, where the window after token t is its columns t + 1, t + 2, ..., and turned
column by column to channels on partitions, where a tap is one instruction for all tokens.
"""

from __future__ import annotations

from attrs import frozen

from backends.nki.program.build import Block, Names, every, part
from backends.nki.program.nodes import (
    F32,
    U8,
    Element,
    Function,
    Operand,
    Pattern,
    Range,
    Space,
    Tile,
    Token,
    View,
    dtype_of,
)
from backends.nki.program.numbers import ONE, ZERO, Extent, Literal, Name, Number, smallest
from backends.nki.program.outline import outline
from backends.nki.schedules.block.projection_stream import RING
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
from backends.nki.select.constants import PARTITIONS
from backends.nki.select.helpers import QUEUE
from backends.nki.select.layouts import GPSIMD, SCALAR, TENSOR

FIRST, STEP, APART = Name("first"), Name("step"), Name("apart")
TOKEN_FIRST, TOKEN_STEP, TOKEN_APART = (Name(f"token_{n}") for n in ("first", "step", "apart"))
SHOWN_FIRST, SHOWN_STEP, SHOWN_APART = (Name(f"shown_{n}") for n in ("first", "step", "apart"))
NEW_FIRST, NEW_STEP, NEW_APART = (Name(f"new_{n}") for n in ("first", "step", "apart"))
COLUMNS, TAPS, TOKENS = Name("columns"), Name("taps"), Name("tokens")
TEAM, LENGTH, WIDE = Name("team"), Name("length"), Name("wide")
_PARAMETERS = ("token", "window", "windows_sb", "tokens_sb", "ends_sb", "places_sb")
_WINDOW = Tile("window", (), F32, Space.ARGUMENT)
_TOKEN = Tile("token", (), F32, Space.ARGUMENT)
_SHOWN = Tile("shown_windows", (), F32, Space.ARGUMENT)
_NEW = Tile("new_window", (), F32, Space.ARGUMENT)
_LENGTHS = Tile("lengths", (), F32, Space.ARGUMENT)
SKIP = Token("nisa.oob_mode.skip")
BESIDE = 4
"""Columns that are turned into one bank of PSUM: 128 heads in fp32 each."""


@frozen
class TokensStep:
    """What differs between kernels; each combination is one function of the module."""

    before: int
    """Column of the line that tap 0 of token 0 weighs."""
    rounded: Element | None
    element: Element
    """Of the window."""
    line: Element
    """Of the window and the tokens side by side."""
    optional: bool
    indexed: int | None
    """The dimension of the window tensor that a number on the device is for: the slot of a pool, or
    how many tokens were kept."""
    slots: bool
    """Whether that is a pool: no transfer for a number outside."""
    lengths: bool
    shows: bool
    """Whether the window after each token is stored."""
    stored: bool
    """Whether the window after the last token is stored."""

    def fetch(self, name: str) -> Function:
        """Return the function that sends for windows, tokens and ends of a field."""
        block = Block(Names({*_PARAMETERS}))
        if self.slots:
            block.do("memset", dst=_windows(self.element), value=Literal(0.0), engine=GPSIMD)
        with chunks(block) as body:
            _Body(self, body, WIDE).fetch()
        doc = (
            "Send for windows and tokens, an (entry, head) per partition, 128 of them side by side."
        )
        return outline(name, doc, block.statements)

    def function(self, name: str) -> Function:
        """Return the function: one call does all tokens, entries and heads of a field."""
        block = Block(Names({*_PARAMETERS}))
        block.let_named("wide", Extent("sum_sb", 0))
        block.let_named("length", COLUMNS + TOKENS)
        with chunks(block) as body:
            _Body(self, body, WIDE).write()
        doc = "Slide the windows of all tokens of a team and sum over the taps: `heads` heads."
        return outline(name, doc, block.statements)


def _windows(element: Element) -> View:
    return fetched("windows_sb", element)


def _tokens() -> View:
    return fetched("tokens_sb", _of("token"))


def _ends() -> View:
    return fetched("ends_sb", _of("lengths"))


@frozen
class _Body:
    """The instructions for up to 128 (entry, head)."""

    form: TokensStep
    block: Block
    wide: Number

    def fetch(self) -> None:
        self._fetch_windows()
        steps = (
            (TOKEN_APART, SOME),
            (TOKEN_STEP, COUNT),
            (Name("token_next"), TOKENS),
            (ONE, WIDE),
        )
        offset = TOKEN_FIRST + ENTRY * TOKEN_APART + HEAD * TOKEN_STEP
        mine = self._mine(_tokens(), TOKENS * WIDE)
        self.block.do("dma_copy", dst=mine, src=Pattern(_TOKEN, steps, offset), **QUEUE)
        if self.form.lengths:
            source = Pattern(_LENGTHS, ((ONE, SOME), (ZERO, COUNT)), TEAM + ENTRY)
            self.block.do("dma_copy", dst=self._mine(_ends(), ONE), src=source, **RING)

    def _fetch_windows(self) -> None:
        """The old windows; zeros where there is none."""
        block, form = self.block, self.form
        mine = self._mine(_windows(form.element), self._run)
        if form.indexed is not None:
            begin = CHUNK * self._run
            place = (FIRST, STEP, APART)
            self._indexed((mine.tile, begin), _WINDOW, "numbers", place, form.indexed)
            return
        given = block.inner() if form.optional else block
        source = self._hbm(_WINDOW, FIRST, STEP, APART)
        given.do("dma_copy", dst=mine, src=source, **RING)
        if form.optional:
            missing = block.inner()
            missing.do("memset", dst=mine, value=Literal(0.0), engine=GPSIMD)
            block.decide(Name("missing"), missing, given)

    def write(self) -> None:
        if self.form.lengths:
            self._mark_alive()
        line = self._line()
        self._sum(self._turned(line))
        if self.form.shows:
            self._show(line)
        if self.form.stored:
            self._store(line)

    def _mine(self, view: View, width: Number) -> View:
        """What was fetched for the rows at hand."""
        return part(view, (ZERO, ROWS), (CHUNK * width, width))

    @property
    def _run(self) -> Number:
        return self.wide * COLUMNS

    def _within(self, tile: Tile, column: Number, count: Number) -> Pattern:
        """Columns of the line: [heads, channels, count]."""
        steps = ((self.wide * LENGTH, ROWS), (LENGTH, self.wide), (ONE, count))
        return Pattern(tile, steps, column)

    def _window_shape(self, tile: Tile) -> Pattern:
        steps = ((self._run, ROWS), (COLUMNS, self.wide), (ONE, COLUMNS))
        return Pattern(tile, steps, ZERO)

    # ---- the line

    def _line(self) -> Tile:
        block, wide, form = self.block, self.wide, self.form
        line = block.tile("line_sb", (ROWS, wide * LENGTH), form.line).tile
        windows = _windows(form.element)
        columns = ((COLUMNS, wide), (ONE, COLUMNS))
        old = Pattern(windows.tile, ((windows.shape[1], ROWS), *columns), CHUNK * self._run)
        to = self._within(line, ZERO, COLUMNS)
        block.do("tensor_copy", dst=to, src=old, engine=GPSIMD)
        tokens, first = self._tokens()
        # Column by column of the line, token by token of the tokens.
        steps = ((wide * LENGTH, ROWS), (ONE, TOKENS), (LENGTH, wide))
        own = ((tokens.shape[1], ROWS), (wide, TOKENS), (ONE, wide))
        block.do(
            "tensor_copy", dst=Pattern(line, steps, COLUMNS), src=Pattern(tokens.tile, own, first)
        )
        return line

    def _hbm(self, tile: Tile, first: Number, step: Number, apart: Number) -> Pattern:
        """The windows of some entries and heads: [some, count, channels * columns]."""
        steps = ((apart, SOME), (step, COUNT), (ONE, self._run))
        return Pattern(tile, steps, first + ENTRY * apart + HEAD * step)

    def _indexed(
        self,
        chip: tuple[Tile, Number],
        tile: Tile,
        numbers: str,
        place: tuple[Number, Number, Number],
        dim: int,
        *,
        store: bool = False,
    ) -> None:
        """Move windows by a number of each entry, one transfer each; none outside a pool."""
        first, step, apart = place
        known = Tile(numbers, (ONE, Name("batch")), F32, Space.SBUF)
        with self.block.loop("member", ZERO, SOME, exact=True) as (body, member):
            entry = ENTRY + member
            index = View(known, (ONE, ONE), (None, Range(TEAM + entry, TEAM + entry + 1)))
            steps = ((step, COUNT), (ONE, self._run))
            hbm = Pattern(tile, steps, first + entry * apart + HEAD * step, index, dim)
            whole = View(chip[0], chip[0].shape)
            mine = part(whole, (member * COUNT, COUNT), (chip[1], self._run))
            dst, src = (hbm, mine) if store else (mine, hbm)
            options: dict[str, Operand] = {"oob_mode": SKIP} if self.form.slots else dict(RING)
            body.do("dma_copy", dst=dst, src=src, **options)

    def _tokens(self) -> tuple[View, Number]:
        """The tokens, token by token, and their first column; zeros behind the end."""
        block, wide = self.block, self.wide
        tokens, first = _tokens(), CHUNK * (TOKENS * wide)
        if self.form.rounded is not None:
            rounded = block.tile("rounded_sb", (ROWS, TOKENS * wide), self.form.rounded)
            block.do("tensor_copy", dst=rounded, src=self._mine(tokens, TOKENS * wide))
            tokens, first = rounded, ZERO
        if not self.form.lengths:
            return tokens, first
        block.comment("What lies behind the end may be anything; zeros are selected.")
        selected = block.tile("selected_sb", (ROWS, TOKENS * wide), tokens.tile.element)
        block.do("memset", dst=selected, value=Literal(0.0), engine=GPSIMD)
        own = ((wide, TOKENS), (ONE, wide))
        block.do(
            "tensor_copy_predicated",
            dst=Pattern(selected.tile, ((TOKENS * wide, ROWS), *own), ZERO),
            src=Pattern(tokens.tile, ((tokens.shape[1], ROWS), *own), first),
            predicate=self._alive(((ONE, TOKENS), (ZERO, wide)), ZERO),
        )
        return selected, ZERO

    def _mark_alive(self) -> None:
        """Mark the tokens that lie before the end of their sequence: [rows, tokens]."""
        block = self.block
        ends = block.tile("end_sb", (ROWS, ONE), F32)
        block.do("tensor_copy", dst=ends, src=self._mine(_ends(), ONE))
        places = Tile("places_sb", (Literal(PARTITIONS), TOKENS), F32, Space.SBUF)
        alive = block.tile("alive_sb", (ROWS, TOKENS), U8)
        block.do(
            "tensor_scalar",
            dst=alive,
            data=part(View(places, places.shape), (ZERO, ROWS), None),
            op0=Token("nl.less"),
            operand0=ends,
        )

    def _alive(self, steps: tuple[tuple[Number, Number], ...], token: Number) -> Pattern:
        """Which tokens lie before the end, for each row: [rows, *steps] from a token on."""
        return Pattern(
            Tile("alive_sb", (ROWS, TOKENS), U8, Space.SBUF),
            ((TOKENS, ROWS), *steps),
            token,
        )

    # ---- windows

    def _show(self, line: Tile) -> None:
        """The window after each token; zeros behind the end."""
        block, wide, run = self.block, self.wide, self._run
        shown = block.tile("shown_sb", (ROWS, TOKENS * run), self.form.line)
        steps = ((run, TOKENS), (COLUMNS, wide), (ONE, COLUMNS))
        dst = Pattern(shown.tile, ((TOKENS * run, ROWS), *steps), ZERO)
        slices = ((ONE, TOKENS), (LENGTH, wide), (ONE, COLUMNS))
        src = Pattern(line, ((wide * LENGTH, ROWS), *slices), ONE)
        if self.form.lengths:
            block.do("memset", dst=shown, value=Literal(0.0), engine=GPSIMD)
            alive = self._alive(((ONE, TOKENS), (ZERO, wide), (ZERO, COLUMNS)), ZERO)
            block.do("tensor_copy_predicated", dst=dst, src=src, predicate=alive)
        else:
            block.do("tensor_copy", dst=dst, src=src, engine=GPSIMD)
        offset = SHOWN_FIRST + ENTRY * SHOWN_APART + HEAD * SHOWN_STEP
        around = ((SHOWN_APART, SOME), (SHOWN_STEP, COUNT), (Name("shown_next"), TOKENS))
        block.do(
            "dma_copy",
            dst=Pattern(_SHOWN, (*around, (ONE, run)), offset),
            src=self._stored(block, shown, "shown_windows"),
            **RING,
        )

    def _store(self, line: Tile) -> None:
        """The window after the last token of the sequence."""
        block = self.block
        new = block.tile("new_sb", (ROWS, self._run), self.form.line)
        dst = self._window_shape(new.tile)
        last = ZERO if self.form.lengths else TOKENS
        source = self._within(line, last, COLUMNS)
        block.do("tensor_copy", dst=dst, src=source, engine=GPSIMD)
        if self.form.lengths:
            block.comment("Each token that is there moves the end by one.")
            with block.loop("token", ZERO, TOKENS) as (body, token):
                body.do(
                    "tensor_copy_predicated",
                    dst=dst,
                    src=self._within(line, token + 1, COLUMNS),
                    predicate=self._alive(((ZERO, self.wide), (ZERO, COLUMNS)), token),
                )
        new = self._stored(block, new, "new_window")
        if self.form.slots:
            place = (NEW_FIRST, NEW_STEP, NEW_APART)
            self._indexed((new.tile, ZERO), _NEW, "new_numbers", place, 0, store=True)
            return
        target = self._hbm(_NEW, NEW_FIRST, NEW_STEP, NEW_APART)
        block.do("dma_copy", dst=target, src=new, **RING)

    def _stored(self, block: Block, window: View, name: str) -> View:
        """A window as its tensor stores it: transfers do not convert."""
        if self.form.line.of in (name, "window"):
            return window
        stored = block.tile("stored_sb", window.shape, _of(name))
        block.do("tensor_copy", dst=stored, src=window)
        return stored

    # ---- sums

    def _turned(self, line: Tile) -> Tile:
        """The columns that taps weigh, [channels, columns * heads], fp32."""
        block, wide = self.block, self.wide
        total = block.let_named("total", TAPS - 1 + TOKENS)
        turned = block.tile("line_T_sb", (wide, total * ROWS), F32)
        with block.loop("column", ZERO, total, BESIDE, exact=True) as (body, column):
            few = body.let_named("few", smallest(BESIDE, total - column))
            psum = body.tile("turned_psum", (wide, few * ROWS), self.form.line, Space.PSUM)
            with body.loop("place", ZERO, few, exact=True) as (inner, place):
                whole = View(line, (ROWS, wide * LENGTH))
                first = self.form.before + column + place
                data = every(whole, first, LENGTH, wide)
                dst = part(psum, None, (place * ROWS, ROWS))
                inner.do("nc_transpose", dst=dst, data=data, engine=TENSOR)
            to = part(turned, None, (column * ROWS, few * ROWS))
            body.do("tensor_copy", dst=to, src=psum, engine=SCALAR)
        return turned.tile

    def _sum(self, turned: Tile) -> None:
        """Each tap for all tokens."""
        block, wide = self.block, self.wide
        total, taps = Name("total"), Tile("taps_sb", (wide, TAPS * HEADS), F32, Space.SBUF)
        columns = ENTRIES * HEADS
        sums = Tile("sum_sb", (wide, TOKENS * columns), F32, Space.SBUF)
        product = block.tile("product_sb", (wide, TOKENS * ROWS), F32)
        first = ENTRY * HEADS + HEAD
        dst = Pattern(
            sums, ((TOKENS * columns, wide), (columns, TOKENS), (HEADS, SOME), (ONE, COUNT)), first
        )
        own = ((ROWS, TOKENS), (COUNT, SOME), (ONE, COUNT))

        def tap_of(body: Block, tap: Number, to: Pattern) -> None:
            repeated = ((ZERO, TOKENS), (ZERO, SOME), (ONE, COUNT))
            weight = Pattern(taps, ((TAPS * HEADS, wide), *repeated), tap * HEADS + HEAD)
            values = Pattern(turned, ((total * ROWS, wide), *own), tap * ROWS)
            body.do("tensor_tensor", dst=to, data1=values, data2=weight, op=Token("nl.multiply"))

        tap_of(block, TAPS - 1, dst)
        with block.loop("tap", ZERO, TAPS - 1, exact=True) as (body, tap):
            term = Pattern(product.tile, ((TOKENS * ROWS, wide), *own), ZERO)
            tap_of(body, tap, term)
            body.do("tensor_tensor", dst=dst, data1=dst, data2=term, op=Token("nl.add"))


def _of(name: str) -> Element:
    """The element type of a parameter."""
    return dtype_of(name, F32.bytes)
