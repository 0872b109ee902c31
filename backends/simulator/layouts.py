"""Layouts as objects that exist once, so that a view is known by one identity.

Kernels make the same few views of equal tiles many thousand times. Whatever a rule may ask of a
view is in its `Layout`, so equal layouts make equal calls, and slicing one is a single look-up.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from backends.isa.dtypes import DTYPES
from backends.simulator.geometry import Ints
from backends.simulator.indexing import work_out

_MOST = 100_000
"""Layouts kept; a dropped one costs a check more, nothing else."""


class Layout:
    """Dtype, shape and strides of views in equal allocations; compared by identity.

    On chip it also says where: first partition of the allocation, bytes per partition, and the
    offset of the view. In HBM, where nothing but bounds depends on it, the offset is left out.
    """

    __slots__ = ("dtype", "on_chip", "place", "shape", "strides")

    def __init__(self, dtype: str, shape: Ints, strides: Ints, place: tuple[Any, ...]) -> None:
        self.dtype = DTYPES[dtype]
        self.shape = shape
        self.strides = strides
        self.place = place
        """Region, first partition, bytes per partition, offset; the last three only on chip."""
        self.on_chip = len(place) > 1


@lru_cache(maxsize=_MOST)
def intern_layout(dtype: str, shape: Ints, strides: Ints, *place: Any) -> Layout:
    """Return the one layout of these numbers."""
    return Layout(dtype, shape, strides, place)


@lru_cache(maxsize=_MOST, typed=True)
def sliced(layout: Layout, a: Any, b: Any, c: Any, d: Any) -> tuple[Layout, int]:
    """Return the layout of `view[a:b, c:d]` and how far its offset moves.

    Typed, because a bound of 2.0 is a fault and one of 2 is not. Raises Fault S210, S211.
    """
    keys = (slice(a, b), slice(c, d))
    shape, strides, moved = work_out(layout.shape, layout.strides, 0, keys, layout.on_chip)
    place = layout.place
    if layout.on_chip:
        place = (*place[:3], place[3] + moved)
    return intern_layout(layout.dtype.name, shape, strides, *place), moved
