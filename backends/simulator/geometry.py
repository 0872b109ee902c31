"""Strided layouts: the arithmetic behind tensor views, on (shape, strides, offset) in elements.

Pure functions. What NKI allows of them, and the messages, is the business of `tensor.py`; a layout
that strides cannot describe is None here.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = tuple[int, ...]


class Box(NamedTuple):
    """What an access touches of one partition, in elements; see `trace.Access` for the words."""

    first: int
    """Lowest element, relative to the layout's offset."""
    extent: int
    """Elements from the lowest to one past the highest."""
    elements: int
    run: int
    """Length of the contiguous runs."""
    inner_stride: int
    """Distance of neighbours on the innermost dimension longer than 1; 1 for a single element."""


def row_major(shape: Ints) -> Ints:
    """Return the strides of a dense layout."""
    if len(shape) == 2:
        return (shape[1], 1)
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def reshape_strides(shape: Ints, strides: Ints, new_shape: Ints) -> Ints | None:
    """Return the strides of `new_shape` over the same elements in the same order, if there are any.

    The element counts must agree. Size-1 dimensions take no part.
    """
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    merged: list[list[int]] = []
    for n, s in old:
        if merged and merged[-1][1] == n * s:
            merged[-1] = [merged[-1][0] * n, s]
        else:
            merged.append([n, s])
    result: list[int] = []
    # Both are consumed from the inside: each run of old elements splits into whole new dimensions.
    left, step = 1, 1
    for n in reversed(new_shape):
        if n == 1:
            result.append(step * left if merged or left > 1 else step)
            continue
        if left == 1:
            if not merged:
                return None
            left, step = merged.pop()
        if left % n:
            return None
        result.append(step)
        left //= n
        step *= n
    return tuple(reversed(result))


@lru_cache(maxsize=65536)
def box(shape: Ints, strides: Ints) -> Box:
    """Return the bounding interval, element count and contiguous runs of a layout."""
    low = high = 0
    for n, s in zip(shape, strides, strict=True):
        if s < 0:
            low += s * (n - 1)
        else:
            high += s * (n - 1)
    run, inner, growing = 1, -1, True
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if inner < 0:
            inner = abs(s)
        if growing and s == run:
            run *= n
        else:
            growing = False
    return Box(low, high - low + 1, prod(shape), run, 1 if inner < 0 else inner)


def period(shape: Ints, strides: Ints, run: int) -> int:
    """Return a number that all distances between runs are multiples of; 0 when none says more.

    `run` is that of the layout's `box`.
    """
    inside = prod(n for n, s in zip(shape, strides, strict=True) if n != 1 and 0 < s < run)
    outside = [abs(s) for n, s in zip(shape, strides, strict=True) if n != 1 and abs(s) >= run]
    common = gcd(*outside)
    return common if inside == run and common > run else 0


def is_dense(shape: Ints, strides: Ints) -> bool:
    """Whether the layout is row-major without gaps; size-1 dimensions are skipped."""
    kept = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if not kept:
        return True
    if kept[-1][1] != 1:
        return False
    return all(outer[1] == inner[0] * inner[1] for outer, inner in pairwise(kept))


@lru_cache(maxsize=4096)
def is_injective(shape: Ints, strides: Ints) -> bool:
    """Whether distinct indices reach distinct elements (sufficient test: nested strides)."""
    reach = 1
    for s, n in sorted((abs(s), n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if s < reach:
            return False
        reach = s * n
    return True


def element_indices(shape: Ints, strides: Ints, offset: int) -> NDArray[np.int64]:
    """Return the flat element index of every position, of shape `shape`."""
    index = np.full(shape, offset, dtype=np.int64)
    for axis, (n, s) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(n, dtype=np.int64) * s
        index += steps.reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return index
