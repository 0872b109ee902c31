"""Rows of a pool that neither read nor write a slot: their outputs are zeros."""

from __future__ import annotations

from backends.nki.program.build import Block
from backends.nki.program.nodes import U8, Pattern, Space, Tile, Token, View
from backends.nki.program.numbers import ONE, ZERO, Literal, Name
from backends.nki.schedules.addresses import rows_in_use
from backends.nki.schedules.window.tensors import LANES, ROW, ROWS, SYNC, Tensors


def write_skipped(block: Block, tensors: Tensors) -> None:
    """Find the rows with no slot of the pool, on every partition: [lanes, batch]."""
    state, kernel = tensors.filter.state, tensors.filter.kernel
    if state.slots is None:
        return
    block.comment("Rows that neither read nor write a slot of the pool.")
    batch = Name(tensors.filter.batch)
    arguments = {i.symbol: tensors.argument(i.name) for i in kernel.inputs}
    valid = rows_in_use(block, state.slots, arguments, LANES, SYNC)
    skipped_sb = block.tile("skipped_sb", (LANES, batch), U8)
    block.do(
        "tensor_scalar", dst=skipped_sb, data=valid, op0=Token("nl.equal"), operand0=Literal(0.0)
    )
    out = tensors.contract.outputs[tensors.filter.out.name]
    nothing_sb = block.tile("nothing_sb", (LANES, ONE), out.element)
    block.do("memset", dst=nothing_sb, value=Literal(0.0))


def zero_skipped(block: Block, tensors: Tensors, out_sb: View) -> None:
    """Put zeros where a row is skipped: [lanes, rows, n]."""
    if tensors.filter.state.slots is None:
        return
    batch, count = Name(tensors.filter.batch), out_sb.shape[2]
    skipped = Tile("skipped_sb", (LANES, batch), U8, Space.SBUF)
    nothing = Tile("nothing_sb", (LANES, ONE), out_sb.tile.element, Space.SBUF)
    block.do(
        "tensor_copy_predicated",
        dst=out_sb,
        src=Pattern(nothing, ((ONE, LANES), (ZERO, ROWS), (ZERO, count)), ZERO),
        predicate=Pattern(skipped, ((batch, LANES), (ONE, ROWS), (ZERO, count)), ROW),
    )
