"""Means and variances in the form of `bn_stats` triples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.simulator.instructions.call import BoundCall

Array = NDArray[Any]


def _triple(values: Array) -> Array:
    """Count, mean, and variance times count of each row; zeros for no elements."""
    values = np.ascontiguousarray(values)  # so that the order of a sum is that of a dense row
    count = values.shape[1]
    if count == 0:
        return np.zeros((len(values), 3), dtype=np.float32)
    mean = values.mean(axis=1, dtype=np.float32)
    spread = np.square(values - mean[:, None]).sum(axis=1, dtype=np.float32)
    return np.stack([np.full_like(mean, count), mean, spread], axis=1)


def bn_stats(call: BoundCall) -> None:
    """The triple of the elements at even positions, then that of those at odd positions."""
    values = call.f32("data")
    call.store("dst", np.concatenate([_triple(values[:, 0::2]), _triple(values[:, 1::2])], axis=1))


def bn_aggr(call: BoundCall) -> None:
    """Mean and (population) variance of everything that the triples of `data` describe."""
    data = call.f32("data")
    triples = data.reshape(len(data), -1, 3)
    counts, means, spreads = (np.ascontiguousarray(triples[..., i]) for i in range(3))
    with np.errstate(all="ignore"):
        total = counts.sum(axis=1, dtype=np.float32)
        mean = (counts * means).sum(axis=1, dtype=np.float32) / total
        between = counts * np.square(means - mean[:, None])
        variance = (spreads + between).sum(axis=1, dtype=np.float32) / total
    call.store("dst", np.stack([mean, variance], axis=1))
