"""Storage: one allocation in HBM, SBUF or PSUM, its bytes and what is known about them.

A storage holds its elements row-major; on chip dimension 0 is the partition, so element `f` of
partition `p` is element `p * free + f`. In shape-only mode there are no bytes.
"""

from __future__ import annotations

from itertools import count
from math import prod
from typing import Any, Literal

import numpy as np
from attrs import define
from numpy.typing import NDArray

from backends.isa.dtypes import Dtype
from backends.simulator.location import Location
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


@define(eq=False)
class Allocation:
    """What stays known of a storage when its bytes are gone; the record of a run holds these."""

    id: int
    name: str
    shape: tuple[int, ...]
    dtype: Dtype
    region: MemoryRegion
    location: Location
    address: tuple[int, int] | None
    role: Role
    partitions: int
    start_partition: int
    bytes_per_partition: int
    """All bytes for HBM."""


class Storage:
    """One allocation and its bytes.

    `bytes_per_partition` counts the declared dtype; for HBM it is all bytes.
    `cell` is the numpy dtype of an element of the declared dtype; with `widened` it is float32
    whatever float dtype was declared. `data` is the flat array of bytes, or None in shape-only
    mode. `flags`, where kept, has one byte per byte of `data`; only the first byte of an element
    counts until `refine_flags` is called because a view of another dtype exists.
    """

    __slots__ = (
        "address",
        "bytes_per_partition",
        "cell",
        "data",
        "dtype",
        "fine_flags",
        "flags",
        "free",
        "id",
        "itemsize",
        "location",
        "name",
        "partitions",
        "region",
        "role",
        "shape",
        "size",
        "start_partition",
        "widened",
        "written",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Dtype,
        region: MemoryRegion,
        *,
        name: str,
        location: Location,
        with_data: bool,
        with_flags: bool = False,
        widen: bool = False,
        address: tuple[int, int] | None = None,
        role: Role = "scratch",
        values: NDArray[Any] | None = None,
    ) -> None:
        self.id = next(_IDS)
        self.shape = shape
        self.dtype = dtype
        self.region = region
        self.name = name
        self.location = location
        self.address = address
        self.role: Role = role
        self.itemsize = itemsize = dtype.bytes
        self.size = size = prod(shape)
        self.partitions = partitions = shape[0] if region.on_chip else 1
        self.free = free = size // partitions
        self.bytes_per_partition = free * itemsize
        self.start_partition = address[0] if address is not None else 0
        self.widened = widen and dtype.is_float and itemsize < 4
        self.cell = np.dtype(np.float32) if self.widened else dtype.numpy
        self.written = False
        self.data: NDArray[Any] | None = None
        self.flags: NDArray[np.uint8] | None = None
        self.fine_flags = False
        if with_data:
            if values is None:
                cells = _unwritten(self.size, dtype, self.cell)
            else:
                cells = np.array(values, dtype=self.cell).reshape(-1)
            self.data = cells.view(np.uint8)
        if with_data and (with_flags or region is MemoryRegion.psum):
            initial = 0 if values is None else WRITTEN
            self.flags = np.full(self.size * self.cell.itemsize, initial, dtype=np.uint8)

    def describe(self) -> Allocation | Storage:
        """Return the allocation without its bytes: itself where there are none."""
        if self.data is None:
            return self
        return Allocation(
            self.id,
            self.name,
            self.shape,
            self.dtype,
            self.region,
            self.location,
            self.address,
            self.role,
            self.partitions,
            self.start_partition,
            self.bytes_per_partition,
        )

    def values(self) -> NDArray[Any]:
        """Return the contents in the allocation's shape (a copy)."""
        assert self.data is not None
        return self.data.view(self.cell).reshape(self.shape).copy()

    def refine_flags(self) -> None:
        """Spread every element's flags over all its bytes, so that any dtype can read them."""
        if self.flags is not None and not self.fine_flags:
            per_element = self.flags.reshape(-1, self.cell.itemsize)
            per_element[:] = per_element[:, :1]
        self.fine_flags = True


def _unwritten(size: int, dtype: Dtype, cell: np.dtype[Any]) -> NDArray[Any]:
    """Return cells as unwritten memory reads: NaN, or 4 in integers."""
    if dtype.kind == "packed":
        return np.full(size, np.iinfo(cell).max, dtype=cell)  # all ones: NaN in every fp8 lane
    if dtype.is_float:
        return np.full(size, np.nan, dtype=cell)
    return np.full(size, UNWRITTEN_INTEGER, dtype=cell)
