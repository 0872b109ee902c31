"""Functions of the emitted module that load rows whose addresses wrap around.

Row r of a tile lies at `(r // period) * outer + (r % period) * inner`. A tile may begin and end
inside a period, so there are at most three transfers: up to the next multiple of the period, whole
periods, the rest.
"""

from __future__ import annotations

from backends.nki.program.build import Block, Names, compare, part
from backends.nki.program.nodes import F32, Function, Operand, Pattern, Space, Tile, Token, View
from backends.nki.program.numbers import ZERO, Extent, Name, Number, smallest

QUEUE: dict[str, Operand] = {
    "dge_mode": Token("nisa.dge_mode.hwdge"),
    "engine": Token("nisa.engine.scalar"),
}
"""Vectors of rows come on ScalarE's DMA queue, so that they do not queue behind the states."""
_PARAMETERS = ("dst", "src", "row", "period", "outer", "inner", "step", "base")


def load_rows() -> Function:
    """`dst[r, :]` <- the elements of row `row + r`, `step` apart."""
    return _loader(
        "load_rows",
        "Load rows [row, row + len(dst)) into partitions; row r starts at\n"
        "base + (r // period) * outer + (r % period) * inner, its elements lie `step` apart.",
        rows_on_partitions=True,
    )


def load_columns() -> Function:
    """`dst[:, r]` <- the elements of row `row + r`, `step` apart."""
    return _loader(
        "load_columns",
        "Load rows [row, row + columns of dst) into columns; row r starts at\n"
        "base + (r // period) * outer + (r % period) * inner, its elements lie `step` apart.",
        rows_on_partitions=False,
    )


def _loader(name: str, doc: str, *, rows_on_partitions: bool) -> Function:
    dst_tile = Tile("dst", (Extent("dst", 0), Extent("dst", 1)), F32, Space.SBUF)
    dst = View(dst_tile, dst_tile.shape)
    src = Tile("src", (), F32, Space.ARGUMENT)
    row, period, outer, inner, step, base = (Name(p) for p in _PARAMETERS[2:])
    block = Block(Names(set(_PARAMETERS)))
    rows = block.let("rows", Extent("dst", 0 if rows_on_partitions else 1))
    width = block.let("width", Extent("dst", 1 if rows_on_partitions else 0))
    head = block.let("head", smallest(rows, -row % period))
    whole = block.let("whole", (rows - head) // period * period)
    tail = block.let("tail", rows - head - whole)

    def transfer(
        count: Number, start: Number, first: Number, steps: tuple[tuple[Number, Number], ...]
    ) -> None:
        with block.when(compare(">", count, 0)) as inside:
            offset = base + first // period * outer + first % period * inner
            across = (step, width)
            if rows_on_partitions:
                target, pattern = part(dst, (start, count), None), (*steps, across)
            else:
                target, pattern = part(dst, None, (start, count)), (across, *steps)
            inside.do("dma_copy", dst=target, src=Pattern(src, pattern, offset), **QUEUE)

    transfer(head, ZERO, row, ((inner, head),))
    transfer(whole, head, row + head, ((outer, whole // period), (inner, period)))
    transfer(tail, head + whole, row + head + whole, ((inner, tail),))
    return Function(name, _PARAMETERS, doc, tuple(block.statements))
