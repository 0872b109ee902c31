"""Movement across partitions and by index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backends.isa.targets import QUADRANT
from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.movement_rules import KEEP
from backends.simulator.tensor import NkiTensor

_GATHER_GROUP = 16
"""Partitions that share one index list in `local_gather`."""


def nc_stream_shuffle(call: BoundCall) -> None:
    """`dst[32 q + i] = src[32 q + mask[i]]`; 255 leaves the destination row."""
    dst: NkiTensor = call["dst"]
    values = call.raw("src")
    result = call.raw("dst").copy()
    mask = call["shuffle_mask"]
    for row in range(dst.partitions):
        source = mask[row % QUADRANT]
        if source != KEEP:
            result[row] = values[row // QUADRANT * QUADRANT + source]
    dst.store(result)


def local_gather(call: BoundCall) -> None:
    """Runs of `num_elem_per_idx` elements, by one list of element offsets per 16 partitions."""
    dst: NkiTensor = call["dst"]
    source = call.raw("src_buffer")
    index = call.raw("index")
    width, valid = call["num_elem_per_idx"], call["num_valid_indices"]
    result = np.empty((dst.partitions, dst.free_size), dtype=source.dtype)
    for first in range(0, dst.partitions, _GATHER_GROUP):
        group = slice(first, first + _GATHER_GROUP)
        starts = index[group].reshape(-1, order="F")[:valid].astype(np.int64)
        columns = (starts[:, None] + np.arange(width)).reshape(-1)
        _check_index(call, columns, source.shape[1])
        result[group] = source[group][:, columns]
    dst.store(result)


def nc_n_gather(call: BoundCall) -> None:
    """In each partition, the elements of `data` that `indices` names."""
    dst: NkiTensor = call["dst"]
    data = call.raw("data")
    index = call.raw("indices").astype(np.int64)
    _check_index(call, index, data.shape[1])
    dst.store(np.take_along_axis(data, index, axis=1))


def _check_index(call: BoundCall, index: NDArray[np.int64], size: int) -> None:
    outside = (index < 0) | (index >= size)
    if outside.any():
        raise Fault(
            "S433",
            f"`{call.row.name}` reads element {int(index[outside].flat[0])} of {size}",
        )
