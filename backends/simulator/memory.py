"""Storage: one allocation in HBM, SBUF or PSUM, its bytes and what is known about them.

A storage holds its elements row-major; on chip dimension 0 is the partition, so element `f` of
partition `p` is element `p * free + f`. In shape-only mode there are no bytes.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from backends.isa.dtypes import Dtype
from backends.simulator.geometry import row_major
from backends.simulator.location import NOWHERE, Location
from backends.simulator.tokens import MemoryRegion

Role = Literal["input", "output", "inout", "scratch", "constant"]

MATMUL_WROTE = np.uint8(1)
"""Flag: a matmul wrote the element since the allocation (PSUM)."""
OTHER_WROTE_LAST = np.uint8(2)
"""Flag: the last write was not a matmul (PSUM)."""
WRITTEN = np.uint8(4)
"""Flag: something wrote the element."""

UNWRITTEN_INTEGER = 4
"""What unwritten integer memory reads as, as in the vendor's simulator; floats read as NaN."""

_IDS = count()


class Form:
    """What all allocations of one shape, dtype and memory have in common; compared by identity."""

    __slots__ = (
        "bytes_per_partition",
        "cell",
        "dtype",
        "free",
        "itemsize",
        "partitions",
        "patterns",
        "region",
        "shape",
        "size",
        "strides",
        "whole",
        "widened",
    )

    def __init__(
        self, shape: tuple[int, ...], dtype: Dtype, region: MemoryRegion, *, widen: bool
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.region = region
        self.itemsize = itemsize = dtype.bytes
        self.size = size = prod(shape)
        self.partitions = partitions = shape[0] if region.on_chip else 1
        self.free = free = size // partitions
        """Elements per partition; all of them for HBM."""
        self.bytes_per_partition = free * itemsize
        """Of the declared dtype; all bytes for HBM."""
        self.strides = row_major(shape)
        self.widened = widen and dtype.is_float and itemsize < 4
        """Whether elements are stored as float32 whatever float dtype was declared."""
        self.cell = np.dtype(np.float32) if self.widened else dtype.numpy
        """The numpy dtype of a stored element of the declared dtype."""
        self.whole: dict[int, Any] = {}
        """Layout of all of it, by its first partition; see `layouts.whole_layout`."""
        self.patterns: dict[Any, Any] = {}
        """Layouts of access patterns that fit; see `patterns.static_layout`."""


@lru_cache(maxsize=4096)
def form_of(
    shape: tuple[int, ...], dtype: Dtype, region: MemoryRegion, *, widen: bool = False
) -> Form:
    """Return the one form of these; `widen` stores every float dtype as float32."""
    return Form(shape, dtype, region, widen=widen)


class Allocation:
    """What a program's record keeps of a storage, whose bytes may be gone: where and how long."""

    __slots__ = ("address", "born", "form", "last", "location", "loop", "name", "number", "role")

    def __init__(
        self,
        form: Form,
        name: str = "",
        location: Location = NOWHERE,
        address: tuple[int, int] | None = None,
        role: Role = "scratch",
    ) -> None:
        self.form = form
        self.name = name
        self.location = location
        self.address = address
        """Pinned (partition, byte), if the allocation asked for one."""
        self.role: Role = role
        self.number = -1
        """Its place in the trace's list of buffers, once a program has recorded it."""
        self.born = 0
        """The record that first accesses it; the next record at its allocation until one does."""
        self.last = -1
        """The record that last accesses it, -1 for none."""
        self.loop: tuple[int, ...] = ()
        """The device-loop iterations around its allocation."""


class Storage:
    """One allocation and its bytes.

    `data` is the flat array of bytes, or None in shape-only mode. `flags`, where kept, has one byte
    per byte of `data`; only the first byte of an element counts until `refine_flags` is called
    because a view of another dtype exists.
    """

    __slots__ = (
        "_data",
        "_flags",
        "_keeps_flags",
        "_unmade",
        "allocation",
        "fine_flags",
        "form",
        "id",
        "start_partition",
        "sums",
        "written",
    )

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation
        """Of the program that made it; the other one of a pair records shared memory by itself."""
        self.form = allocation.form
        self.id = next(_IDS)
        address = allocation.address
        self.start_partition = 0 if address is None else address[0]
        self.written = False
        """Whether an instruction wrote to it."""
        self.sums: dict[Any, None] = {}
        """Without data, views that TensorE wrote: see `accumulation.py`."""
        self._unmade = False
        self._keeps_flags = False
        self._data: NDArray[np.uint8] | None = None
        self._flags: NDArray[np.uint8] | None = None
        self.fine_flags = False

    @property
    def name(self) -> str:
        """Name of the allocation."""
        return self.allocation.name

    @property
    def data(self) -> NDArray[np.uint8] | None:
        """The flat array of bytes; None without data."""
        if self._unmade:
            self._make()
        return self._data

    @property
    def flags(self) -> NDArray[np.uint8] | None:
        """Flags by byte, None where none are kept."""
        if self._unmade:
            self._make()
        return self._flags

    def fill(self, values: NDArray[Any] | None = None, *, with_flags: bool = False) -> None:
        """Give the storage bytes, unwritten where there are no values.

        Unwritten bytes are made when they are first touched: kernels allocate tiles long before.
        """
        form = self.form
        self._keeps_flags = with_flags or form.region is MemoryRegion.psum
        if values is None:
            self._unmade = True
            return
        self._data = np.array(values, dtype=form.cell).reshape(-1).view(np.uint8)
        self._make_flags(int(WRITTEN))

    def _make(self) -> None:
        form = self.form
        self._unmade = False
        self._data = _unwritten(form.size, form.dtype, form.cell).view(np.uint8)
        self._make_flags(0)

    def _make_flags(self, initial: int) -> None:
        if self._keeps_flags:
            size = self.form.size * self.form.cell.itemsize
            self._flags = np.full(size, initial, dtype=np.uint8)

    def values(self) -> NDArray[Any]:
        """Return the contents in the allocation's shape (a copy)."""
        assert self.data is not None
        return self.data.view(self.form.cell).reshape(self.form.shape).copy()

    def refine_flags(self) -> None:
        """Spread every element's flags over all its bytes, so that any dtype can read them."""
        if self.flags is not None and not self.fine_flags:
            per_element = self.flags.reshape(-1, self.form.cell.itemsize)
            per_element[:] = per_element[:, :1]
        self.fine_flags = True


def _unwritten(size: int, dtype: Dtype, cell: np.dtype[Any]) -> NDArray[Any]:
    """Return cells as unwritten memory reads: NaN, or 4 in integers."""
    if dtype.kind == "packed":
        return np.full(size, np.iinfo(cell).max, dtype=cell)  # all ones: NaN in every fp8 lane
    if dtype.is_float:
        return np.full(size, np.nan, dtype=cell)
    return np.full(size, UNWRITTEN_INTEGER, dtype=cell)
