"""Masks and identities, made on chip."""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import (
    F32,
    Element,
    Function,
    Integers,
    Operand,
    Pattern,
    Space,
    Token,
    View,
)
from backends.nki.program.numbers import ONE, Literal, Name, Number, Numeric, number
from backends.nki.program.structures import EMPTY, Record, Text
from backends.nki.schedules.chunked.operators import EQUAL, GREATER, GREATER_EQUAL
from backends.nki.schedules.chunked.records import BLOCK, CHUNK, PARTITIONS, SQUARE, like
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD, SCALAR


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield `make_constants` and `make_masks`."""
    yield _constants(schedule)
    if schedule.solves:
        yield _masks(schedule)


def select(
    block: Block,
    dst: View | Pattern,
    on_true: Operand,
    pattern: tuple[tuple[Numeric, Numeric], ...],
    row: Numeric,
    offset: Numeric,
    cmp_op: Token,
    on_false: Numeric = 0.0,
) -> None:
    """dst = `on_true` where offset + row * partition + pattern passes the comparison with 0."""
    block.do(
        "affine_select",
        dst=dst,
        pattern=Integers(tuple((number(step), number(count)) for step, count in pattern)),
        channel_multiplier=number(row),
        offset=number(offset),
        on_true_tile=on_true,
        on_false_value=number(on_false),
        cmp_op=cmp_op,
    )


def _constants(schedule: Schedule) -> Function:
    stage = Stage(
        "make_constants",
        (schedule.scan.query.name,),
        "Masks and identities, made on chip; [row, column] on [partition, free].",
    )
    block = stage.block
    ones = block.tile("ones", (CHUNK, PARTITIONS), F32)
    block.do("memset", dst=ones, value=Literal(1.0))
    block.comment("after[m, j] = m > j, upto[m, i] = m <= i: the 0/1 operands of segment sums.")
    after, upto = block.tile("after", SQUARE, F32), block.tile("upto", SQUARE, F32)
    identity_f32 = block.tile("identity_f32", SQUARE, F32)
    square = part(ones, None, (0, CHUNK))
    select(block, after, square, ((-1, CHUNK),), 1, 0, GREATER)
    select(block, upto, square, ((1, CHUNK),), -1, 0, GREATER_EQUAL)
    select(block, identity_f32, square, ((1, CHUNK),), -1, 0, EQUAL)
    more: tuple[str, ...] = ()
    if schedule.scan.before_decay:
        block.comment("before[m, i] = m < i.")
        before, more = block.tile("before", SQUARE, F32), ("before",)
        select(block, before, square, ((1, CHUNK),), -1, 0, GREATER)
    identity = block.tile("identity", SQUARE, schedule.operand)
    block.do("tensor_copy", dst=identity, src=identity_f32, engine=GPSIMD)
    tiles = ("ones", "after", "upto", "identity_f32", "identity", *more)
    fields: list[tuple[str, Number]] = [(name, Name(name)) for name in tiles]
    block.let_named("constants", Record((*fields, ("levels", EMPTY), ("sums", EMPTY))))
    return stage.done("constants")


def _masks(schedule: Schedule) -> Function:
    stage = Stage(
        "make_masks",
        ("constants",),
        "Masks of the inverse, made while the first transfers are under way.",
    )
    block = stage.block
    identity, ones = stage.tiles("constants", "identity", "ones")
    stage.numbers("constants", "levels")
    element, count = like(identity), CHUNK // BLOCK
    minus_ones = block.tile("minus_ones", SQUARE, F32)
    block.do("memset", dst=minus_ones, value=Literal(-1.0))
    block.comment(
        "1 on the diagonal blocks of BLOCK_ROWS rows; the blocks of the identity side by side."
    )
    rows_from, blocks = block.tile("rows_from", SQUARE, F32), block.tile("blocks", SQUARE, element)
    down, up = ((-1 * BLOCK, count), (0, BLOCK)), ((BLOCK, count), (0, BLOCK))
    square = part(ones, None, (0, CHUNK))
    select(block, rows_from, square, down, 1, 0, GREATER_EQUAL)
    select(block, blocks, rows_from, up, -1, BLOCK - 1, GREATER_EQUAL)
    found = block.tile("found", (CHUNK, BLOCK), F32, Space.PSUM)
    with block.loop("first", 0, CHUNK, BLOCK) as (body, first):
        body.do(
            "nc_matmul",
            dst=found,
            stationary=identity,
            moving=part(identity, None, (first, BLOCK)),
            accumulate=compare(">", first, 0),
        )
    units = block.tile("units", (CHUNK, BLOCK), element)
    block.do("tensor_copy", dst=units, src=found, engine=SCALAR)
    block.comment(
        "-1 where a merge of blocks of `width` reads A^T[j, i]: j in the first half, i in the\n"
        "second. Of single rows this is A^T itself; later masks choose what is written instead."
    )
    twos = halves(block, minus_ones, ONE, "twos", element)
    with block.each(("width",), Name("MASKED_MERGES")) as body:
        read = halves(body, minus_ones, Name("width"), "read", element)
        written = body.tile("written", (CHUNK, BLOCK), F32, Space.PSUM)
        body.do("nc_matmul", dst=written, stationary=read, moving=units, accumulate=False)
        level = body.tile("level", (CHUNK, BLOCK), element)
        body.do("tensor_copy", dst=level, src=written, engine=SCALAR)
        body.append("levels", Name(level.tile.name))
    block.put("constants", blocks=blocks, units=units, twos=twos)
    if not schedule.doubled_leaf:
        return stage.done()
    if len(schedule.inverses) == 1:
        _leaves(block, minus_ones, element)
        return stage.done()
    (algorithm,) = stage.numbers("constants", "algorithm")
    with block.when(compare("==", algorithm, Text("neumann"))) as body:
        _leaves(body, minus_ones, element)
    return stage.done()


def _leaves(block: Block, minus_ones: View, dtype: Element) -> None:
    LEAF = Name("LEAF")
    block.comment("-1 above the diagonal inside each block of LEAF rows.")
    rows_from, leaves = block.tile("rows_from", SQUARE, F32), block.tile("leaves", SQUARE, dtype)
    blocks = ((-LEAF, CHUNK // LEAF), (0, LEAF))
    select(block, rows_from, minus_ones, blocks, 1, 0, GREATER_EQUAL)
    select(block, leaves, rows_from, ((1, CHUNK),), -1, 0, GREATER)
    block.put("constants", leaves=leaves)


def halves(block: Block, values: View, width: Number, name: str, dtype: Element) -> View:
    """Return `values` where j lies in the first and i in the second half of one block.

    Blocks have 2 * width tokens; elsewhere there is 0.
    """
    blocks = CHUNK // (2 * width)
    from_start, first_half = (
        block.tile("from_start", SQUARE, F32),
        block.tile("first_half", SQUARE, F32),
    )
    chosen = block.tile(name, SQUARE, dtype)
    up, down = ((2 * width, blocks), (0, 2 * width)), ((-2 * width, blocks), (0, 2 * width))
    second_half = ((0, blocks), (1, 2 * width))
    select(block, from_start, values, down, 1, 0, GREATER_EQUAL)
    select(block, first_half, from_start, up, -1, width - 1, GREATER_EQUAL)
    select(block, chosen, first_half, second_half, 0, -width, GREATER_EQUAL)
    return chosen
