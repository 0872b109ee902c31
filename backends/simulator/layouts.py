"""Layouts as objects that exist once, so that a view is known by one identity.

Kernels make the same few views of equal tiles many thousand times. Whatever a rule may ask of a
view is in its `Layout`, so equal layouts make equal calls, and slicing one is a single look-up.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from backends.isa.dtypes import DTYPES, Dtype
from backends.isa.targets import PSUM_BANK_BYTES
from backends.simulator import geometry
from backends.simulator.geometry import Ints
from backends.simulator.memory import Storage
from backends.simulator.tokens import MemoryName, MemoryRegion

Moves = tuple[str, int, "Layout | None"]
"""How a run-time index moves a view: kind and unit of a `Dynamic`, and the layout of the index for
every rule (None: a register)."""

_MOST = 100_000
"""Layouts kept; a dropped one costs a check more, nothing else."""
_MOST_KEYS = 4096
"""Slices that one layout remembers."""


class Layout:
    """Dtype, shape, strides and place of views; compared by identity.

    The place is what rules ask for: in SBUF the first partition, in PSUM also the element of the
    partition (which says the bank), in HBM the memory only. The offset belongs to the view.
    """

    __slots__ = ("dtype", "inner", "memory", "moves", "on_chip", "region", "row", "rules", "shape",
                 "slices", "start", "strides")  # fmt: skip

    def __init__(
        self,
        dtype: Dtype,
        shape: Ints,
        strides: Ints,
        region: MemoryRegion,
        row: int,
        start: int,
        inner: int,
        moves: Moves | None,
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.region = region
        self.memory: MemoryName = region.value
        self.on_chip = region.on_chip
        self.row = row
        """Bytes per partition of the allocation on chip, else 0."""
        self.start = start
        """First partition on chip, counted with the pinned address, else 0."""
        self.inner = inner
        """First element within the partition in PSUM, else 0."""
        self.moves = moves
        """None unless a run-time index addresses the view."""
        self.slices: dict[Any, tuple[Layout, int]] = {}
        """Layouts of slices of this one and how far they are from it, by key; see `remember`."""
        self.rules = self._representative()
        """The layout that every rule treats like this one: where in a bank does not matter."""

    def _representative(self) -> Layout:
        if not self.inner or len(set(self.banks())) > 1:
            return self
        return _intern(
            self.dtype.name,
            self.shape,
            self.strides,
            self.region,
            self.row,
            self.start,
            0,
            self.moves,
        )

    def banks(self) -> tuple[int, int]:
        """Return the first and last PSUM bank touched, counted from the allocation's first bank."""
        box = geometry.box(self.shape[1:], self.strides[1:])
        first = (self.inner + box.first) * self.dtype.bytes
        last = first + box.extent * self.dtype.bytes - 1
        return first // PSUM_BANK_BYTES, last // PSUM_BANK_BYTES

    def moved(self, shape: Ints, strides: Ints, by: int) -> Layout:
        """Return the layout of another part of the same storage, `by` elements further on."""
        if not self.on_chip:
            return _intern(self.dtype.name, shape, strides, self.region, 0, 0, 0, self.moves)
        partitions, inner = divmod(self.inner + by, self.row // self.dtype.bytes)
        start = self.start + partitions
        if self.region is not MemoryRegion.psum:
            inner = 0
        return _intern(
            self.dtype.name, shape, strides, self.region, self.row, start, inner, self.moves
        )

    def remember(self, key: Any, found: Layout, by: int) -> None:
        """Keep what a slice of this layout is."""
        if len(self.slices) >= _MOST_KEYS:
            self.slices.clear()
        self.slices[key] = (found, by)


def layout_of(
    storage: Storage,
    dtype: Dtype,
    shape: Ints,
    strides: Ints,
    offset: int,
    moves: Moves | None = None,
) -> Layout:
    """Return the layout of a view of `storage` that begins at element `offset`."""
    region = storage.form.region
    if not region.on_chip:
        return _intern(dtype.name, shape, strides, region, 0, 0, 0, moves)
    row = storage.form.bytes_per_partition
    partitions, inner = divmod(offset, row // dtype.bytes)
    if region is not MemoryRegion.psum:
        inner = 0
    start = storage.start_partition + partitions
    return _intern(dtype.name, shape, strides, region, row, start, inner, moves)


def whole_layout(storage: Storage) -> Layout:
    """Return the layout of all of a storage."""
    form = storage.form
    known: Layout | None = form.whole.get(storage.start_partition)
    if known is None:
        known = layout_of(storage, form.dtype, form.shape, form.strides, 0)
        form.whole[storage.start_partition] = known
    return known


@lru_cache(maxsize=_MOST)
def _intern(
    dtype: str,
    shape: Ints,
    strides: Ints,
    region: MemoryRegion,
    row: int,
    start: int,
    inner: int,
    moves: Moves | None,
) -> Layout:
    """Return the one layout of these numbers."""
    return Layout(DTYPES[dtype], shape, strides, region, row, start, inner, moves)
