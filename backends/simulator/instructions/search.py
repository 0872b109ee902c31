"""Largest values and where values are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.simulator.instructions.call import BoundCall
from backends.simulator.tensor import NkiTensor

Array = NDArray[Any]

SNAKE = 16
"""Partitions of one group of `topk`: element e lies in partition e % 16, column e // 16."""
_COUNTED_PARTITIONS = 16
"""`nonzero_with_count` works on every sixteenth partition."""


def max8(call: BoundCall) -> None:
    """The eight largest elements of each partition, descending."""
    values = call.f32("src")
    call.store("dst", -np.sort(-values, axis=1)[:, :8])


def _occurrences(data: Array, vals: Array, order: range) -> Array:
    """For each of 8 values of each row the first position not taken before, or -1.

    Values are served in `order`; equal values take successive positions.
    """
    rows = np.arange(len(data))
    taken = np.zeros(data.shape, dtype=bool)
    positions = np.full(vals.shape, -1, dtype=np.int64)
    for i in order:
        free = (data == vals[:, i : i + 1]) & ~taken
        found = free.any(axis=1)
        place = free.argmax(axis=1)
        positions[found, i] = place[found]
        taken[rows[found], place[found]] = True
    return positions


def _store_positions(tile: NkiTensor, positions: Array) -> None:
    """Write positions; a value that is absent gives all ones."""
    tile.store(positions.astype(tile.dtype.numpy))


def nc_find_index8(call: BoundCall) -> None:
    """Where each of eight values first occurs; equal values find successive places."""
    positions = _occurrences(call.f32("data"), call.f32("vals"), range(8))
    _store_positions(call["dst"], positions)


def nc_match_replace8(call: BoundCall) -> None:
    """`data` with one occurrence of each of eight values replaced by `imm`.

    The values are served from the last to the first.
    """
    data = call.f32("data")
    positions = _occurrences(data, call.f32("vals"), range(7, -1, -1))
    replaced = data.copy()
    rows, columns = np.nonzero(positions >= 0)
    replaced[rows, positions[rows, columns]] = np.float32(call["imm"])
    call.store("dst", replaced)
    if call["dst_idx"] is not None:
        _store_positions(call["dst_idx"], positions)


def sequence_bounds(call: BoundCall) -> None:
    """Start and end of the run of equal ids around each element; id 0 gives n and -1."""
    ids = call.raw("segment_ids").reshape(-1)
    n = len(ids)
    changes = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    starts, ends = np.concatenate([[0], changes]), np.concatenate([changes, [n]])
    run = np.searchsorted(starts, np.arange(n), side="right") - 1
    padding = ids == 0
    bounds = np.stack([np.where(padding, n, starts[run]), np.where(padding, -1, ends[run])])
    call.store("dst", bounds.astype(np.float32))


def nonzero_with_count(call: BoundCall) -> None:
    """Positions of the non-zero elements, padding, then their count, in partitions 0, 16, ..."""
    dst: NkiTensor = call["dst"]
    src = call.raw("src")
    result = call.raw("dst").copy()
    size = src.shape[1]
    for row in range(0, len(src), _COUNTED_PARTITIONS):
        places = np.flatnonzero(src[row])
        result[row, :size] = call["padding_val"]
        result[row, : len(places)] = places + call["index_offset"]
        result[row, size] = len(places)
    dst.store(result)


def topk(call: BoundCall) -> None:
    """The k largest of the first n elements of each group's snake, ascending, with positions.

    `sorted` (0.7) gives them descending. Of equal elements the earlier one is taken. What the
    machine writes beside the results in the last column is undefined: NaN and all ones here.
    """
    values_out: NkiTensor = call["val_dst"]
    positions_out: NkiTensor = call["idx_dst"]
    count = values_out.free_size
    src = call.f32("src")
    values, positions = call.f32("val_dst").copy(), call.raw("idx_dst").copy()
    columns = -(-count // SNAKE)
    for first in range(0, len(src), SNAKE):
        group = slice(first, first + SNAKE)
        elements = src[group].reshape(-1, order="F")[: call["n"]]
        largest = np.argsort(-elements, kind="stable")[:count]
        order = largest if call["sorted"] else largest[::-1]
        for target, found, undefined in (
            (values, elements[order], np.nan),
            (positions, order, np.iinfo(np.uint32).max),
        ):
            cells = np.full(columns * SNAKE, undefined, dtype=target.dtype)
            cells[:count] = found
            target[group, :columns] = cells.reshape(SNAKE, columns, order="F")
    values_out.store_f32(values)
    positions_out.store(positions)
