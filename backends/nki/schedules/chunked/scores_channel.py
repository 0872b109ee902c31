"""From loaded vectors to A^T and P^T of a group for a decay per channel.

exp(G_i - G_j) stands inside the sum over channels, so every pair of tokens meets around a reference
of the plan: k and q are scaled by exp of sums to it (`references_channel`), and one product holds
the pairs. Blocks that begin where an operand may begin on the partitions are written
in place, one after the other; only those below a tile need a predicated copy each. What no product
wrote lies above the diagonal of A and is replaced when the scores are rounded.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import F32, Function, Pattern, Space, View
from backends.nki.program.numbers import ONE, ZERO, Largest, Literal, Name, Number, number
from backends.nki.program.structures import Item, tupled
from backends.nki.schedules.chunked.constants import select
from backends.nki.schedules.chunked.decays_channel import functions as decay_functions
from backends.nki.schedules.chunked.gates import beta_of
from backends.nki.schedules.chunked.operators import COPY, GREATER_EQUAL
from backends.nki.schedules.chunked.prepare import Step
from backends.nki.schedules.chunked.records import (
    BOTH,
    CHUNK,
    KEYS,
    PAIR,
    QUADRANT,
    SLOTS,
    like,
    tile_of,
)
from backends.nki.schedules.chunked.references_channel import (
    FIRST,
    SUBBLOCK,
    TILE,
    levels_of,
    named,
    scaling,
    segments_of,
)
from backends.nki.schedules.chunked.rows import (
    all_rows,
    first_row,
    queries,
    row_count,
    rows_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD, SCALAR, VECTOR

PARTITIONS = 128

CONSTANTS, GROUP = Name("constants"), Name("group")


def steps(schedule: Schedule) -> tuple[Step, ...]:
    """Return the steps from loaded vectors to scores."""
    both = (CONSTANTS, GROUP)
    placed, masked = levels_of(schedule)
    # GpSimdE has time for one level; it begins with it, since TensorE waits for all of them.
    scaled = [
        Step("scale_level", (*both, Literal(place), VECTOR if place else GPSIMD))
        for place, _ in enumerate(placed)
    ]
    found = [Step("decay_to_end", both), *scaled[:1], Step("decay_over_chunk", both)]
    if segments_of(schedule).subblock > 1:
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
    yield from scaling(schedule)
    yield _multiply_pairs(schedule)
    if levels_of(schedule)[1]:
        yield _add_diagonal(schedule)
        yield _add_level(schedule)
    yield _round_scores(schedule)


def _multiply_pairs(schedule: Schedule) -> Function:
    met = "k_j . k_i and k_j . q_i with their decays" if schedule.solves else "k_j . q_i decayed"
    doc = f"{met}, every block in place: j on partitions."
    stage = Stage("multiply_pairs", ("group",), doc, schedule.scan.solve_span)
    block = stage.block
    stage.numbers("group", "keys", "scaled_levels")
    if schedule.columns != "kq_T":
        stage.numbers("group", "scaled_columns")
    tiles = segments_of(schedule).subblock > 1
    stage.of_group(*(("rows",) if tiles else ()))
    products = block.tile("products", BOTH, F32, Space.PSUM)
    rows, row_factor = tile_of("group", "rows"), tile_of("group", "row_factor")
    if tiles:
        stage.numbers("group", "tile_columns")
    with block.loop("slot", 0, SLOTS) as (body, slot):
        places = Literal(len(levels_of(schedule)[0]))
        with body.loop("level", 0, places) as (inner, level):
            width = inner.let_named("width", Item(Name("PLACED_LEVELS"), level))
            scaled = named(stage, inner, "scaled", Item(Name("scaled_levels"), level), rows)
            columns = scaled
            if schedule.columns != "kq_T":
                place = Item(Name("scaled_columns"), level)
                columns = named(stage, inner, "columns", place, rows)
            with inner.loop("low", 0, CHUNK, 2 * width) as (block_body, low):
                stationary = part(columns, None, (slot * PAIR + low, width))
                at = (slot, low, low + width, width)
                _place(schedule, block_body, products, stationary, scaled, *at)
        if tiles:
            with body.loop("row", 0, TILE // SUBBLOCK, exact=True) as (inner, row):
                first = inner.let_named("first", FIRST)
                scaled = named(stage, inner, "scaled", Item(Name("tile_columns"), row), row_factor)
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
    place = level - len(levels_of(schedule)[0])
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
    source = "raw_scores" if levels_of(schedule)[1] else "products"
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
