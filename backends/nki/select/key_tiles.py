"""How the keys of a head lie on partitions: in tiles of at most 128, side by side on the free axis.

A value with keys on partitions has its columns once per tile, tile after tile: a vector of each row
is [keys of a tile, tiles * rows], states are [keys of a tile, tiles * heads * V]. What works
element by element does all tiles in one instruction; what moves keys or sums over them goes tile by
tile, and sums add up in PSUM. How many tiles there are is known when the text is written (the
schedule key `key_tiles`), so that instructions follow one another and no loop is needed; how many
keys a tile has follows from K. With one tile, of K partitions, nothing of this shows.

The last tile may have fewer keys than the others. What is left over in it is zeroed where a tile is
filled, and no sum over keys reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import I32, U8, Range, View
from backends.nki.program.numbers import ZERO, Literal, Name, Number, number
from backends.nki.select.constants import PARTITIONS
from backends.nki.select.layouts import GPSIMD

KEYS = "keys"
"""What the text calls the keys of a tile."""


@frozen
class KeyTile:
    """Keys first, first + 1, ... of a head, on partitions from 0 on; tile `place` of all."""

    place: int
    first: Number
    width: Number
    """How many keys."""
    last: bool

    @property
    def only(self) -> bool:
        """Whether there is no other tile."""
        return self.last and self.place == 0

    def columns(self, view: View, per: Number, first: Number, count: Number) -> View:
        """Columns first, ... (`count` of them) of this tile, in a whole tile with `per` in each."""
        return part(view, (ZERO, self.width), (self.place * per + first, count))

    def of(self, view: View, per: Number) -> View:
        """This tile's columns of a view that has `per` of them in each: all, or every n-th."""
        if self.only:
            return view
        if view.index is None:
            return self.columns(view, per, ZERO, per)
        rows, columns = view.index
        assert rows is None
        assert columns is not None
        step = number(1) if columns.step is None else columns.step
        start = columns.start + step * (self.place * per)
        stop = columns.stop if self.last else columns.start + step * ((self.place + 1) * per)
        height = None if self.width == view.shape[0] else Range(ZERO, self.width)
        return View(view.tile, (self.width, per), (height, Range(start, stop, columns.step)))

    def keys(self, view: View) -> View:
        """These keys of a view that has all of them along its free axis."""
        if self.only:
            return view
        rows, columns = view.index or (None, None)
        assert columns is None
        stop = None if self.last else self.first + self.width
        return View(view.tile, (view.shape[0], self.width), (rows, Range(self.first, stop)))


@frozen
class KeyTiles:
    """The tiles of the keys of a head."""

    size: Number
    """Keys of a head."""
    count: int = 1

    @property
    def partitions(self) -> Number:
        """Keys of every tile but the last, which may have fewer: a name, if there are several."""
        return self.size if self.count == 1 else Name(KEYS)

    @property
    def least(self) -> int:
        """With fewer keys than so many the last tile could be empty."""
        return (self.count - 1) ** 2 + 1

    @property
    def most(self) -> int:
        """As many keys lie on the partitions."""
        return PARTITIONS * self.count

    def bind(self, block: Block) -> None:
        """Give the keys of a tile their name."""
        if self.count > 1:
            block.comment(
                f"Keys lie on partitions in {self.count} tiles of so many; the last may have fewer."
            )
            block.let_named(KEYS, (self.size + (self.count - 1)) // self.count)

    def __iter__(self) -> Iterator[KeyTile]:
        *others, last = range(self.count)
        for place in others:
            yield KeyTile(place, place * self.partitions, self.partitions, last=False)
        first = last * self.partitions
        yield KeyTile(last, first, self.size - first, last=True)

    @property
    def whole(self) -> list[KeyTile]:
        """The tiles with all of their partitions, for what is the same for each key."""
        return [evolve(tile, width=self.partitions) for tile in self]

    def clear(self, block: Block, view: View, per: Number) -> None:
        """Zero the last of several tiles, before it is filled with keys that may be fewer."""
        if self.count == 1:
            return
        zero = Literal(0) if view.tile.element in (I32, U8) else Literal(0.0)
        block.do("memset", dst=self.whole[-1].of(view, per), value=zero, engine=GPSIMD)
