"""The filter of several tokens: lines put together, turned, and summed over the taps."""

from __future__ import annotations

from backends.nki.program.build import Block, Names, every, part
from backends.nki.program.nodes import F32, U8, Function, Pattern, Space, Tile, Token, View
from backends.nki.program.numbers import ONE, ZERO, Extent, Literal, Name, Number, smallest
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
)
from backends.nki.schedules.block.window_places import COLUMNS, TAPS, WIDE
from backends.nki.schedules.block.window_tokens import PARAMETERS, TOKENS, TokenRows, TokensStep
from backends.nki.schedules.block.window_tokens_moved import (
    LENGTH,
    columns_of,
    show_windows,
    store_windows,
)
from backends.nki.select.constants import PARTITIONS
from backends.nki.select.layouts import GPSIMD, SCALAR, TENSOR

BESIDE = 4
"""Columns that are turned into one bank of PSUM: 128 heads in fp32 each."""


def slide_tokens(form: TokensStep, name: str) -> Function:
    """Return the function: one call does all tokens, entries and heads of a field."""
    block = Block(Names({*PARAMETERS}))
    block.let_named("wide", Extent("sum_sb", 0))
    block.let_named("length", COLUMNS + TOKENS)
    with chunks(block) as body:
        rows = TokenRows(form, body)
        if form.lengths:
            _mark_alive(rows)
        line = _line(rows)
        _sum(rows, _turned(rows, line))
        if form.shows:
            show_windows(rows, line)
        if form.stored:
            store_windows(rows, line)
    doc = "Slide the windows of all tokens of a team and sum over the taps: `heads` heads."
    return outline(name, doc, block.statements)


# ---- the line


def _mark_alive(rows: TokenRows) -> None:
    """Mark the tokens that lie before the end of their sequence: [rows, tokens]."""
    block = rows.block
    ends = block.tile("end_sb", (ROWS, ONE), F32)
    block.do("tensor_copy", dst=ends, src=rows.mine(rows.ends, ONE))
    places = Tile("places_sb", (Literal(PARTITIONS), TOKENS), F32, Space.SBUF)
    alive = block.tile("alive_sb", (ROWS, TOKENS), U8)
    block.do(
        "tensor_scalar",
        dst=alive,
        data=part(View(places, places.shape), (ZERO, ROWS), None),
        op0=Token("nl.less"),
        operand0=ends,
    )


def _line(rows: TokenRows) -> Tile:
    """The old windows and the tokens side by side: [rows, channels * length]."""
    block = rows.block
    line = block.tile("line_sb", (ROWS, WIDE * LENGTH), rows.form.line).tile
    windows = rows.windows
    columns = ((COLUMNS, WIDE), (ONE, COLUMNS))
    old = Pattern(windows.tile, ((windows.shape[1], ROWS), *columns), CHUNK * rows.run)
    block.do("tensor_copy", dst=columns_of(line, ZERO, COLUMNS), src=old, engine=GPSIMD)
    tokens, first = _tokens(rows)
    # Column by column of the line, token by token of the tokens.
    steps = ((WIDE * LENGTH, ROWS), (ONE, TOKENS), (LENGTH, WIDE))
    own = ((tokens.shape[1], ROWS), (WIDE, TOKENS), (ONE, WIDE))
    block.do("tensor_copy", dst=Pattern(line, steps, COLUMNS), src=Pattern(tokens.tile, own, first))
    return line


def _tokens(rows: TokenRows) -> tuple[View, Number]:
    """The tokens, token by token, and their first column; zeros behind the end."""
    block = rows.block
    tokens, first = rows.tokens, CHUNK * (TOKENS * WIDE)
    if rows.form.rounded is not None:
        rounded = block.tile("rounded_sb", (ROWS, TOKENS * WIDE), rows.form.rounded)
        block.do("tensor_copy", dst=rounded, src=rows.mine(tokens, TOKENS * WIDE))
        tokens, first = rounded, ZERO
    if not rows.form.lengths:
        return tokens, first
    block.comment("What lies behind the end may be anything; zeros are selected.")
    selected = block.tile("selected_sb", (ROWS, TOKENS * WIDE), tokens.tile.element)
    block.do("memset", dst=selected, value=Literal(0.0), engine=GPSIMD)
    own = ((WIDE, TOKENS), (ONE, WIDE))
    block.do(
        "tensor_copy_predicated",
        dst=Pattern(selected.tile, ((TOKENS * WIDE, ROWS), *own), ZERO),
        src=Pattern(tokens.tile, ((tokens.shape[1], ROWS), *own), first),
        predicate=rows.alive(((ONE, TOKENS), (ZERO, WIDE)), ZERO),
    )
    return selected, ZERO


# ---- sums


def _turned(rows: TokenRows, line: Tile) -> Tile:
    """The columns that taps weigh, [channels, columns * heads], fp32."""
    block = rows.block
    total = block.let_named("total", TAPS - 1 + TOKENS)
    turned = block.tile("line_T_sb", (WIDE, total * ROWS), F32)
    with block.loop("column", ZERO, total, BESIDE, exact=True) as (body, column):
        few = body.let_named("few", smallest(BESIDE, total - column))
        psum = body.tile("turned_psum", (WIDE, few * ROWS), rows.form.line, Space.PSUM)
        with body.loop("place", ZERO, few, exact=True) as (inner, place):
            whole = View(line, (ROWS, WIDE * LENGTH))
            data = every(whole, rows.form.before + column + place, LENGTH, WIDE)
            dst = part(psum, None, (place * ROWS, ROWS))
            inner.do("nc_transpose", dst=dst, data=data, engine=TENSOR)
        to = part(turned, None, (column * ROWS, few * ROWS))
        body.do("tensor_copy", dst=to, src=psum, engine=SCALAR)
    return turned.tile


def _sum(rows: TokenRows, turned: Tile) -> None:
    """Each tap for all tokens."""
    block = rows.block
    total, taps = Name("total"), Tile("taps_sb", (WIDE, TAPS * HEADS), F32, Space.SBUF)
    columns = ENTRIES * HEADS
    sums = Tile("sum_sb", (WIDE, TOKENS * columns), F32, Space.SBUF)
    product = block.tile("product_sb", (WIDE, TOKENS * ROWS), F32)
    first = ENTRY * HEADS + HEAD
    dst = Pattern(
        sums, ((TOKENS * columns, WIDE), (columns, TOKENS), (HEADS, SOME), (ONE, COUNT)), first
    )
    own = ((ROWS, TOKENS), (COUNT, SOME), (ONE, COUNT))

    def tap_of(body: Block, tap: Number, to: Pattern) -> None:
        repeated = ((ZERO, TOKENS), (ZERO, SOME), (ONE, COUNT))
        weight = Pattern(taps, ((TAPS * HEADS, WIDE), *repeated), tap * HEADS + HEAD)
        values = Pattern(turned, ((total * ROWS, WIDE), *own), tap * ROWS)
        body.do("tensor_tensor", dst=to, data1=values, data2=weight, op=Token("nl.multiply"))

    tap_of(block, TAPS - 1, dst)
    with block.loop("tap", ZERO, TAPS - 1, exact=True) as (body, tap):
        term = Pattern(product.tile, ((TOKENS * ROWS, WIDE), *own), ZERO)
        tap_of(body, tap, term)
        body.do("tensor_tensor", dst=dst, data1=dst, data2=term, op=Token("nl.add"))
