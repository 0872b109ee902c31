"""Weights on their way from HBM: tiles of whole slices of channels, through the slots of a buffer.

A *slice* are neighbouring channels that lie on partitions together (a head, say), 128 at most. A
*tile* holds all rows of the weight for a few slices, [128, rows / 128 * columns], and is one
transfer. Every weight is read once. A transfer waits for nothing but its slot, so the ring runs
ahead of TensorE by as many tiles as there are slots, across the borders between weights.

    TILE bytes per transfer     hide the fixed cost of a transfer and of its ring
    RUN bytes at least          are contiguous in HBM: the columns of a tile
    slots                       as many as the memory that is left holds; two are the minimum
"""

from __future__ import annotations

from attrs import define, frozen

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import (
    Constant,
    Element,
    Function,
    Operand,
    Pattern,
    Tile,
    Token,
    View,
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
from backends.nki.program.outline import outline

PARTITIONS = Literal(128)
TILE, RUN = Name("TILE"), Name("RUN")
CONSTANTS = (
    Constant("TILE", Literal(1 << 20), "bytes of a weight per transfer, roughly"),
    Constant("RUN", Literal(512), "bytes of a row of it, at least"),
)
RING: dict[str, Operand] = {
    "dge_mode": Token("nisa.dge_mode.hwdge"),
    "engine": Token("nisa.engine.sync"),
}
"""One ring carries all that is large, in program order: SyncE has nothing else to do."""


@frozen
class Rows:
    """How the rows of a weight lie on partitions: row of partition p and group g.

    It is that of the activation: p * beside + g * below, in `groups` groups of `partitions`.
    """

    partitions: Number
    groups: Number
    beside: Number
    below: Number


@frozen
class Slices:
    """`count` slices of `width` channels, from channel `first` of a weight on."""

    weight: Tile
    rows: Rows
    first: Number
    count: Number
    width: Number
    per_tile: Number
    """Slices of a full tile."""

    @property
    def tiles(self) -> Number:
        """Transfers."""
        return (self.count + self.per_tile - 1) // self.per_tile


def slices_per_tile(
    block: Block, stem: str, element: Element, rows: Number, width: Number
) -> Number:
    """Bind and return the slices of a tile of a weight with so many rows."""
    wide = Largest(TILE // (element.bytes * rows), (RUN + element.bytes - 1) // element.bytes)
    return block.let(f"{stem}_slices", Largest(ONE, wide // width))


@define
class Stream:
    """The slots of a kernel's weights, handed out in turn."""

    buffer: View
    """[128, slots * slot]."""
    slot: Number
    """Elements of a slot."""
    slots: Number
    used: Number = ZERO
    """Tiles before the next weight."""

    def reserve(self, block: Block, stem: str, slices: Slices) -> Reserved:
        """Hand out the slots of a weight."""
        first = self.used
        self.used = block.let(f"{stem}_tiles", self.used + slices.tiles)
        return Reserved(self, slices, first)

    def place(self, tile: Number) -> Number:
        """Where tile `tile` of the stream lies in the buffer."""
        return tile % self.slots * self.slot


@frozen
class Reserved:
    """A weight with its turn in the stream."""

    stream: Stream
    slices: Slices
    first: Number
    """Its first tile, counted over all weights."""

    def tile(self, block: Block, number: Number) -> tuple[View, Number, Number]:
        """Return the slot of a tile of the weight, its first slice, and how many it has."""
        slices, stream = self.slices, self.stream
        start = block.let_named("start", number * slices.per_tile)
        many = block.let_named("many", smallest(slices.per_tile, slices.count - start))
        width = slices.rows.groups * many * slices.width
        at = stream.place(self.first + number)
        partitions = slices.rows.partitions
        view = part(stream.buffer, (ZERO, partitions), (at, width))
        return view, start, many

    def load(self, block: Block, number: Number) -> None:
        """Send for a tile of the weight."""
        slices = self.slices
        slot, start, many = self.tile(block, number)
        rows = slices.rows
        block.call(
            LOAD.name,
            slot,
            View(slices.weight, slices.weight.shape),
            slices.first + start * slices.width,
            many * slices.width,
            rows.groups,
            rows.beside,
            rows.below,
        )

    def begin(self, block: Block) -> None:
        """Send for the tiles that find a slot at once."""
        ahead = smallest(self.stream.slots, self.slices.tiles)
        with block.loop("tile", ZERO, ahead) as (body, tile):
            self.load(body, tile)

    def refill(self, block: Block, tile: Number) -> None:
        """Send for the tile that takes the slot of `tile`, if there is one."""
        later = tile + self.stream.slots
        with block.when(compare("<", later, self.slices.tiles)) as more:
            self.load(more, later)


def _load() -> Function:
    names = ("first", "columns", "groups", "beside", "below")
    first, columns, groups, beside, below = (Name(name) for name in names)
    slot = Tile("weight_sb", (Extent("weight_sb", 0), groups * columns), _ANY, _SBUF)
    weight = Tile("weight", (), _ANY, _HBM)
    block = Block(Names({*names}))
