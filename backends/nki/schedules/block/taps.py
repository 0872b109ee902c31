"""Taps of a convolution, turned: [channels of a head, taps * heads]."""

from __future__ import annotations

from backends.nki.program.build import Block, Names, every, part
from backends.nki.program.nodes import F32, Function, Pattern, Space, Tile, View, dtype_of
from backends.nki.program.numbers import ONE, ZERO, Extent, Name, Number, smallest
from backends.nki.program.outline import outline
from backends.nki.select.constants import PARTITIONS
from backends.nki.select.helpers import QUEUE
from backends.nki.select.layouts import SCALAR, TENSOR

HEADS, TAPS = Name("heads"), Name("taps")


def load_taps() -> Function:
    """Heads come with their channels and taps as one run, and are turned tap by tap."""
    names = Names({"taps_sb", "weight", "first", "step", "heads", "taps"})
    block = Block(names)
    wide = block.let_named("wide", Extent("taps_sb", 0))
    taps_tile = Tile("taps_sb", (wide, TAPS * HEADS), F32, Space.SBUF)
    weight = Tile("weight", (), F32, Space.ARGUMENT)
    with block.loop("head", ZERO, HEADS, PARTITIONS, exact=True) as (body, head):
        count = body.let_named("count", smallest(PARTITIONS, HEADS - head))
        element = dtype_of("weight", F32.bytes)
        rows = body.tile("rows_sb", (count, wide * TAPS), element)
        steps: tuple[tuple[Number, Number], ...] = ((Name("step"), count), (ONE, wide * TAPS))
        source = Pattern(weight, steps, Name("first") + head * Name("step"))
        body.do("dma_copy", dst=rows, src=source, **QUEUE)
        with body.loop("tap", ZERO, TAPS, exact=True) as (inner, tap):
            turned = inner.tile("turned_psum", (wide, count), element, Space.PSUM)
            inner.do("nc_transpose", dst=turned, data=every(rows, tap, TAPS, wide), engine=TENSOR)
            dst = part(View(taps_tile, taps_tile.shape), None, (tap * HEADS + head, count))
            inner.do("tensor_copy", dst=dst, src=turned, engine=SCALAR)
    doc = "Bring in the taps of `heads` heads, and turn them: channels of a head on partitions."
    return outline("load_taps", doc, block.statements)
