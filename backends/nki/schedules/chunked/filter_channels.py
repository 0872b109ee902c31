"""Windows in front of a chunked rule: causal filters of all tokens, into HBM.

The taps bring the tokens of a line back onto partitions: 128 of them are stationary and a diagonal
matrix of weights moves, tap by tap, so that PSUM sums in fp32 what 512 channels of 128 tokens give.
ScalarE evacuates that through silu, and rows of channels leave for HBM. Blocks of 512 channels are
a pipeline: what one is made of is fetched two ahead, its lines are made one ahead.

What rounds: beside 16-bit tokens weights are fp16 (11 bits, magnitudes below 65,504), beside fp32
tokens fp32; what is stored has the dtype of the tokens. A NaN of one channel reaches the other
channels of its token.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, Names, compare, part
from backends.nki.program.nodes import (
    F32,
    U8,
    Element,
    Function,
    Integers,
    Pattern,
    Space,
    Token,
    Verbatim,
    View,
)
from backends.nki.program.numbers import NONE, ONE, ZERO, Literal, Name, Number, smallest
from backends.nki.program.structures import EMPTY, Item, Length, tupled
from backends.nki.schedules.chunked import runs
from backends.nki.schedules.chunked.lines import (
    BLOCK,
    CHANNEL,
    CHANNELS,
    COLUMNS,
    LANES,
    PLACE,
    RECORD,
    ROW,
    ROW_COUNT,
    TAPS,
    TILES,
    TOKEN,
    TOKENS,
    TOTAL,
    Kind,
    line_of,
    opened,
)
from backends.nki.schedules.chunked.projecting import ROWS, WIDE, OnChip, argument, at_once
from backends.nki.select.layouts import GPSIMD


def functions(kind: Kind) -> Iterator[Function]:
    """Yield the functions; the entry calls `filter_channels`."""
    yield _plan_blocks()
    if kind.lengths:
        yield _find_live()
    yield _load_taps()
    yield _make_taps(kind)
    yield _filter_lines(kind)
    yield _filter_channels(kind)


def _plan_blocks() -> Function:
    block = Block(Names({"begin", "end", "wide"}))
    begin, end, wide = Name("begin"), Name("end"), Name("wide")
    block.let_named("blocks", EMPTY)
    whole = block.let_named("whole", (end - begin) // ROWS * ROWS)
    with block.loop("channel", begin, begin + whole, wide) as (body, channel):
        tiles = smallest(wide, begin + whole - channel) // ROWS
        body.append("blocks", tupled(channel, ROWS, tiles))
    with block.when(compare("<", whole, end - begin)) as rest:
        rest.append("blocks", tupled(begin + whole, end - begin - whole, 1))
    return Function(
        "plan_blocks",
        ("begin", "end", "wide"),
        "Blocks of channels: (first channel, partitions, tiles of them).",
        tuple(block.statements),
        ("blocks",),
    )


def _find_live() -> Function:
    names = ("lengths_f32", *PLACE)
    block, lengths = Block(Names({*names})), OnChip("lengths_f32")
    pieces = block.let_named("pieces", (TOKENS + ROWS - 1) // ROWS)
    place = block.tile("place_sb", (ROWS, pieces), F32)
    pattern = Integers(((ROWS, pieces),))
    block.do("iota", dst=place, pattern=pattern, offset=TOKEN, channel_multiplier=ONE)
    live = block.tile("live_sb", (ROWS, ROW_COUNT * pieces), U8)
    with block.loop("entry", ZERO, ROW_COUNT) as (body, entry):
        body.do(
            "tensor_scalar",
            dst=part(live, None, (entry * pieces, pieces)),
            data=place,
            op0=Token("nl.less"),
            operand0=part(lengths.view, None, (ROW + entry, ONE)),
        )
    return Function(
        "find_live",
        names,
        "1 for tokens before the end of their row: those of piece i of row r in column r * pieces\n"
        "+ i.",
        tuple(block.statements),
        ("live_sb",),
    )


def _load_taps() -> Function:
    names = (RECORD, *BLOCK)
    block = opened(names, "weights", "taps")
    weights = argument("weights")
    taps_sb = block.tile("taps_sb", (LANES, TILES * TAPS), weights.element)
    steps = ((TILES * TAPS, LANES), (TAPS, TILES), (ONE, TAPS))
    source = Pattern(weights, ((TAPS, LANES), (ROWS * TAPS, TILES), (ONE, TAPS)), CHANNEL * TAPS)
    block.do("dma_copy", dst=Pattern(taps_sb.tile, steps, ZERO), src=source)
    return Function(
        "load_taps",
        names,
        "The weights of a block of channels: tap i of tile t in column t * taps + i.",
        tuple(block.statements),
        ("taps_sb",),
    )


def _make_taps(kind: Kind) -> Function:
    names = (RECORD, "taps_sb", "lanes")
    block = opened(names, "identity_sb", *(("result",) if kind.taps is None else ()))
    taps = OnChip("taps_sb")
    count = taps.shape[1]
    diagonal = block.tile("diagonal_sb", (LANES, count * LANES), _tap_element(kind, block))
    identity = OnChip("identity_sb")
    block.do(
        "tensor_tensor",
        dst=diagonal,
        data1=Pattern(identity.tile, ((ROWS, LANES), (ZERO, count), (ONE, LANES)), ZERO),
        data2=Pattern(taps.tile, ((count, LANES), (ONE, count), (ZERO, LANES)), ZERO),
        op=Token("nl.multiply"),
        engine=GPSIMD,
    )
    return Function(
        "make_taps",
        names,
        "A diagonal matrix for every tap of every tile.",
        tuple(block.statements),
        ("diagonal_sb",),
    )


def _tap_element(kind: Kind, block: Block) -> Element:
    """What holds weights on TensorE, which does not mix fp32 with narrower dtypes."""
    if kind.taps is not None:
        return kind.taps
    text = "tap_dtype = nl.float32 if result.dtype == nl.float32 else nl.float16"
    block.statements.append(Verbatim(text))
    return Element("tap_dtype", 4, "result")


def _filter_lines(kind: Kind) -> Function:
    live = ("live_sb",) if kind.lengths else ()
    names = (RECORD, "line_sb", "diagonal_sb", *live, *PLACE, *BLOCK)
    block = opened(names, "result", "columns", "taps", "channels", "total")
    result, line, diagonal = argument("result"), line_of(kind), OnChip("diagonal_sb")
    width = block.let_named("width", LANES * TILES)
    length = COLUMNS + TOKENS
    with (
        block.loop("entry", ZERO, ROW_COUNT) as (rows, entry),
        rows.loop("first", ZERO, TOKENS, ROWS) as (body, first),
    ):
        count = body.let("count", smallest(ROWS, TOKENS - first))
        sums = body.tile("sum_psum", (count, width), F32, Space.PSUM)
        with (
            body.loop("tile", ZERO, TILES) as (tiles, tile),
            tiles.loop("tap", ZERO, TAPS) as (each, tap),
        ):
            # The last tap weighs the token itself, which stands behind the window's columns.
            start = (tile * ROW_COUNT + entry) * length + first + tap + COLUMNS - TAPS + ONE
            steps = ((TILES * ROW_COUNT * length, LANES), (ONE, count))
            each.do(
                "nc_matmul",
                dst=part(sums, None, (tile * ROWS, LANES)),
                stationary=Pattern(line, steps, start),
                moving=part(diagonal.view, None, ((tile * TAPS + tap) * LANES, LANES)),
                accumulate=compare(">", tap, ZERO),
            )
        out_sb = body.tile("out_sb", (count, width), result.element)
        op = Token("nl.silu" if kind.silu else "nl.copy")
        body.do("activation", dst=out_sb, op=op, data=sums)
        if kind.lengths:
            _zero_dead(body, out_sb, entry, first)
        place = ((ROW + entry) * TOTAL + TOKEN + first) * CHANNELS + CHANNEL
        stored = Pattern(result, ((CHANNELS, count), (ONE, width)), place)
        body.do("dma_copy", dst=stored, src=out_sb)
    return Function(
        "filter_lines",
        names,
        "Weigh, activate and store the tokens of a block of channels.",
        tuple(block.statements),
    )


def _zero_dead(block: Block, out_sb: View, entry: Number, first: Number) -> None:
    """Select zeros behind the end of the row, so that whoever reads the result need not."""
    live = OnChip("live_sb")
    count, width = out_sb.shape
    with block.when(compare("!=", Name("live_sb"), NONE)) as body:
        column = entry * ((TOKENS + ROWS - 1) // ROWS) + first // ROWS
        steps = ((live.shape[1], count), (ZERO, width))
        body.do(
            "tensor_copy_predicated",
            dst=out_sb,
            src=Literal(0.0),
            predicate=Pattern(live.tile, steps, column),
            reverse_pred=True,
        )


def _filter_channels(kind: Kind) -> Function:
    turned = ("turned_sb",) if kind.projected else ()
    live = ("live_sb",) if kind.lengths else ()
    names = (RECORD, *turned, *live, *PLACE)
    lies = runs.RECORD if kind.runs else "channels"
    block = opened(names, "begin", "end", *(("source", "hidden", lies) * kind.projected))
    place_of = tuple(Name(name) for name in PLACE)
    held = "weight_sb" if kind.projected else "held_sb"
    wide = at_once(Name("hidden")) if kind.projected else WIDE
    block.call("plan_blocks", Name("begin"), Name("end"), wide, result="blocks")
    blocks = Name("blocks")

    def sizes(place: Number) -> tuple[Number, ...]:
        return tuple(Item(Item(blocks, place), Literal(i)) for i in range(len(BLOCK)))

    def fetch(body: Block, place: Number, prefix: str) -> None:
        channel, lanes, tiles = sizes(place)
        result = f"{prefix}{held}"
        if kind.projected:
            weight = (Name("source"), Name("hidden"), Name(lies))
            body.call("load_weight_columns", *weight, channel, lanes * tiles, result=result)
        else:
            given = (Name(RECORD), *place_of, channel, lanes, tiles)
            body.call("load_tokens", *given, result=result)
        body.call("load_taps", Name(RECORD), channel, lanes, tiles, result=f"{prefix}taps_sb")

    def make(body: Block, place: Number, source: str, prefix: str) -> None:
        own = sizes(place)
        taps = (Name(RECORD), Name(f"{source}taps_sb"), own[1])
        body.call("make_taps", *taps, result=f"{prefix}diagonal_sb")
        moving = (*(Name(name) for name in turned), Name(f"{source}{held}"))
        body.call("make_lines", Name(RECORD), *moving, *place_of, *own, result=f"{prefix}line_sb")

    count = Length(blocks)
    with block.when(compare(">", count, 0)) as some:
        fetch(some, ZERO, "")
        make(some, ZERO, "", "")
    with block.when(compare(">", count, 1)) as some:
        fetch(some, ONE, "next_")
    with block.loop("place", ZERO, count) as (body, place):
        more, further = compare("<", place + 1, count), compare("<", place + 2, count)
        with body.when(further) as ahead:
            fetch(ahead, place + 2, "later_")
        with body.when(more) as ahead:
            make(ahead, place + 1, "next_", "next_")
        own = (*place_of, *sizes(place))
        body.call("keep_columns", Name(RECORD), Name("line_sb"), *own)
        filtered = tuple(Name(name) for name in (RECORD, "line_sb", "diagonal_sb", *live))
        body.call("filter_lines", *filtered, *own)
        with body.when(more) as ahead:
            ahead.rebind(("line_sb", "diagonal_sb"), ("next_line_sb", "next_diagonal_sb"))
        with body.when(further) as ahead:
            pair = (held, "taps_sb")
            ahead.rebind(
                tuple(f"next_{name}" for name in pair), tuple(f"later_{name}" for name in pair)
            )
    return Function(
        "filter_channels",
        names,
        "Filter the tokens at hand of all channels of this core.\n\n"
        "What a block is made of is fetched two ahead, its lines are made one ahead.",
        tuple(block.statements),
    )
