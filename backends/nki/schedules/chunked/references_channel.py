"""Vectors of a group around the references of a plan, for a decay per channel.

Every pair of tokens meets around a reference (`AnchoredSegments`): k and q are scaled by exp of
sums of log decays to it, in [K, C] layout, so that a product of what is scaled holds
exp(G_i - G_j).
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import F32, U8, Constant, Function, Pattern, Token, View
from backends.nki.program.numbers import ONE, ZERO, Literal, Name, Number, number
from backends.nki.program.structures import EMPTY, Item, tupled
from backends.nki.schedules.chunked.constants import halves, select
from backends.nki.schedules.chunked.decays_channel import channel_sums
from backends.nki.schedules.chunked.operators import ADD, EXP, GREATER_EQUAL, MULTIPLY
from backends.nki.schedules.chunked.records import (
    CHUNK,
    KEYS,
    PAIR,
    QUADRANT,
    SLOTS,
    SQUARE,
    TURNED,
    like,
    tile_of,
)
from backends.nki.schedules.chunked.rows import (
    all_rows,
    first_half,
    row_count,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD, VECTOR
from gdsl.algorithm.chunk_plan import AnchoredSegments

SUBBLOCK, TILE, ROW = Name("SUBBLOCK"), Name("TILE"), Name("row")
FIRST = ROW * SUBBLOCK
"""First row of a sub-block within its tile; its reference is in the middle."""
MIDDLE = FIRST + SUBBLOCK // 2


def segments_of(schedule: Schedule) -> AnchoredSegments:
    """Return the references of the plan."""
    segments = schedule.scan.chunk.segments
    assert isinstance(segments, AnchoredSegments)
    return segments


def levels_of(schedule: Schedule) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the half widths of blocks that are written in place, and of those that need a mask."""
    levels, chunk = segments_of(schedule).levels, schedule.scan.chunk.chunk
    placed = tuple(w for w in reversed(levels) if 2 * w >= min(QUADRANT, chunk))
    return placed, tuple(w for w in levels if w not in placed)


def constants(schedule: Schedule) -> tuple[Constant, ...]:
    """Return the references of the plan as constants of the module."""
    segments = segments_of(schedule)
    placed, masked = levels_of(schedule)
    found = []
    if segments.subblock > 1:
        found += [
            Constant("SUBBLOCK", Literal(segments.subblock), "rows that share a reference"),
            Constant("TILE", Literal(segments.tile), "tokens that meet around references of rows"),
        ]
    meet = "half widths of the blocks that pairs of tokens meet in"
    found.append(Constant("PLACED_LEVELS", tupled(*placed), f"{meet}, written in place"))
    if masked:
        found.append(Constant("MASKED_LEVELS", tupled(*masked), f"{meet}, selected by a mask"))
    return tuple(found)


def scaling(schedule: Schedule) -> Iterator[Function]:
    """Yield `make_references` and the steps that scale vectors."""
    yield _make_references(schedule)
    if segments_of(schedule).subblock > 1:
        yield _scale_columns(schedule)
        yield _scale_rows(schedule)
    yield _scale_level(schedule)


def _make_references(schedule: Schedule) -> Function:
    doc = "For each reference 0/1 sums of tokens between it and every token of its block."
    stage = Stage("make_references", ("constants",), doc, schedule.scan.log.span)
    block = stage.block
    _, masked = levels_of(schedule)
    ones, upto, after = stage.tiles("constants", "ones", "upto", "after")
    block.let_named("sums", EMPTY)
    if segments_of(schedule).subblock > 1:
        with block.loop("row", 0, TILE // SUBBLOCK, exact=True) as (body, _):
            _append_sums(body, upto, after, TILE, MIDDLE)
    for levels in ("PLACED_LEVELS",) + (("MASKED_LEVELS",) if masked else ()):
        with block.each(("width",), Name(levels)) as body:
            _append_sums(body, upto, after, 2 * Name("width"), Name("width"))
    if masked:
        block.let_named("pairs", EMPTY)
        with block.each(("width",), Name("MASKED_LEVELS")) as body:
            met = halves(body, part(ones, None, (0, CHUNK)), Name("width"), "met", U8)
            body.append("pairs", Name(met.tile.name))
        (identity,) = stage.tiles("constants", "identity_f32")
        diagonal = block.tile("diagonal", SQUARE, U8)
        block.do("tensor_copy", dst=diagonal, src=identity, engine=GPSIMD)
        block.put("constants", pairs=Name("pairs"), diagonal=diagonal)
    block.put("constants", sums=Name("sums"))
    return stage.done()


def _append_sums(block: Block, upto: View, after: View, width: Number, at: Number) -> None:
    """1 for the tokens m between token c and the reference before token `at` of its block."""
    behind, between = block.tile("behind", SQUARE, F32), block.tile("between", SQUARE, F32)
    blocks = CHUNK // width
    select(block, behind, upto, ((-width, blocks), (0, width)), 1, -at, GREATER_EQUAL)
    select(block, between, after, ((width, blocks), (0, width)), -1, at - 1, GREATER_EQUAL)
    block.do("tensor_tensor", dst=between, data1=between, data2=behind, op=ADD, engine=GPSIMD)
    block.append("sums", Name(between.tile.name))


def _scale_columns(schedule: Schedule) -> Function:
    doc = (
        "k as columns for the rows of each sub-block, and the factors of those rows.\n\n"
        "Around the reference in the middle of the rows one exponent is the other's negative."
    )
    stage = Stage("scale_columns", ("constants", "group"), doc, schedule.scan.log.span)
    block = stage.block
    stage.numbers("group", "keys")
    g, columns = stage.of_group("g", schedule.columns)
    stage.numbers("constants", "sums")
    row_factor = block.tile("row_factor", TURNED, like(columns))
    block.let_named("tile_columns", EMPTY)
    with block.loop("row", 0, TILE // SUBBLOCK, exact=True) as (body, row):
        half = body.let_named("half", SUBBLOCK // 2)
        middle = body.let_named("middle", ROW * SUBBLOCK + half)
        between = named(
            stage, body, "between", Item(Name("sums"), row), tile_of("constants", "upto")
        )
        sums = channel_sums(body, "around", g, between, TILE, middle + half)
        factor = body.tile("factor", TURNED, like(columns))
        for dst, first, count, sign in (
            (factor, ZERO, middle, 1.0),
            (factor, middle, half, -1.0),
            (row_factor, middle - half, half, -1.0),
            (row_factor, middle, half, 1.0),
        ):
            body.do(
                "activation",
                dst=_of_tiles(dst, first, count),
                op=EXP,
                data=_of_tiles(sums, first, count),
                scale=Literal(sign),
            )
        scaled = body.tile("scaled", TURNED, like(columns))
        body.do(
            "tensor_tensor",
            dst=_of_tiles_of_slots(scaled, CHUNK, middle + half),
            data1=_of_tiles_of_slots(columns, PAIR, middle + half),
            data2=_of_tiles_of_slots(factor, CHUNK, middle + half),
            op=MULTIPLY,
            engine=VECTOR,
        )
        body.append("tile_columns", Name(scaled.tile.name))
    block.put("group", tile_columns=Name("tile_columns"), row_factor=row_factor)
    return stage.done()


def _scale_rows(schedule: Schedule) -> Function:
    doc = f"{'k and q' if schedule.solves else 'q'} as rows of their sub-blocks."
    stage = Stage("scale_rows", ("group",), doc, schedule.scan.log.span)
    block = stage.block
    stage.numbers("group", "keys")
    kq_T, row_factor = stage.of_group("kq_T", "row_factor")
    rows = block.tile("rows", kq_T.shape, like(kq_T))
    _scale(
        block,
        all_rows(schedule, rows),
        all_rows(schedule, kq_T),
        row_factor,
        row_count(schedule),
        VECTOR,
    )
    block.put("group", rows=rows)
    return stage.done()


def _scale_level(schedule: Schedule) -> Function:
    doc = (
        "k and q for pairs across the halves of the blocks of a level.\n\n"
        "With the boundary as reference one factor <= 1 serves the rows of the second half and\n"
        "the columns of the first."
    )
    parameters = ("constants", "group", "level", "engine")
    stage = Stage("scale_level", parameters, doc, schedule.scan.log.span)
    block = stage.block
    stage.numbers("group", "keys", "scaled_levels")
    g, kq_T = stage.of_group("g", "kq_T")
    stage.numbers("constants", "sums")
    before = TILE // SUBBLOCK if segments_of(schedule).subblock > 1 else ZERO
    between = stage.named(
        "between", Item(Name("sums"), before + Name("level")), tile_of("constants", "upto")
    )
    sums = channel_sums(block, "across", g, between)
    factor = block.tile("factor", TURNED, like(kq_T))
    block.do("activation", dst=factor, op=EXP, data=sums)
    scaled = block.tile("scaled", kq_T.shape, like(kq_T))
    _scale(block, scaled, kq_T, factor, 2, Name("engine"))
    block.append("scaled_levels", Name(scaled.tile.name))
    if schedule.columns != "kq_T":
        (keys_T,) = stage.of_group(schedule.columns)
        stage.numbers("group", "scaled_columns")
        columns = block.tile("columns", kq_T.shape, like(kq_T))
        _scale(block, first_half(columns), first_half(keys_T), factor, 1, Name("engine"))
        block.append("scaled_columns", Name(columns.tile.name))
    return stage.done()


def _scale(
    block: Block,
    dst: View | Pattern,
    vectors: View | Pattern,
    factor: View,
    count: int,
    engine: Token | Name,
) -> None:
    """`count` vectors of every slot times a factor per token and channel."""
    repeated = ((SLOTS * CHUNK, KEYS), (CHUNK, SLOTS), (ZERO, number(count)), (ONE, CHUNK))
    block.do(
        "tensor_tensor",
        dst=dst,
        data1=vectors,
        data2=Pattern(factor.tile, repeated, ZERO),
        op=MULTIPLY,
        engine=engine,
    )


def named(stage: Stage, block: Block, name: str, value: Number, like_it: View) -> View:
    """Return a tile that a trace-time value is, in a block of the function."""
    block.let_named(name, value)
    return stage.given(name, like_it)


def _of_tiles(view: View, first: Number, count: Number) -> Pattern:
    """`count` tokens from `first` on of every tile of every slot."""
    steps = ((SLOTS * CHUNK, KEYS), (TILE, SLOTS * (CHUNK // TILE)), (ONE, count))
    return Pattern(view.tile, steps, first)


def _of_tiles_of_slots(view: View, width: Number, count: Number) -> Pattern:
    """The first `count` tokens of every tile, slots `width` columns apart."""
    steps = ((SLOTS * width, KEYS), (width, SLOTS), (TILE, CHUNK // TILE), (ONE, count))
    return Pattern(view.tile, steps, ZERO)
