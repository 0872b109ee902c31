"""Tokens of windows that the caller gives: a block of channels on its way in.

They are brought in as they lie, rows of channels or channels of tokens, of all channels of a tensor
or of those of a field (`runs`); `lines` makes lines of them.
"""

from __future__ import annotations

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import Function, Pattern, Tile
from backends.nki.program.numbers import ONE, ZERO, Number, smallest
from backends.nki.schedules.chunked import runs
from backends.nki.schedules.chunked.lines import (
    BLOCK,
    CHANNEL,
    CHANNELS,
    LANES,
    PLACE,
    RECORD,
    ROW,
    ROW_COUNT,
    TILES,
    TOKEN,
    TOKENS,
    TOTAL,
    Kind,
    opened,
)
from backends.nki.schedules.chunked.projecting import ROWS, argument


def load_tokens(kind: Kind) -> Function:
    """Return the function that brings a block of channels in."""
    names = (RECORD, *PLACE, *BLOCK)
    block = opened(names, "source", *(() if kind.runs else ("channels",)), "total")
    source = argument("source")
    width = block.let_named("width", LANES * TILES)
    if kind.runs:
        block.take(RECORD, runs.RECORD)
        block.take(runs.RECORD, *runs.FIELDS)
    if not kind.by_channel:
        _load_rows(block, source, width, kind)
    elif kind.runs:
        _load_runs(block, source)
    else:
        _load_channels(block, source)
    return Function(
        "load_tokens",
        names,
        "The tokens of a block of channels.",
        tuple(block.statements),
        ("held_sb",),
    )


def _load_rows(block: Block, source: Tile, width: Number, kind: Kind) -> None:
    """The channels of a token lie side by side, or in runs."""
    pieces = block.let_named("pieces", (TOKENS + ROWS - 1) // ROWS)
    most = smallest(ROWS, TOKENS)
    held = block.tile("held_sb", (most, ROW_COUNT * pieces * width), source.element)
    with (
        block.loop("entry", ZERO, ROW_COUNT) as (rows, entry),
        rows.loop("piece", ZERO, pieces) as (each, piece),
    ):
        first = piece * ROWS
        count = each.let("count", smallest(ROWS, TOKENS - first))

        def load(body: Block, before: Number, many: Number, place: Number, every: Number) -> None:
            column = (entry * pieces + piece) * width + before
            place = ((ROW + entry) * TOTAL + TOKEN + first) * every + place
            rows_of = Pattern(source, ((every, count), (ONE, many)), place)
            body.do("dma_copy", dst=part(held, (ZERO, count), (column, many)), src=rows_of)

        if kind.runs:
            with runs.pieces(each, CHANNEL, width) as (body, before, many, place):
                load(body, before, many, place, runs.ALL)
        else:
            load(each, ZERO, width, CHANNEL, CHANNELS)


def _load_channels(block: Block, source: Tile) -> None:
    """The tokens of a channel lie side by side, and so do channels."""
    held = block.tile("held_sb", (LANES, TILES * ROW_COUNT * TOKENS), source.element)
    with block.loop("tile", ZERO, TILES) as (body, tile):
        steps = ((TOTAL, LANES), (CHANNELS * TOTAL, ROW_COUNT), (ONE, TOKENS))
        first = (ROW * CHANNELS + CHANNEL + tile * ROWS) * TOTAL + TOKEN
        count = ROW_COUNT * TOKENS
        free = (TILES * count, LANES)
        target = Pattern(held.tile, (free, (TOKENS, ROW_COUNT), (ONE, TOKENS)), tile * count)
        body.do("dma_copy", dst=target, src=Pattern(source, steps, first))


def _load_runs(block: Block, source: Tile) -> None:
    """The tokens of a channel lie side by side, channels in runs."""
    held = block.tile("held_sb", (LANES, TILES * ROW_COUNT * TOKENS), source.element)
    with (
        block.loop("tile", ZERO, TILES) as (tiles, tile),
        runs.pieces(tiles, CHANNEL + tile * ROWS, LANES) as (several, before, many, place),
        several.loop("entry", ZERO, ROW_COUNT) as (body, entry),
    ):
        column = (tile * ROW_COUNT + entry) * TOKENS
        first = ((ROW + entry) * runs.ALL + place) * TOTAL + TOKEN
        rows_of = Pattern(source, ((TOTAL, many), (ONE, TOKENS)), first)
        body.do("dma_copy", dst=part(held, (before, many), (column, TOKENS)), src=rows_of)
