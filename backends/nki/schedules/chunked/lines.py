"""The lines of windows in front of a chunked rule.

A *line* is the window of a channel and the tokens behind it, channels on partitions: as a
projection leaves them when tokens move past columns of the weight, or turned on TensorE from rows
of tokens in HBM (`given_tokens`). `filter_channels` filters them.

The next window is the end of the lines, from where later tokens and the next call take it. Rows
with a length end inside: then whole lines go to HBM, and the columns before the end come back. So
do the lines of windows in a pool, whose slots the device alone knows, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from backends.nki.program.build import Block, Names, compare, part
from backends.nki.program.nodes import (
    F32,
    I32,
    Element,
    Function,
    Pattern,
    Range,
    Space,
    Tile,
    View,
)
from backends.nki.program.numbers import NONE, ONE, ZERO, Extent, Literal, Name, Number, smallest
from backends.nki.schedules.chunked.projecting import (
    ROWS,
    WIDE,
    OnChip,
    argument,
    element,
    multiply,
)
from backends.nki.select.layouts import GPSIMD, TENSOR, VECTOR
from backends.nki.select.state_moves import SKIP

RECORD = "filter"
"""What the functions know of a window: its tensors and sizes."""
PLACE = ("row", "rows", "token", "tokens")
"""Rows of the batch, and tokens of each, that are at hand."""
BLOCK = ("channel", "lanes", "tiles")
"""The first channel of a block, its partitions, and how many tiles of them."""
COLUMNS, TAPS, CHANNELS, TOTAL = (Name(n) for n in ("columns", "taps", "channels", "total"))
ROW, ROW_COUNT, TOKEN, TOKENS = (Name(name) for name in PLACE)
CHANNEL, LANES, TILES = (Name(name) for name in BLOCK)


@frozen
class Kind:
    """How the lines of a kernel's windows come about, and what is done with their sums."""

    projected: bool
    """Whether a projection of the kernel's own gives the tokens; else a tensor in HBM does."""
    by_channel: bool
    """Whether the tokens of a channel lie side by side in that tensor."""
    silu: bool
    mixed: bool
    """Whether tokens and windows differ in dtype, so that lines are fp32."""
    taps: Element | None
    """The dtype of weights on TensorE; None where that of the tokens decides."""
    lengths: bool
    """Whether rows may have a length."""
    runs: bool
    """Whether channels lie apart among those of their tensor, or of their weight."""
    pooled: bool
    """Whether windows lie in a pool of slots; rows have lengths then, 0 without a slot."""

    @property
    def line(self) -> Element:
        """The dtype of a line."""
        return F32 if self.mixed else element("result")


def functions(kind: Kind) -> Iterator[Function]:
    """Yield what makes the lines of a block, and what keeps their ends."""
    yield _make_lines(kind)
    yield _keep_columns(kind)


def line_of(kind: Kind) -> Tile:
    """Return the lines of a block: [lanes, tiles, rows, columns + tokens]."""
    shape = (LANES, TILES, ROW_COUNT, COLUMNS + TOKENS)
    return Tile("line_sb", shape, kind.line, Space.SBUF)


def opened(names: tuple[str, ...], *fields: str) -> Block:
    """Return the block of a function, with fields of the record brought in."""
    block = Block(Names({*names}))
    block.take(RECORD, *fields)
    return block


def _make_lines(kind: Kind) -> Function:
    held = ("turned_sb", "weight_sb") if kind.projected else ("held_sb",)
    names = (RECORD, *held, *PLACE, *BLOCK)
    fields = ["window", "read_slots" if kind.pooled else "tail", "columns", "channels"]
    fields += [] if kind.mixed else ["result"]
    fields += ["total", "raw"] if kind.lengths else []
    fields += ["hidden"] if kind.projected else []
    block = opened(names, *fields)
    line = block.create(line_of(kind))
    _before_first(block, line, kind)
    if kind.projected:
        _project(block, line)
    elif kind.by_channel:
        steps = ((TILES * ROW_COUNT * TOKENS, LANES), (TOKENS, TILES * ROW_COUNT), (ONE, TOKENS))
        source = Pattern(OnChip("held_sb").tile, steps, ZERO)
        target = _in_lines(line, ZERO, TILES * ROW_COUNT, ZERO, TOKENS)
        block.do("tensor_copy", dst=target, src=source, engine=VECTOR)
    else:
        _turn(block, line)
    return Function(
        "make_lines",
        names,
        "The lines of a block of channels: [lanes, tiles, rows, columns + tokens].",
        tuple(block.statements),
        ("line_sb",),
    )


def _in_lines(line: View, first: Number, lines: Number, start: Number, count: Number) -> Pattern:
    """Tokens of lines that follow one another: [lanes, lines, count]."""
    length = COLUMNS + TOKENS
    steps = ((TILES * ROW_COUNT * length, LANES), (length, lines), (ONE, count))
    return Pattern(line.tile, steps, first * length + COLUMNS + start)


def _before_first(block: Block, line: View, kind: Kind) -> None:
    """What stands before the first token: the old window, or the tokens before this block."""
    target = part(line, None, None, None, (ZERO, COLUMNS))

    def load(body: Block, tensor: str, length: Number, start: Number) -> None:
        body.do("dma_copy", dst=target, src=_columns(argument(tensor), length, start, COLUMNS))

    first, later = block.inner(), block.inner()
    if kind.pooled:
        first.comment("A row without a slot to read starts from zeros.")
        first.do("memset", dst=target, value=Literal(0.0), engine=GPSIMD)
        _move_slots(first, line, argument("window"), "read_slots", store=False)
        load(later, "raw", COLUMNS + TOTAL, TOKEN)
        block.decide(compare("==", TOKEN, ZERO), first, later)
        return
    given, missing = first.inner(), first.inner()
    missing.do("memset", dst=target, value=Literal(0.0))
    load(given, "window", COLUMNS, ZERO)
    first.decide(compare("==", Name("window"), NONE), missing, given)
    whole = later.inner()
    load(whole, "tail", COLUMNS, ZERO)
    if kind.lengths:
        ended = later.inner()
        load(ended, "raw", COLUMNS + TOTAL, TOKEN)
        later.decide(compare("!=", Name("raw"), NONE), ended, whole)
    else:
        later.extend(whole)
    block.decide(compare("==", TOKEN, ZERO), first, later)


def _move_slots(block: Block, chip: View, pool: Tile, slots: str, *, store: bool) -> None:
    """Windows of rows, the first columns of their lines, from or to their slots; none outside."""
    shape = (ONE, Extent(slots, 1))
    numbers = View(Tile(slots, shape, I32, Space.SBUF), shape)
    steps = ((COLUMNS, LANES), (ROWS * COLUMNS, TILES), (CHANNELS * COLUMNS, ONE), (ONE, COLUMNS))
    with block.loop("entry", ZERO, ROW_COUNT) as (body, entry):
        number = part(numbers, None, (ROW + entry, ONE))
        window = Pattern(pool, steps, CHANNEL * COLUMNS, number)
        mine = part(chip, None, None, (entry, ONE), (ZERO, COLUMNS))
        dst, src = (window, mine) if store else (mine, window)
        body.do("dma_copy", dst=dst, src=src, oob_mode=SKIP)


def _columns(
    tensor: Tile,
    length: Number,
    start: Number,
    count: Number,
    entry: Number | None = None,
    index: View | None = None,
) -> Pattern:
    """Columns of this block's channels in HBM [rows, channels, length]; of one row at `entry`."""
    row = ROW if entry is None else ROW + entry
    rows = ((CHANNELS * length, ROW_COUNT if entry is None else ONE),)
    steps = ((length, LANES), (ROWS * length, TILES), *rows, (ONE, count))
    offset = (row * CHANNELS + CHANNEL) * length + start
    return Pattern(tensor, steps, offset, index, 2 if index is not None else 0)


def _project(block: Block, line: View) -> None:
    """Tokens move past the weight's columns, up to 512 at once; those of several rows are few."""
    hidden = Name("hidden")
    block.let_named("lanes_of_hidden", smallest(ROWS, hidden))
    groups = block.let_named("groups", hidden // Name("lanes_of_hidden"))
    held = block.let_named("held", ROW_COUNT * TOKENS)
    width = block.let_named("width", LANES * TILES)
    assert (groups, held, width) == (Name("groups"), Name("held"), Name("width"))
    with (
        block.loop("tile", ZERO, TILES) as (tiles, tile),
        tiles.loop("start", ZERO, held, WIDE) as (body, start),
    ):
        many = body.let("many", smallest(WIDE, held - start))
        sums = body.tile("line_psum", (LANES, many), F32, Space.PSUM)
        multiply(body, sums, tile * ROWS, start, turned_moves=True, partitions="lanes_of_hidden")
        target = _in_lines(line, tile * ROW_COUNT, ROW_COUNT, start, many // ROW_COUNT)
        body.do("tensor_copy", dst=target, src=sums, engine=VECTOR)


def _turn(block: Block, line: View) -> None:
    """Rows of tokens are turned, tile by tile of channels."""
    source = OnChip("held_sb")
    width = block.let_named("width", LANES * TILES)
    pieces = block.let_named("pieces", (TOKENS + ROWS - 1) // ROWS)
    with (
        block.loop("entry", ZERO, ROW_COUNT) as (rows, entry),
        rows.loop("piece", ZERO, pieces) as (body, piece),
    ):
        first = piece * ROWS
        count = body.let("count", smallest(ROWS, TOKENS - first))
        shape = (LANES, TILES * count)
        turned = body.tile("line_psum", shape, element("held_sb"), Space.PSUM)
        with body.loop("tile", ZERO, TILES) as (each, tile):
            column = (entry * pieces + piece) * width + tile * ROWS
            data = part(source.view, (ZERO, count), (column, LANES))
            dst = part(turned, None, (tile * count, count))
            each.do("nc_transpose", dst=dst, data=data, engine=TENSOR)
        length = COLUMNS + TOKENS
        steps = (
            (TILES * ROW_COUNT * length, LANES),
            (ROW_COUNT * length, TILES),
            (ONE, count),
        )
        target = Pattern(line.tile, steps, entry * length + COLUMNS + first)
        body.do("tensor_copy", dst=target, src=turned, engine=VECTOR)


def _keep_columns(kind: Kind) -> Function:
    names = (RECORD, "line_sb", *PLACE, *BLOCK)
    fields = ["tail", "columns", "channels"]
    fields += ["total", "result", "raw", "lengths_sb"] if kind.lengths else []
    fields += ["write_slots"] if kind.pooled else []
    block = opened(names, *fields)
    tile = line_of(kind)
    line = View(tile, tile.shape)
    tail = argument("tail")
    plain = block.inner()
    end = View(tile, (LANES, TILES, ROW_COUNT, COLUMNS), (None, None, None, Range(TOKENS, None)))
    plain.do("dma_copy", dst=_columns(tail, COLUMNS, ZERO, COLUMNS), src=end)
    if not kind.lengths:
        block.extend(plain)
    else:
        ended, raw, length = block.inner(), argument("raw"), COLUMNS + TOTAL
        ended.do("dma_copy", dst=_columns(raw, length, TOKEN, COLUMNS + TOKENS), src=line)
        with ended.when(compare("==", TOKEN + TOKENS, TOTAL)) as last:
            last.comment("The columns before the end of each row.")
            shape = (LANES, TILES, ROW_COUNT, COLUMNS)
            end_sb = last.tile("end_sb", shape, kind.line)
            with last.loop("entry", ZERO, ROW_COUNT) as (body, entry):
                on_all = (ROWS, Extent("lengths_sb", 1))
                places = View(Tile("lengths_sb", on_all, I32, Space.SBUF), on_all)
                at = part(places, (ZERO, ONE), (ROW + entry, ONE))
                source = _columns(raw, length, ZERO, COLUMNS, entry, at)
                target = part(end_sb, None, None, (entry, ONE), None)
                body.do("dma_copy", dst=target, src=source)
            if kind.pooled:
                _move_slots(last, end_sb, tail, "write_slots", store=True)
            else:
                last.do("dma_copy", dst=_columns(tail, COLUMNS, ZERO, COLUMNS), src=end_sb)
        if kind.pooled:
            block.extend(ended)
        else:
            block.decide(compare("!=", Name("raw"), NONE), ended, plain)
    return Function(
        "keep_columns",
        names,
        "What later tokens see of a block's lines: their last columns.",
        tuple(block.statements),
    )
