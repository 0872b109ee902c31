"""Projections in front of a chunked rule: rows of tokens times a weight, into HBM.

Blocks of up to 512 tokens are turned onto partitions once; a weight is streamed once per block, in
tiles of up to 512 columns, and its row groups add up in PSUM in fp32. Cores share the columns.
"""

from __future__ import annotations

from backends.nki.contract import Contract
from backends.nki.program.build import Block, Names, compare, part
from backends.nki.program.nodes import F32, Function, Pattern, Space, Tile, dtype_of
from backends.nki.program.numbers import (
    ONE,
    ZERO,
    Largest,
    Literal,
    Name,
    Number,
    Query,
    product,
    smallest,
)
from backends.nki.schedules.chunked.front import Projected
from backends.nki.select.layouts import SCALAR, TENSOR, VECTOR

ROWS = Literal(128)
"""Partitions: tokens of a tile, rows of a group of a weight."""
MOST, HELD = Literal(512), 16
"""Tokens and columns of a block where a token has at most HELD groups of hidden channels."""
PARAMETERS = ("moving", "weight", "result", "rows", "hidden", "columns", "begin", "end")


def write_projections(main: Block, contract: Contract, found: tuple[Projected, ...]) -> Function:
    """Multiply all tokens with every weight; the cores meet at the end. Returns the function."""
    main.banner("Projections of all tokens")
    cores, core = Query("nl.num_programs(0)"), Query("nl.program_id(0)")
    for projected in found:
        item = projected.item
        main.create(contract.tensors[item.name])
        hidden = Name(projected.section.axis)
        main.require(
            compare("==", hidden % ROWS, 0),
            f"{contract.kernel.name} needs {hidden} % 128 == 0, got {{{hidden}}}",
        )
        around = len(projected.moving.dims) - 1
        sizes = contract.sizes(item.dims)
        rows, columns = product(sizes[:around]), product(sizes[around:])
        tensors = (projected.moving.name, projected.section.weight.name, item.name)
        share = (columns * core // cores, columns * (core + 1) // cores)
        main.call("project_rows", *(Name(t) for t in tensors), rows, hidden, columns, *share)
    return _project_rows()


def _project_rows() -> Function:
    tiles = {n: Tile(n, (), dtype_of(n, 4), Space.ARGUMENT) for n in PARAMETERS[:3]}
    rows, hidden, columns, begin, end = (Name(n) for n in PARAMETERS[3:])
    block = Block(Names({*PARAMETERS}))
    groups = block.let("groups", hidden // ROWS)
    most = smallest(MOST, Largest(ROWS, HELD * MOST // groups // ROWS * ROWS))
    most = block.let("most", most)
    with block.loop("row", ZERO, rows, most) as (body, row):
        held = body.let("held", smallest(most, rows - row))
        turned = body.tile("turned_sb", (ROWS, groups * most), tiles["moving"].element)
        with body.loop("first", ZERO, held, ROWS) as (inner, first):
            count = inner.let("count", smallest(ROWS, held - first))
            rows_sb = inner.tile("rows_sb", (count, hidden), tiles["moving"].element)
            source = ((hidden, count), (ONE, hidden))
            inner.do(
                "dma_copy",
                dst=rows_sb,
                src=Pattern(tiles["moving"], source, (row + first) * hidden),
            )
            with inner.loop("group", ZERO, groups) as (each, group):
                shape = (ROWS, count)
                psum = each.tile("turned_psum", shape, tiles["moving"].element, Space.PSUM)
                data = part(rows_sb, None, (group * ROWS, ROWS))
                each.do("nc_transpose", dst=psum, data=data, engine=TENSOR)
                target = part(turned, None, (group * most + first, count))
                each.do("tensor_copy", dst=target, src=psum, engine=VECTOR)
        with body.loop("column", begin, end, most) as (inner, column):
            width = inner.let("width", smallest(most, end - column))
            weight_sb = inner.tile("weight_sb", (ROWS, groups, width), tiles["weight"].element)
            streamed = ((columns, ROWS), (ROWS * columns, groups), (ONE, width))
            inner.do("dma_copy", dst=weight_sb, src=Pattern(tiles["weight"], streamed, column))
            with inner.loop("first", ZERO, held, ROWS) as (each, first):
                count = each.let("count", smallest(ROWS, held - first))
                sums = each.tile("sum_psum", (count, width), F32, Space.PSUM)
                with each.loop("group", ZERO, groups) as (one, group):
                    one.do(
                        "nc_matmul",
                        dst=sums,
                        stationary=part(turned, None, (group * most + first, count)),
                        moving=part(weight_sb, None, (group, ONE), None),
                        accumulate=compare(">", group, ZERO),
                    )
                out_sb = each.tile("out_sb", (count, width), tiles["result"].element)
                each.do("tensor_copy", dst=out_sb, src=sums, engine=SCALAR)
                place: Number = (row + first) * columns + column
                stored = Pattern(tiles["result"], ((columns, count), (ONE, width)), place)
                each.do("dma_copy", dst=stored, src=out_sb)
    return Function(
        "project_rows",
        PARAMETERS,
        "Multiply `rows` rows of `hidden` numbers with columns `begin` to `end` of a weight.",
        tuple(block.statements),
    )
