"""Projections in front of a chunked rule: rows of tokens times weights.

A block of up to 512 tokens is turned onto partitions once, for all weights; each weight is streamed
once per block, in pieces of up to 512 columns that are fetched one ahead, and its row groups add up
in PSUM in fp32. What the rule reads goes to HBM; what only another projection reads stays on chip,
already turned. Cores share the columns of what goes to HBM.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from backends.nki.program.build import Block, Names, compare, part
from backends.nki.program.nodes import (
    F32,
    Constant,
    Element,
    Function,
    Pattern,
    Space,
    Tile,
    View,
    dtype_of,
)
from backends.nki.program.numbers import (
    ONE,
    ZERO,
    Extent,
    Largest,
    Literal,
    Name,
    Number,
    smallest,
)
from backends.nki.schedules.chunked.runs import ALL, FIELDS, RECORD, pieces, whole
from backends.nki.select.layouts import SCALAR, TENSOR, VECTOR

ROWS, WIDE, HELD = Name("ROWS"), Name("WIDE"), Name("HELD")
CONSTANTS = (
    Constant("ROWS", Literal(128), "tokens or channels on partitions"),
    Constant("WIDE", Literal(512), "fp32 columns of a matmul: one PSUM bank"),
    Constant("HELD", Literal(16384), "elements of tokens, or of a weight, on a partition at once"),
)
TURNED_AT_ONCE = 4
"""Blocks of 128 tokens or channels that one instruction brings from PSUM."""


def at_once(hidden: Number) -> Number:
    """Return how many tokens, or columns of a weight, of `hidden` channels are on chip at once."""
    lanes = lanes_of(hidden)
    return smallest(WIDE, Largest(ROWS, HELD // (hidden // lanes) // ROWS * ROWS))


def lanes_of(hidden: Number) -> Number:
    """Return how many partitions the groups of a contraction take: all, or one group has fewer."""
    return smallest(ROWS, hidden)


def argument(name: str) -> Tile:
    """Return a tensor that is a parameter, in its own dtype."""
    return Tile(name, (), dtype_of(name, 4), Space.ARGUMENT)


def element(tile: str) -> Element:
    """Return the element type of another tile."""
    return dtype_of(tile, 4)


@frozen
class OnChip:
    """A tile that is a parameter, of any size."""

    name: str

    @property
    def shape(self) -> tuple[Number, Number]:
        return Extent(self.name, 0), Extent(self.name, 1)

    @property
    def tile(self) -> Tile:
        return Tile(self.name, self.shape, element(self.name), Space.SBUF)

    @property
    def view(self) -> View:
        return View(self.tile, self.shape)


def functions(*, turned: bool, rows: bool, runs: bool) -> Iterator[Function]:
    """Yield what projections need.

    `turned`: some stay on chip; `rows`: some go to HBM; `runs`: of some weights columns are used
    that lie apart.
    """
    yield _turn_rows()
    yield _load_runs() if runs else _load_columns()
    if turned:
        yield _project_turned(runs)
    if rows:
        yield _project_rows(runs)


def _turn_rows() -> Function:
    names = ("moving", "row", "held", "hidden")
    block, moving = Block(Names({*names})), argument("moving")
    row, held, hidden = (Name(name) for name in names[1:])
    groups = block.let("groups", hidden // ROWS)
    turned = block.tile("turned_sb", (ROWS, groups * held), moving.element)
    with block.loop("first", ZERO, held, ROWS) as (body, first):
        count = body.let("count", smallest(ROWS, held - first))
        rows_sb = body.tile("rows_sb", (count, hidden), moving.element)
        source = Pattern(moving, ((hidden, count), (ONE, hidden)), (row + first) * hidden)
        body.do("dma_copy", dst=rows_sb, src=source)
        with body.loop("group", ZERO, groups, TURNED_AT_ONCE) as (some, group):
            many = some.let("many", smallest(TURNED_AT_ONCE, groups - group))
            psum = some.tile("turned_psum", (ROWS, many * count), moving.element, Space.PSUM)
            with some.loop("place", ZERO, many) as (each, place):
                data = part(rows_sb, None, ((group + place) * ROWS, ROWS))
                dst = part(psum, None, (place * count, count))
                each.do("nc_transpose", dst=dst, data=data, engine=TENSOR)
            steps = ((groups * held, ROWS), (held, many), (ONE, count))
            target = Pattern(turned.tile, steps, group * held + first)
            some.do("tensor_copy", dst=target, src=psum, engine=VECTOR)
    return Function(
        "turn_rows",
        names,
        "Tokens `row` to `row + held` with hidden channels on partitions: group g from column\n"
        "g * held on.",
        tuple(block.statements),
        ("turned_sb",),
    )


def _load_columns() -> Function:
    names = ("weight", "hidden", "columns", "column", "width")
    block, weight = Block(Names({*names})), argument("weight")
    hidden, columns, column, width = (Name(name) for name in names[1:])
    lanes = block.let("lanes", lanes_of(hidden))
    groups = block.let("groups", hidden // lanes)
    held = block.tile("weight_sb", (lanes, groups * width), weight.element)
    steps = ((columns, lanes), (lanes * columns, groups), (ONE, width))
    target = Pattern(held.tile, ((groups * width, lanes), (width, groups), (ONE, width)), ZERO)
    block.do("dma_copy", dst=target, src=Pattern(weight, steps, column))
    return Function(
        "load_weight_columns",
        names,
        "Columns of a weight: the rows of group g from column g * width on.",
        tuple(block.statements),
        ("weight_sb",),
    )


def _load_runs() -> Function:
    names = ("weight", "hidden", RECORD, "column", "width")
    block, weight = Block(Names({*names})), argument("weight")
    hidden, column, width = Name("hidden"), Name("column"), Name("width")
    block.take(RECORD, *FIELDS)
    lanes = block.let("lanes", lanes_of(hidden))
    groups = block.let("groups", hidden // lanes)
    held = block.tile("weight_sb", (lanes, groups * width), weight.element)
    with pieces(block, column, width) as (body, before, many, place):
        target = ((groups * width, lanes), (width, groups), (ONE, many))
        steps = ((ALL, lanes), (lanes * ALL, groups), (ONE, many))
        source = Pattern(weight, steps, place)
        body.do("dma_copy", dst=Pattern(held.tile, target, before), src=source)
    return Function(
        "load_weight_columns",
        names,
        "Columns of a field among those of a weight, run by run: the rows of group g from column\n"
        "g * width on.",
        tuple(block.statements),
        ("weight_sb",),
    )


def multiply(
    block: Block,
    dst: View,
    stationary: Number,
    moving: Number,
    *,
    turned_moves: bool,
    partitions: str = "lanes",
) -> None:
    """Add the matmuls of all groups, `partitions` rows each, of `turned_sb` and `weight_sb`.

    `stationary` and `moving` are first columns in a group, as many as `dst` has rows and columns;
    tokens move where `turned_moves`, else columns of the weight do.
    """
    groups, lanes, held, width = (Name(name) for name in ("groups", partitions, "held", "width"))
    turned, weight = OnChip("turned_sb"), OnChip("weight_sb")
    with block.loop("group", ZERO, groups) as (body, group):
        own = {
            "turned_sb": Pattern(
                turned.tile,
                ((groups * held, lanes), (ONE, dst.shape[1 if turned_moves else 0])),
                group * held + (moving if turned_moves else stationary),
            ),
            "weight_sb": Pattern(
                weight.tile,
                ((groups * width, lanes), (ONE, dst.shape[0 if turned_moves else 1])),
                group * width + (stationary if turned_moves else moving),
            ),
        }
        first, second = ("weight_sb", "turned_sb") if turned_moves else ("turned_sb", "weight_sb")
        body.do(
            "nc_matmul",
            dst=dst,
            stationary=own[first],
            moving=own[second],
            accumulate=compare(">", group, ZERO),
        )


def _project_turned(runs: bool) -> Function:
    names = ("turned_sb", "weight", "held", "hidden", "columns")
    block = Block(Names({*names}))
    held, hidden, columns = (Name(name) for name in names[2:])
    lanes = block.let("lanes", lanes_of(hidden))
    block.let_named("groups", hidden // lanes)
    width = block.let_named("width", columns)
    where = block.let_named(RECORD, whole(columns).record) if runs else columns
    arguments = (Name("weight"), hidden, where, ZERO, width)
    block.call("load_weight_columns", *arguments, result="weight_sb")
    wide = block.let("wide", lanes_of(columns))
    shape = (wide, columns // wide * held)
    inner = block.tile("inner_sb", shape, element("weight"))
    with block.loop("column", ZERO, columns, wide) as (body, column):
        sums = body.tile("inner_psum", (wide, held), F32, Space.PSUM)
        multiply(body, sums, column, ZERO, turned_moves=True)
        target = part(inner, None, (column // wide * held, held))
        body.do("tensor_copy", dst=target, src=sums, engine=VECTOR)
    return Function(
        "project_turned",
        names,
        "Multiply turned tokens with all columns of a weight; the result is turned as well.",
        tuple(block.statements),
        ("inner_sb",),
    )


def _project_rows(runs: bool) -> Function:
    names = ("turned_sb", "weight", "result", "row", "held", "hidden", "columns", "begin", "end")
    row, held, hidden, columns, begin, end = (Name(name) for name in names[3:])
    parameters = (*names, RECORD) if runs else names
    block, result = Block(Names({*parameters})), argument("result")
    where = Name(RECORD) if runs else columns
    block.let_named("lanes", lanes_of(hidden))
    block.let_named("groups", hidden // Name("lanes"))
    wide = block.let("wide", at_once(hidden))

    def load(target: Block, name: str, column: Number) -> None:
        width = smallest(wide, end - column)
        arguments = (Name("weight"), hidden, where, column, width)
        target.call("load_weight_columns", *arguments, result=name)

    with block.when(compare("<", begin, end)) as some:
        load(some, "weight_sb", begin)
    with block.loop("column", begin, end, wide) as (body, column):
        width = body.let_named("width", smallest(wide, end - column))
        more = compare("<", column + wide, end)
        with body.when(more) as ahead:
            load(ahead, "next_weight_sb", column + wide)
        with body.loop("first", ZERO, held, ROWS) as (each, first):
            count = each.let("count", smallest(ROWS, held - first))
            sums = each.tile("sum_psum", (count, width), F32, Space.PSUM)
            multiply(each, sums, first, ZERO, turned_moves=False)
            out_sb = each.tile("out_sb", (count, width), result.element)
            each.do("tensor_copy", dst=out_sb, src=sums, engine=SCALAR)
            place: Number = (row + first) * columns + column
            stored = Pattern(result, ((columns, count), (ONE, width)), place)
            each.do("dma_copy", dst=stored, src=out_sb)
        with body.when(more) as ahead:
            ahead.rebind(("weight_sb",), ("next_weight_sb",))
    return Function(
        "project_rows",
        parameters,
        "Multiply turned tokens, from `row` on, with columns `begin` to `end` of a weight.",
        tuple(block.statements),
    )
