"""Tiles of keys: all keys in order and once, none empty, and the parts of views."""

from __future__ import annotations

import pytest

from backends.nki.program.build import Block, Names, every
from backends.nki.program.nodes import F32, View
from backends.nki.program.numbers import ZERO, Name, Number, evaluate, number
from backends.nki.select.constants import PARTITIONS
from backends.nki.select.key_tiles import KEYS, KeyTiles

K, ROWS = Name("K"), Name("rows")


def _names(tiles: KeyTiles, size: int) -> dict[str, int]:
    """What the names of the text stand for with so many keys."""
    per = -(-size // tiles.count)
    return {"K": size, "rows": 3, KEYS: per}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_tiles_have_every_key_once_and_fit_the_partitions(count: int) -> None:
    tiles = KeyTiles(K, count)
    for size in range(tiles.least, tiles.most + 1):
        names, keys = _names(tiles, size), list[int]()
        assert evaluate(tiles.partitions, names) <= PARTITIONS
        for tile in tiles:
            first, width = (int(evaluate(n, names)) for n in (tile.first, tile.width))
            assert 1 <= width <= evaluate(tiles.partitions, names)
            keys += range(first, first + width)
        assert keys == list(range(size))


@pytest.mark.parametrize("count", [3, 4])
def test_with_fewer_keys_than_the_least_a_tile_would_be_empty(count: int) -> None:
    tiles = KeyTiles(K, count)
    *_, last = tiles
    assert evaluate(last.width, _names(tiles, tiles.least - 1)) <= 0


def test_one_tile_leaves_views_as_they_are() -> None:
    """A text for up to 128 keys does not show that there could be more."""
    block = Block(Names())
    tiles = KeyTiles(K)
    view = block.tile("keys_sb", (K, ROWS), F32)
    (tile,) = tiles
    tiles.bind(block)
    tiles.clear(block, view, ROWS)
    assert len(block.statements) == 1
    assert tile.of(view, ROWS) is view
    assert tile.keys(view) is view
    assert tile.columns(view, ROWS, ZERO, ROWS) is view


def test_parts_of_a_view_of_every_third_column() -> None:
    """Vectors of a row lie side by side in each tile, rows after one another."""
    tiles = KeyTiles(K, 2)
    view = Block(Names()).tile("keys_sb", (tiles.partitions, 6 * ROWS), F32)
    one_of_three = every(view, 1, 3, 2 * ROWS)
    names = _names(tiles, 129)
    found = [_columns(tile.of(one_of_three, ROWS), names) for tile in tiles]
    assert found == [(65, [1, 4, 7]), (64, [10, 13, 16])]


def _columns(view: View, names: dict[str, int]) -> tuple[int, list[int]]:
    """How many partitions a view has, and its columns."""
    assert view.index is not None
    rows, columns = view.index
    assert columns is not None
    height = view.tile.shape[0] if rows is None else rows.stop
    assert height is not None

    def value(item: Number | None, default: Number) -> int:
        return int(evaluate(default if item is None else item, names))

    end = value(columns.stop, view.tile.shape[1])
    begin, step = value(columns.start, ZERO), value(columns.step, number(1))
    return value(height, ZERO), list(range(begin, end, step))
