"""Several tokens through the windows of a field of one entry of the batch.

The old window and the tokens of a channel are one line of columns. It is put together with heads on
partitions, where the window after token t is its columns t + 1, t + 2, ..., and turned column by
column to channels on partitions, where a tap is one instruction for all tokens.
"""

from __future__ import annotations

from attrs import evolve, frozen

from backends.nki.program.build import Block, Names, every, part
from backends.nki.program.nodes import (
    F32,
    U8,
    Element,
    Function,
    Pattern,
    Space,
    Tile,
    Token,
    View,
    dtype_of,
)
from backends.nki.program.numbers import ONE, ZERO, Extent, Literal, Name, Number, smallest
from backends.nki.program.outline import outline
from backends.nki.select.constants import PARTITIONS
from backends.nki.select.helpers import QUEUE
from backends.nki.select.layouts import GPSIMD, SCALAR, TENSOR

FIRST, STEP, APART = Name("first"), Name("step"), Name("apart")
TOKEN_FIRST, TOKEN_STEP, TOKEN_APART = (Name(f"token_{n}") for n in ("first", "step", "apart"))
SHOWN_FIRST, SHOWN_STEP, SHOWN_APART = (Name(f"shown_{n}") for n in ("first", "step", "apart"))
NEW_FIRST, NEW_STEP = Name("new_first"), Name("new_step")
HEADS, COLUMNS, TAPS, TOKENS = Name("heads"), Name("columns"), Name("taps"), Name("tokens")
HEAD, COUNT, LENGTH = Name("head"), Name("count"), Name("length")
_WINDOW = Tile("window", (), F32, Space.ARGUMENT)
_TOKEN = Tile("token", (), F32, Space.ARGUMENT)
_SHOWN = Tile("shown_windows", (), F32, Space.ARGUMENT)
_NEW = Tile("new_window", (), F32, Space.ARGUMENT)
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

    def function(self, name: str) -> Function:
        """Return the function: one call does all tokens and heads of a field of one entry."""
        block = Block(Names({_TOKEN.name, _WINDOW.name}))
        wide = block.let_named("wide", Extent("sum_sb", 0))
        block.let_named("length", COLUMNS + TOKENS)
        with block.loop("head", ZERO, HEADS, PARTITIONS, exact=True) as (body, head):
            body.let_named("count", smallest(PARTITIONS, HEADS - head))
            _Body(self, body, wide).write()
        doc = "Slide the windows of all tokens of an entry and sum over the taps: `heads` heads."
        return outline(name, doc, block.statements)


@frozen
class _Body:
    """The instructions for up to 128 heads."""

    form: TokensStep
    block: Block
    wide: Number

    def write(self) -> None:
        line = self._line()
        if self.form.shows:
            self._show(line)
        if self.form.stored:
            self._store(line)
        self._sum(self._turned(line))

    @property
    def _run(self) -> Number:
        return self.wide * COLUMNS

    def _within(self, tile: Tile, column: Number, count: Number) -> Pattern:
        """Columns of the line: [heads, channels, count]."""
        steps = ((self.wide * LENGTH, COUNT), (LENGTH, self.wide), (ONE, count))
        return Pattern(tile, steps, column)

    def _window_shape(self, tile: Tile) -> Pattern:
        steps = ((self._run, COUNT), (COLUMNS, self.wide), (ONE, COLUMNS))
        return Pattern(tile, steps, ZERO)

    # ---- the line

    def _line(self) -> Tile:
        block, wide, form = self.block, self.wide, self.form
        line = block.tile("line_sb", (COUNT, wide * LENGTH), form.line).tile
        window = self._window()
        to = self._within(line, ZERO, COLUMNS)
        block.do("tensor_copy", dst=to, src=self._window_shape(window.tile), engine=GPSIMD)
        tokens = self._tokens()
        # Column by column of the line, token by token of the tokens.
        steps = ((wide * LENGTH, COUNT), (ONE, TOKENS), (LENGTH, wide))
        own = ((wide * TOKENS, COUNT), (wide, TOKENS), (ONE, wide))
        block.do(
            "tensor_copy",
            dst=Pattern(line, steps, COLUMNS),
            src=Pattern(tokens.tile, own, ZERO),
        )
        return line

    def _window(self) -> View:
        block, form = self.block, self.form
        window = block.tile("window_sb", (COUNT, self._run), form.element)
        offset = FIRST + Name("entry") * APART + HEAD * STEP
        source = Pattern(_WINDOW, ((STEP, COUNT), (ONE, self._run)), offset)
        if form.indexed is not None:
            source = evolve(source, index=_number("number"), indexed_dim=form.indexed)
        if form.slots:
            block.do("memset", dst=window, value=Literal(0.0), engine=GPSIMD)
            block.do("dma_copy", dst=window, src=source, oob_mode=SKIP)
            return window
        given = block.inner() if form.optional else block
        given.do("dma_copy", dst=window, src=source, **QUEUE)
        if form.optional:
            missing = block.inner()
            missing.do("memset", dst=window, value=Literal(0.0), engine=GPSIMD)
            block.decide(Name("missing"), missing, given)
        return window

    def _tokens(self) -> View:
        """The tokens, [heads, tokens * channels]; zeros behind the end of the sequence."""
        block, wide = self.block, self.wide
        tokens = block.tile("tokens_sb", (COUNT, TOKENS * wide), _of("token"))
        offset = TOKEN_FIRST + Name("entry") * TOKEN_APART + HEAD * TOKEN_STEP
        steps = ((TOKEN_STEP, COUNT), (Name("token_next"), TOKENS), (ONE, wide))
        block.do("dma_copy", dst=tokens, src=Pattern(_TOKEN, steps, offset), **QUEUE)
        if self.form.rounded is not None:
            exact, tokens = tokens, block.tile("rounded_sb", tokens.shape, self.form.rounded)
            block.do("tensor_copy", dst=tokens, src=exact)
        if not self.form.lengths:
            return tokens
        block.comment("What lies behind the end may be anything; zeros are selected.")
        selected = block.tile("selected_sb", tokens.shape, tokens.tile.element)
        block.do("memset", dst=selected, value=Literal(0.0), engine=GPSIMD)
        own = ((TOKENS * wide, COUNT), (wide, TOKENS), (ONE, wide))
        block.do(
            "tensor_copy_predicated",
            dst=Pattern(selected.tile, own, ZERO),
            src=Pattern(tokens.tile, own, ZERO),
            predicate=self._alive(((ONE, TOKENS), (ZERO, wide)), ZERO),
        )
        return selected

    def _alive(self, steps: tuple[tuple[Number, Number], ...], token: Number) -> Pattern:
        """Which tokens lie before the end, for each head: [heads, *steps] from a token on."""
        return Pattern(
            Tile("alive_sb", (Literal(PARTITIONS), TOKENS), U8, Space.SBUF),
            ((TOKENS, COUNT), *steps),
            token,
        )

    # ---- windows

    def _show(self, line: Tile) -> None:
        """The window after each token; zeros behind the end."""
        with self.block.loop("token", ZERO, TOKENS) as (body, token):
            shown = body.tile("shown_sb", (COUNT, self._run), self.form.line)
            dst, src = self._window_shape(shown.tile), self._within(line, token + 1, COLUMNS)
            if self.form.lengths:
                body.do("memset", dst=shown, value=Literal(0.0), engine=GPSIMD)
                alive = self._alive(((ZERO, self.wide), (ZERO, COLUMNS)), token)
                body.do("tensor_copy_predicated", dst=dst, src=src, predicate=alive)
            else:
                body.do("tensor_copy", dst=dst, src=src, engine=GPSIMD)
            offset = SHOWN_FIRST + Name("entry") * SHOWN_APART + HEAD * SHOWN_STEP
            offset = offset + token * Name("shown_next")
            body.do(
                "dma_copy",
                dst=Pattern(_SHOWN, ((SHOWN_STEP, COUNT), (ONE, self._run)), offset),
                src=self._stored(body, shown, "shown_windows"),
                **QUEUE,
            )

    def _store(self, line: Tile) -> None:
        """The window after the last token of the sequence."""
        block = self.block
        new = block.tile("new_sb", (COUNT, self._run), self.form.line)
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
        offset = NEW_FIRST + Name("entry") * Name("new_apart") + HEAD * NEW_STEP
        target = Pattern(_NEW, ((NEW_STEP, COUNT), (ONE, self._run)), offset)
        if self.form.slots:
            target = evolve(target, index=_number("new_number"))
            block.do("dma_copy", dst=target, src=new, oob_mode=SKIP)
        else:
            block.do("dma_copy", dst=target, src=new, **QUEUE)

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
        turned = block.tile("line_T_sb", (wide, total * COUNT), F32)
        with block.loop("column", ZERO, total, BESIDE, exact=True) as (body, column):
            few = body.let_named("few", smallest(BESIDE, total - column))
            psum = body.tile("turned_psum", (wide, few * COUNT), self.form.line, Space.PSUM)
            with body.loop("place", ZERO, few, exact=True) as (inner, place):
                whole = View(line, (COUNT, wide * LENGTH))
                first = self.form.before + column + place
                data = every(whole, first, LENGTH, wide)
                dst = part(psum, None, (place * COUNT, COUNT))
                inner.do("nc_transpose", dst=dst, data=data, engine=TENSOR)
            to = part(turned, None, (column * COUNT, few * COUNT))
            body.do("tensor_copy", dst=to, src=psum, engine=SCALAR)
        return turned.tile

    def _sum(self, turned: Tile) -> None:
        """Each tap for all tokens."""
        block, wide = self.block, self.wide
        total, taps = Name("total"), Tile("taps_sb", (wide, TAPS * HEADS), F32, Space.SBUF)
        sums = Tile("sum_sb", (wide, TOKENS * HEADS), F32, Space.SBUF)
        product = block.tile("product_sb", (wide, TOKENS * COUNT), F32)
        every_token = ((HEADS, TOKENS), (ONE, COUNT))
        dst = Pattern(sums, ((TOKENS * HEADS, wide), *every_token), HEAD)
        own = ((COUNT, TOKENS), (ONE, COUNT))

        def tap_of(body: Block, tap: Number, to: Pattern) -> None:
            weight = Pattern(
                taps, ((TAPS * HEADS, wide), (ZERO, TOKENS), (ONE, COUNT)), tap * HEADS + HEAD
            )
            columns = Pattern(turned, ((total * COUNT, wide), *own), tap * COUNT)
            body.do("tensor_tensor", dst=to, data1=columns, data2=weight, op=Token("nl.multiply"))

        tap_of(block, TAPS - 1, dst)
        with block.loop("tap", ZERO, TAPS - 1, exact=True) as (body, tap):
            term = Pattern(product.tile, ((TOKENS * COUNT, wide), *own), ZERO)
            tap_of(body, tap, term)
            body.do("tensor_tensor", dst=dst, data1=dst, data2=term, op=Token("nl.add"))


def _of(name: str) -> Element:
    """The element type of a parameter."""
    return dtype_of(name, F32.bytes)


def _number(name: str) -> View:
    """A number on the device, [1, 1]."""
    tile = Tile(name, (ONE, ONE), F32, Space.SBUF)
    return View(tile, tile.shape)
