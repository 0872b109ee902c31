"""Weights on their way from HBM: tiles of whole heads of channels, through the slots of a buffer.

A *tile* holds all rows of a weight for a few neighbouring columns, [128, groups * columns], and is
one transfer. Every weight is read once. A transfer waits for nothing but its slot, so the ring runs
ahead of TensorE by as many tiles as there are slots, across the borders between weights.

    TILE bytes per transfer     hide the fixed cost of a transfer and of its ring
    RUN bytes at least          are contiguous in HBM: the columns of a tile in one row
    slots                       as many as the memory that is left holds; two are the minimum

The emitted functions take a weight's *columns* as one tuple, `COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field, frozen

from backends.isa.targets import TARGETS
from backends.nki.program.build import Block, Names, compare, part
from backends.nki.program.nodes import (
    F32,
    Constant,
    Function,
    Operand,
    Pattern,
    Space,
    Statement,
    Tile,
    Token,
    Unpack,
    View,
)
from backends.nki.program.numbers import (
    ONE,
    ZERO,
    Choice,
    Extent,
    Largest,
    Literal,
    Name,
    Number,
    product,
    smallest,
)
from backends.nki.program.structures import IsF32, tupled
from backends.nki.schedules.block.columns import Columns
from backends.nki.select.constants import PARTITIONS

TILE, RUN, AHEAD = Name("TILE"), Name("RUN"), Name("AHEAD")
SBUF = Name("SBUF")
_CONSTANTS = (
    Constant("TILE", Literal(1 << 20), "bytes of a weight per transfer, roughly"),
    Constant("RUN", Literal(512), "bytes of one of its rows, at least"),
    Constant("AHEAD", Literal(8), "tiles of weights on their way while one is multiplied"),
)
RING: dict[str, Operand] = {
    "dge_mode": Token("nisa.dge_mode.hwdge"),
    "engine": Token("nisa.engine.sync"),
}
"""One ring carries all that is large, in program order: SyncE has nothing else to do."""


def constants_of(target: str) -> tuple[Constant, ...]:
    """Return the constants of a module that streams weights."""
    usable = Literal(TARGETS[target].sbuf_usable_bytes)
    return (Constant("SBUF", usable, f"bytes of a partition on {target}"), *_CONSTANTS)


COLUMNS = ("first", "units", "step", "unit", "groups", "most", "turn", "slots")
"""The columns of a weight that a core needs, and their turn in the stream: `units` runs of `unit`
columns, `step` apart, from column `first` on; at most `most` of them in a tile. Row p * groups + g
of the weight lies on partition p of group g. The first tile is the `turn`-th of `slots`, modulo."""


def bytes_of(views: Iterable[View]) -> Number:
    """Return the bytes of a partition that whole tiles take."""
    total: Number = ZERO
    for view in views:
        total = total + view.tile.element.bytes * product(view.shape[1:])
    return total


def element_bytes(tile: Tile) -> Number:
    """Return the bytes of an element of a tensor argument as the caller passed it."""
    of = tile.element.of
    if of is None:
        return Literal(tile.element.bytes)
    return Choice(IsF32(of), Literal(4), Literal(min(tile.element.bytes, 2)))


def units_per_tile(block: Block, stem: str, size: Number, columns: Columns, rows: Number) -> Number:
    """Bind and return the units of a full tile of a weight; an element takes `size` bytes."""
    run = size * columns.run
    wanted = Largest(TILE // (run * rows), (RUN + run - 1) // run)
    return block.let(f"{stem}_heads", smallest(columns.units, wanted))


@frozen
class Weight:
    """What a core needs of a weight for one port."""

    name: str
    tile: Tile
    columns: Columns
    groups: Number
    most: Number
    """Units of a full tile."""


@define
class Stream:
    """The slots of a kernel's weights of one dtype, handed out in turn."""

    weights: list[Weight] = field(factory=list)
    size: Number | None = None
    """Bytes of an element; None while there are only single columns, one for a head."""
    buffer: View | None = None
    """[128, slots * elements of a slot]."""

    @staticmethod
    def tiles_of(weight: Weight) -> Number:
        """Transfers of a weight."""
        return (weight.columns.units + weight.most - 1) // weight.most

    def allocate(self, block: Block, budget: Number, late: Number = ZERO) -> Number:
        """Create the buffer in `budget` bytes per partition, and bind the columns of each weight.

        `late`: tiles that should all find a slot, since other work is done before they are used.
        The emitted kernel asserts that two tiles fit. Returns the bytes it took.
        """
        size = self.size or Literal(F32.bytes)
        slot: Number = ONE
        turns: list[Number] = []
        tiles: Number = ZERO
        for weight in self.weights:
            full = weight.groups * weight.most * weight.columns.run
            slot = Largest(slot, full)
            turns.append(tiles)
            tiles = block.let(f"{weight.name}_end", tiles + self.tiles_of(weight))
        slot = block.let("slot", slot)
        room = block.let("room", budget)
        wanted = smallest(tiles, Largest(AHEAD, late))
        fit = block.let("fit", room // (size * slot))
        least = smallest(2, tiles)
        slots = block.let_named(block.names.fresh("slots"), Largest(least, smallest(wanted, fit)))
        block.require(
            compare(">=", fit, least),
            f"two tiles of the weights do not fit into the {{{room}}} bytes of SBUF that are left",
        )
        for weight, turn in zip(self.weights, turns, strict=True):
            c = weight.columns
            values = (c.first, c.units, c.step, c.run, weight.groups, weight.most, turn, slots)
            block.let_named(columns_name(weight), tupled(*values))
        element = self.weights[0].tile.element
        self.buffer = block.tile("weights_sb", (PARTITIONS, slots * slot), element)
        return slots * slot * size


def columns_name(weight: Weight) -> str:
    """What the emitted kernel calls the columns of a weight."""
    return f"{weight.name}_columns"


@frozen
class TileAt:
    """A tile of a weight inside an emitted function that has unpacked `COLUMNS`."""

    start: Number
    """Its first unit."""
    many: Number
    slot: View


def tile_at(block: Block, weight: View, weights: View, number: Number) -> TileAt:
    """Bind where tile `number` of a weight lies."""
    units, unit, groups, most = (Name(n) for n in ("units", "unit", "groups", "most"))
    start = block.let("start", number * most)
    many = block.let("many", smallest(most, units - start))
    at = block.let("at", slot_of(weights, number))
    rows = weight.shape[0] // groups
    return TileAt(start, many, part(weights, (ZERO, rows), (at, groups * many * unit)))


def slot_of(weights: View, number: Number) -> Number:
    """Where the slot of tile `number` begins, in a function that has unpacked `COLUMNS`."""
    turn, slots = Name("turn"), Name("slots")
    return (turn + number) % slots * (weights.shape[1] // slots)


def tiles_of() -> Number:
    """Tiles of a weight inside an emitted function that has unpacked `COLUMNS`."""
    return (Name("units") + Name("most") - 1) // Name("most")


def argument(name: str, space: Space = Space.SBUF) -> View:
    """Return a two-dimensional argument of a function."""
    tile = Tile(name, (Extent(name, 0), Extent(name, 1)), F32, space)
    return View(tile, tile.shape)


def unpack_columns() -> Statement:
    """Return the first statement of a function that takes columns."""
    return Unpack(COLUMNS, "columns")


WEIGHT, WEIGHTS = argument("weight", Space.ARGUMENT), argument("weights_sb")


def _load() -> Function:
    block = Block(Names({"tile", *COLUMNS}), [unpack_columns()])
    found = tile_at(block, WEIGHT, WEIGHTS, Name("tile"))
    first, step, unit, groups = (Name(n) for n in ("first", "step", "unit", "groups"))
    total = WEIGHT.shape[1]
    rows = ((groups * total, WEIGHT.shape[0] // groups), (total, groups))
    columns = ((step, found.many), (ONE, unit))
    source = Pattern(WEIGHT.tile, (*rows, *columns), first + found.start * step)
    block.do("dma_copy", dst=found.slot, src=source, **RING)
    return Function(
        "load_weight",
        ("weights_sb", "weight", "columns", "tile"),
        "Bring a tile of a weight into its slot: all rows, row p * groups + g on partition p,\n"
        "one group after the other.",
        tuple(block.statements),
    )


def _send() -> Function:
    block = Block(Names({*COLUMNS}), [unpack_columns()])
    with block.loop("tile", ZERO, smallest(Name("slots"), tiles_of())) as (body, tile):
        body.call(LOAD_WEIGHT.name, WEIGHTS, WEIGHT, Name("columns"), tile)
    return Function(
        "begin_stream",
        ("weights_sb", "weight", "columns"),
        "Send for the first tiles of a weight, as many as there are slots.",
        tuple(block.statements),
    )


LOAD_WEIGHT = _load()
BEGIN_STREAM = _send()
STREAM_FUNCTIONS = (LOAD_WEIGHT, BEGIN_STREAM)
