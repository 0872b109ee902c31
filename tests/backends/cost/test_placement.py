"""Memory handed out in program order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backends.cost.placement import place

Builder = Callable[..., Any]


def test_psum_tiles_take_the_bank_that_is_free_for_longest(builder: Builder) -> None:
    trace = builder()
    weights, out = trace.tile("sbuf", (128, 128)), trace.tile("sbuf", (128, 128))
    tiles = []
    for _ in range(10):
        tiles.append(trace.tile("psum", (128, 128)))
        trace.matmul(tiles[-1], weights, weights)
        trace.vector("tensor_copy", out, {"src": tiles[-1]})
    found = place(trace.build())
    assert [found.banks[tile.buffer.id] for tile in tiles] == [(n % 8,) for n in range(10)]
    assert found.replaces[tiles[8].buffer.id] == (tiles[0].buffer.id,)


def test_a_wide_tile_takes_several_banks(builder: Builder) -> None:
    trace = builder()
    wide = trace.tile("psum", (128, 2048))
    trace.add("vector", "memset", {"dst": wide})
    assert place(trace.build()).banks[wide.buffer.id] == (0, 1, 2, 3)


def test_pinned_tiles_keep_their_banks_and_others_avoid_them(builder: Builder) -> None:
    trace = builder()
    pinned = trace.tile("psum", (128, 512), address=(0, 2048))
    loose = trace.tile("psum", (128, 512))
    for tile in (pinned, loose):
        trace.add("vector", "memset", {"dst": tile})
    found = place(trace.build()).banks
    assert found[pinned.buffer.id] == (1,)
    assert found[loose.buffer.id] == (0,)


def test_more_live_tiles_than_banks_share_without_waiting(builder: Builder) -> None:
    """The simulator refuses such a kernel; timing it must not fail."""
    trace = builder()
    tiles = [trace.tile("psum", (128, 512)) for _ in range(9)]
    for _ in range(2):
        for tile in tiles:
            trace.add("vector", "memset", {"dst": tile})
    found = place(trace.build())
    assert found.replaces == {}
    assert all(len(found.banks[tile.buffer.id]) == 1 for tile in tiles)


def test_a_tile_that_nobody_touches_has_no_place(builder: Builder) -> None:
    trace = builder()
    unused = trace.tile("psum", (128, 512))
    trace.add("vector", "memset", {"dst": trace.tile("sbuf", (128, 4))})
    assert unused.buffer.id not in place(trace.build()).lifetimes
