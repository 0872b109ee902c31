"""Tiles from nothing: constants and index ramps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.simulator.instructions.call import BoundCall
from backends.simulator.numerics import round_to
from backends.simulator.tensor import NkiTensor


def memset(call: BoundCall) -> None:
    """`dst = value` everywhere."""
    dst: NkiTensor = call["dst"]
    if dst.dtype.is_float:
        value = round_to(np.array([call["value"]], dtype=np.float32), dst.dtype, dst.cell)
    else:
        value = np.array([call["value"]]).astype(dst.cell)
    dst.store(np.broadcast_to(value, dst.shape))


def ramp(call: BoundCall, partitions: int) -> NDArray[np.int32]:
    """`offset + c * channel_multiplier + sum(index * step)` as int32 `[partitions, elements]`.

    The channel `c` counts from 0 at the first partition of the tile.
    """
    values: NDArray[Any] = np.full(1, call["offset"], dtype=np.int64)
    for step, count in call["pattern"]:
        values = (values[:, None] + step * np.arange(count)).reshape(-1)
    channels = np.arange(partitions)[:, None] * call["channel_multiplier"]
    return np.asarray(channels + values, dtype=np.int32)


def iota(call: BoundCall) -> None:
    """The ramp, converted to the type of `dst`."""
    dst: NkiTensor = call["dst"]
    values = ramp(call, dst.partitions)
    if dst.dtype.bytes == 4 and dst.dtype.is_integer:
        dst.store(values.astype(dst.dtype.numpy))
    else:
        dst.store_f32(values)
