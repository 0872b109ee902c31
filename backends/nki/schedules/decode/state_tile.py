"""States on chip, side by side in a tile: those of one tile of keys after those of another."""

from __future__ import annotations

from attrs import frozen

from backends.nki.program.nodes import View
from backends.nki.program.numbers import ONE, Number
from backends.nki.select.key_tiles import KeyTile, KeyTiles


@frozen
class StateTile:
    """The states of `of` heads in one tile: [keys of a tile, tiles * of * V].

    Stored [V, K] and not turned yet (`decode.turned`) they lie with V on partitions.
    """

    view: View
    of: Number
    values: Number
    """V."""

    def heads(self, keys: KeyTile, first: Number, count: Number = ONE) -> View:
        """The states of heads first, first + 1, ... in one tile of keys."""
        per = self.of * self.values
        return keys.columns(self.view, per, first * self.values, count * self.values)

    def some_values(self, keys: KeyTile, head: Number, start: Number, width: Number) -> View:
        """The same of one head, values start, start + 1, ... alone."""
        return keys.columns(self.view, self.of * self.values, head * self.values + start, width)


def states_shape(keys: KeyTiles, of: Number, values: Number) -> tuple[Number, Number]:
    """Shape of a tile for the states of so many heads."""
    return keys.partitions, keys.count * of * values
