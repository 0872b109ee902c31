"""From loaded vectors to A^T and P^T of a group for a decay per channel.

exp(G_i - G_j) stands inside the sum over channels, so every pair of tokens meets around a reference
of the plan (`AnchoredSegments`): k and q are scaled by exp of sums to it in [K, C] layout, and one
product holds the pairs. Blocks that begin where an operand may begin on the partitions are written
in place, one after the other; only those below a tile need a predicated copy each. What no product
wrote lies above the diagonal of A and is replaced when the scores are rounded.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import F32, U8, Constant, Function, Pattern, Space, Token, View
from backends.nki.program.numbers import ONE, ZERO, Largest, Literal, Name, Number, number
from backends.nki.program.structures import EMPTY, Item, tupled
from backends.nki.schedules.chunked.constants import halves, select
from backends.nki.schedules.chunked.decays_channel import channel_sums
from backends.nki.schedules.chunked.decays_channel import functions as decay_functions
from backends.nki.schedules.chunked.gates import beta_of
from backends.nki.schedules.chunked.operators import ADD, COPY, EXP, GREATER_EQUAL, MULTIPLY
from backends.nki.schedules.chunked.prepare import Step
from backends.nki.schedules.chunked.records import (
    BOTH,
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
    first_row,
    queries,
    row_count,
    rows_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD, SCALAR, VECTOR
from gdsl.algorithm.chunk_plan import AnchoredSegments

PARTITIONS = 128

CONSTANTS, GROUP = Name("constants"), Name("group")
SUBBLOCK, TILE, ROW = Name("SUBBLOCK"), Name("TILE"), Name("row")
FIRST = ROW * SUBBLOCK
"""First row of a sub-block within its tile; its reference is in the middle."""
MIDDLE = FIRST + SUBBLOCK // 2
REACHED = FIRST + SUBBLOCK
"""Columns of a tile that the rows of a sub-block meet."""


def _segments(schedule: Schedule) -> AnchoredSegments:
    segments = schedule.scan.chunk.segments
    assert isinstance(segments, AnchoredSegments)
    return segments


def _levels(schedule: Schedule) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Half widths of blocks that are written in place, and of those that need a mask."""
    levels, chunk = _segments(schedule).levels, schedule.scan.chunk.chunk
    placed = tuple(w for w in reversed(levels) if 2 * w >= min(QUADRANT, chunk))
    return placed, tuple(w for w in levels if w not in placed)


def constants(schedule: Schedule) -> tuple[Constant, ...]:
    """Return the references of the plan as constants of the module."""
    segments = _segments(schedule)
    placed, masked = _levels(schedule)
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


def steps(schedule: Schedule) -> tuple[Step, ...]:
    """Return the steps from loaded vectors to scores."""
    both = (CONSTANTS, GROUP)
    placed, masked = _levels(schedule)
    # GpSimdE has time for one level; it begins with it, since TensorE waits for all of them.
    scaled = [
        Step("scale_level", (*both, Literal(place), VECTOR if place else GPSIMD))
        for place, _ in enumerate(placed)
    ]
    found = [Step("decay_to_end", both), *scaled[:1], Step("decay_over_chunk", both)]
    if _segments(schedule).subblock > 1:
        found += [Step("scale_columns", both), Step("scale_rows", (GROUP,))]
    found += [*scaled[1:], Step("decay_from_start", both)]
    found.append(Step("multiply_pairs", (GROUP,)))
    if masked:
        found.append(Step("add_diagonal", both))
    for place, _ in enumerate(masked, start=len(placed)):
        engine = GPSIMD if place % 2 == 0 else VECTOR
        found.append(Step("scale_level", (*both, Literal(place), engine)))
        found.append(Step("add_level", (*both, Literal(place))))
    found.append(Step("round_scores", (GROUP,)))
    return tuple(found)


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the steps of preparing scores."""
    yield from decay_functions(schedule)
    yield _make_references(schedule)
    if _segments(schedule).subblock > 1:
        yield _scale_columns(schedule)
        yield _scale_rows(schedule)
    yield _scale_level(schedule)
    yield _multiply_pairs(schedule)
    if _levels(schedule)[1]:
        yield _add_diagonal(schedule)
        yield _add_level(schedule)
    yield _round_scores(schedule)


def _make_references(schedule: Schedule) -> Function:
    doc = "For each reference 0/1 sums of tokens between it and every token of its block."
    stage = Stage("make_references", ("constants",), doc, schedule.scan.log.span)
    block = stage.block
    _, masked = _levels(schedule)
    ones, upto, after = stage.tiles("constants", "ones", "upto", "after")
    block.let_named("sums", EMPTY)
    if _segments(schedule).subblock > 1:
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
        between = _named(
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


def _named(stage: Stage, block: Block, name: str, value: Number, like_it: View) -> View:
    """Bind a tile that a trace-time value is, in a block of the function."""
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
    before = TILE // SUBBLOCK if _segments(schedule).subblock > 1 else ZERO
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


def _multiply_pairs(schedule: Schedule) -> Function:
    met = "k_j . k_i and k_j . q_i with their decays" if schedule.solves else "k_j . q_i decayed"
    doc = f"{met}, every block in place: j on partitions."
    stage = Stage("multiply_pairs", ("group",), doc, schedule.scan.solve_span)
    block = stage.block
    stage.numbers("group", "keys", "scaled_levels")
    if schedule.columns != "kq_T":
        stage.numbers("group", "scaled_columns")
    tiles = _segments(schedule).subblock > 1
    stage.of_group(*(("rows",) if tiles else ()))
    products = block.tile("products", BOTH, F32, Space.PSUM)
    rows, row_factor = tile_of("group", "rows"), tile_of("group", "row_factor")
    if tiles:
        stage.numbers("group", "tile_columns")
    with block.loop("slot", 0, SLOTS) as (body, slot):
        places = Literal(len(_levels(schedule)[0]))
        with body.loop("level", 0, places) as (inner, level):
            width = inner.let_named("width", Item(Name("PLACED_LEVELS"), level))
            scaled = _named(stage, inner, "scaled", Item(Name("scaled_levels"), level), rows)
            columns = scaled
            if schedule.columns != "kq_T":
                place = Item(Name("scaled_columns"), level)
                columns = _named(stage, inner, "columns", place, rows)
            with inner.loop("low", 0, CHUNK, 2 * width) as (block_body, low):
                stationary = part(columns, None, (slot * PAIR + low, width))
                at = (slot, low, low + width, width)
                _place(schedule, block_body, products, stationary, scaled, *at)
        if tiles:
            with body.loop("row", 0, TILE // SUBBLOCK, exact=True) as (inner, row):
                first = inner.let_named("first", FIRST)
                scaled = _named(stage, inner, "scaled", Item(Name("tile_columns"), row), row_factor)
                with inner.loop("low", 0, CHUNK, TILE) as (tile_body, low):
                    stationary = part(scaled, None, (slot * CHUNK + low, first + SUBBLOCK))
                    at = (slot, low, low + first, SUBBLOCK)
                    _place(schedule, tile_body, products, stationary, rows, *at)
    block.put("group", products=products)
    return stage.done()


def _place(
    schedule: Schedule,
    block: Block,
    products: View,
    stationary: View,
    rows: View,
    slot: Number,
    low: Number,
    first: Number,
    count: Number,
) -> None:
    """Columns from partition `low` on times `count` rows from `first` on, of k and of q."""
    high = stationary.shape[1]
    pair = ((CHUNK, number(row_count(schedule))), (ONE, count))
    at = slot * PAIR + first + first_row(schedule)
    block.do(
        "nc_matmul",
        dst=Pattern(products.tile, ((SLOTS * PAIR, high), *pair), low * SLOTS * PAIR + at),
        stationary=stationary,
        moving=Pattern(rows.tile, ((SLOTS * PAIR, KEYS), *pair), at),
        tile_position=tupled(0, low),
        tile_size=tupled(PARTITIONS, Largest(number(QUADRANT), high)),
        accumulate=False,
    )


def _add_diagonal(schedule: Schedule) -> Function:
    doc = "What was written in place, and the diagonal, where no decay lies between key and query."
    stage = Stage("add_diagonal", ("constants", "group"), doc, schedule.scan.solve_span)
    block = stage.block
    kq_T, products = stage.of_group("kq_T", "products")
    (diagonal,) = stage.tiles("constants", "diagonal")
    raw_scores = block.tile("raw_scores", BOTH, F32)
    dst, src = all_rows(schedule, raw_scores), all_rows(schedule, products)
    block.do("tensor_copy", dst=dst, src=src, engine=SCALAR)
    (keys,) = stage.of_group(schedule.columns) if schedule.columns != "kq_T" else (kq_T,)
    _predicated(schedule, block, raw_scores, keys, kq_T, diagonal)
    block.put("group", raw_scores=raw_scores)
    return stage.done()


def _add_level(schedule: Schedule) -> Function:
    doc = "Products of the scaled vectors, kept where the pairs of the level meet."
    stage = Stage("add_level", ("constants", "group", "level"), doc, schedule.scan.solve_span)
    block = stage.block
    kq_T, raw_scores = stage.of_group("kq_T", "raw_scores")
    stage.numbers("group", "scaled_levels")
    stage.numbers("constants", "pairs")
    level = Name("level")
    scaled = stage.named("scaled", Item(Name("scaled_levels"), level), kq_T)
    columns = scaled
    if schedule.columns != "kq_T":
        stage.numbers("group", "scaled_columns")
        columns = stage.named("columns", Item(Name("scaled_columns"), level), kq_T)
    place = level - len(_levels(schedule)[0])
    met = stage.named("met", Item(Name("pairs"), place), tile_of("constants", "diagonal"))
    _predicated(schedule, block, raw_scores, columns, scaled, met)
    return stage.done()


def _predicated(
    schedule: Schedule, block: Block, scores: View, columns: View, vectors: View, mask: View
) -> None:
    """Products of every slot, copied where a mask says so."""
    found = block.tile("found", BOTH, F32, Space.PSUM)
    with block.loop("slot", 0, SLOTS) as (body, slot):
        body.do(
            "nc_matmul",
            dst=rows_of(schedule, found, slot),
            stationary=part(columns, None, (slot * PAIR, CHUNK)),
            moving=rows_of(schedule, vectors, slot),
            accumulate=False,
        )
    repeated = (ZERO, row_count(schedule) * SLOTS)
    predicate = Pattern(mask.tile, ((CHUNK, CHUNK), repeated, (ONE, CHUNK)), ZERO)
    dst, src = all_rows(schedule, scores), all_rows(schedule, found)
    block.do("tensor_copy_predicated", dst=dst, src=src, predicate=predicate)


def _round_scores(schedule: Schedule) -> Function:
    doc = (
        "A^T (j < i) and P^T (j <= i): beta_j times the sums over channels, 0 elsewhere."
        if schedule.solves
        else "P^T (j <= i): the sums over channels, 0 elsewhere."
    )
    stage = Stage("round_scores", ("group",), doc, schedule.scan.solve_span)
    block = stage.block
    source = "raw_scores" if _levels(schedule)[1] else "products"
    kq_T, sums = stage.of_group("kq_T", source)
    beta = beta_of(schedule, stage)
    all_pairs = block.tile("all_pairs", BOTH, like(kq_T))
    with block.loop("slot", 0, SLOTS) as (body, slot):
        body.do(
            "activation",
            dst=rows_of(schedule, all_pairs, slot),
            op=COPY,
            data=rows_of(schedule, sums, slot),
            scale=beta(body, slot),
        )
    scores = block.tile("scores", BOTH, like(kq_T))
    if schedule.solves:
        pairs = ((0, SLOTS), (1, 2), (1, CHUNK))
        select(block, scores, all_pairs, pairs, -1, -1, GREATER_EQUAL)
    else:
        upto = ((0, SLOTS), (1, CHUNK))
        select(block, queries(scores), queries(all_pairs), upto, -1, 0, GREATER_EQUAL)
    block.put("group", scores=scores)
    return stage.done()
