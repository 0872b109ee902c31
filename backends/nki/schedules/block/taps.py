"""Taps of a convolution: brought in head by head, and turned to [channels of a head, taps * heads].

Two functions, so that every transfer can be under way before anything waits for one.
"""

from __future__ import annotations

from attrs import frozen

from backends.nki.program.build import Block, Names, interleaved, part
from backends.nki.program.nodes import F32, Function, Operand, Pattern, Space, Tile, View, dtype_of
from backends.nki.program.numbers import ONE, ZERO, Extent, Name, Number, smallest
from backends.nki.program.outline import outline
from backends.nki.schedules.block.channels import Lying
from backends.nki.select.constants import PARTITIONS
from backends.nki.select.helpers import QUEUE
from backends.nki.select.layouts import SCALAR, TENSOR

HEADS, TAPS, WIDE = Name("heads"), Name("taps"), Name("wide")
_ELEMENT = dtype_of("weight", F32.bytes)


def rows_shape(heads: Number, wide: Number, taps: Number) -> tuple[Number, Number]:
    """Return the shape of taps as they come in: a head per partition, 128 heads side by side."""
    return smallest(heads, PARTITIONS), (heads + (PARTITIONS - 1)) // PARTITIONS * (wide * taps)


def _rows() -> View:
    tile = Tile("rows_sb", rows_shape(HEADS, WIDE, TAPS), _ELEMENT, Space.SBUF)
    return View(tile, tile.shape)


def _load_taps() -> Function:
    """The channels and taps of a head come as one run."""
    block = Block(Names({"rows_sb", "weight", "first", "step", "heads", "taps", "wide"}))
    weight = Tile("weight", (), F32, Space.ARGUMENT)
    run = WIDE * TAPS
    with block.loop("head", ZERO, HEADS, PARTITIONS, exact=True) as (body, head):
        count = body.let_named("count", smallest(PARTITIONS, HEADS - head))
        steps: tuple[tuple[Number, Number], ...] = ((Name("step"), count), (ONE, run))
        source = Pattern(weight, steps, Name("first") + head * Name("step"))
        body.do(
            "dma_copy",
            dst=part(_rows(), (ZERO, count), (head // PARTITIONS * run, run)),
            src=source,
            **QUEUE,
        )
    return outline("load_taps", "Bring in the taps of `heads` heads.", block.statements)


def _turn_taps() -> Function:
    """Tap by tap, 128 heads at once."""
    block = Block(Names({"taps_sb", "rows_sb", "heads", "taps"}))
    block.let_named("wide", Extent("taps_sb", 0))
    taps_tile = Tile("taps_sb", (WIDE, TAPS * HEADS), F32, Space.SBUF)
    run = WIDE * TAPS
    element = dtype_of("rows_sb", F32.bytes)
    with block.loop("head", ZERO, HEADS, PARTITIONS, exact=True) as (body, head):
        count = body.let_named("count", smallest(PARTITIONS, HEADS - head))
        begin = body.let_named("begin", head // PARTITIONS * run)
        with body.loop("tap", ZERO, TAPS, exact=True) as (inner, tap):
            turned = inner.tile("turned_psum", (WIDE, count), element, Space.PSUM)
            data = interleaved(_rows(), count, begin, tap, TAPS, WIDE)
            inner.do("nc_transpose", dst=turned, data=data, engine=TENSOR)
            dst = part(View(taps_tile, taps_tile.shape), None, (tap * HEADS + head, count))
            inner.do("tensor_copy", dst=dst, src=turned, engine=SCALAR)
    return outline("turn_taps", "Turn taps: channels of a head on partitions.", block.statements)


LOAD_TAPS, TURN_TAPS = _load_taps(), _turn_taps()
"""A scale per channel is a filter of one tap; projections use them as well."""


@frozen
class Taps:
    """The taps of one field's channels: what brings them in and turns them works on."""

    tensor: Tile
    where: Lying
    """Where the channels lie in the tensor, channel by channel."""
    heads: Number
    wide: Number
    """Channels of a head."""
    count: Number
    """Taps of a channel, which are neighbours in the tensor."""

    @property
    def rows_shape(self) -> tuple[Number, Number]:
        """As they come in."""
        return rows_shape(self.heads, self.wide, self.count)

    def loading(self, rows: View) -> dict[str, Operand]:
        """The arguments of `LOAD_TAPS`: a head per partition of `rows`."""
        return {
            "rows_sb": rows,
            "weight": View(self.tensor, self.tensor.shape),
            "first": self.where.first * self.count,
            "step": self.where.step * self.count,
            "heads": self.heads,
            "taps": self.count,
            "wide": self.wide,
        }

    @property
    def turned_shape(self) -> tuple[Number, Number]:
        """With channels of a head on partitions."""
        return self.wide, self.count * self.heads

    def turning(self, rows: View, turned: View) -> dict[str, Operand]:
        """The arguments of `TURN_TAPS`."""
        return {"taps_sb": turned, "rows_sb": rows, "heads": self.heads, "taps": self.count}
