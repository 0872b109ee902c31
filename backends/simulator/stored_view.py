"""Elements of a storage seen through a layout: where they are, reading and writing them.

What kernels may do with a view is in `tensor.py`; data exists only outside shape-only mode.
"""

from __future__ import annotations

from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from backends.isa.dtypes import Dtype
from backends.simulator import geometry
from backends.simulator.dynamic import Dynamic, flat_indices
from backends.simulator.faults import Fault
from backends.simulator.geometry import Ints
from backends.simulator.layouts import Layout, layout_of
from backends.simulator.memory import MATMUL_WROTE, OTHER_WROTE_LAST, WRITTEN, Storage
from backends.simulator.numerics import round_to
from backends.simulator.options import active_options
from backends.simulator.tokens import MemoryName

MOST_DIMENSIONS = 5
"""Of a view on chip: the partitions and four that a pattern steps over."""


class StoredView:
    """A view. Element `i` lives at element `offset + sum(strides[k] * i[k])` of the storage.

    Offsets and strides count elements of `dtype`. On chip the partition stride is the storage's
    elements per partition.
    """

    __slots__ = ("dynamic", "layout", "offset", "storage")

    def __init__(
        self, storage: Storage, layout: Layout, offset: int, dynamic: Dynamic | None = None
    ) -> None:
        self.storage = storage
        self.layout = layout
        self.offset = offset
        self.dynamic = dynamic
        """The run-time index that moves it, if any."""

    def laid_out(
        self,
        dtype: Dtype,
        shape: Ints,
        strides: Ints,
        offset: int,
        dynamic: Dynamic | None = None,
    ) -> Self:
        """Return another view of the storage. Raises Fault S214 for a rank that NKI lacks."""
        if self.layout.on_chip and not 2 <= len(shape) <= MOST_DIMENSIONS:
            raise Fault(
                "S214",
                f"a view {list(shape)} of rank {len(shape)}; on-chip views have 2 to "
                f"{MOST_DIMENSIONS} dimensions",
            )
        moves = None if dynamic is None else dynamic.moves
        layout = layout_of(self.storage, dtype, shape, strides, offset, moves)
        return type(self)(self.storage, layout, offset, dynamic)

    @property
    def dtype(self) -> Dtype:
        """Element type."""
        return self.layout.dtype

    @property
    def shape(self) -> Ints:
        """Sizes of the dimensions."""
        return self.layout.shape

    @property
    def strides(self) -> Ints:
        """Distances of neighbours along each dimension, in elements."""
        return self.layout.strides

    @property
    def on_chip(self) -> bool:
        """Whether the tensor is in SBUF or PSUM."""
        return self.layout.on_chip

    @property
    def memory(self) -> MemoryName:
        """`sbuf`, `psum`, `hbm` or `shared_hbm`."""
        return self.layout.memory

    @property
    def partitions(self) -> int:
        """Partitions the view covers; 1 in HBM."""
        return self.shape[0] if self.on_chip else 1

    @property
    def free_size(self) -> int:
        """Elements per partition; all elements in HBM."""
        return prod(self.shape[1:]) if self.on_chip else prod(self.shape)

    @property
    def storage_size(self) -> int:
        """Elements of this dtype in the storage."""
        form = self.storage.form
        return form.size * form.itemsize // self.dtype.bytes

    @property
    def partition_start(self) -> int:
        """First partition: that of the pinned address plus that of the view; 0 in HBM."""
        return self.layout.start

    def banks(self) -> tuple[int, int]:
        """Return the first and last PSUM bank touched, counted from the allocation's first bank."""
        return self.layout.banks()

    @property
    def cell(self) -> np.dtype[Any]:
        """The numpy dtype of one stored element."""
        storage = self.storage
        return storage.form.cell if self.dtype is storage.form.dtype else self.dtype.numpy

    def _window(self) -> NDArray[Any]:
        """Return the elements as a numpy view of the storage; scalar indices must be resolved."""
        cell = self.cell
        n = cell.itemsize
        return np.ndarray(
            self.shape,
            cell,
            self.storage.data,
            self.offset * n,
            tuple([s * n for s in self.strides]),
        )

    def _flag_window(self) -> NDArray[np.uint8]:
        """Return the first flag byte of every element."""
        n = self.cell.itemsize
        strides = tuple([s * n for s in self.strides])
        return np.ndarray(self.shape, np.uint8, self.storage.flags, self.offset * n, strides)

    def load(self, group: int = 16) -> NDArray[Any]:
        """Return the elements in the storage's dtype and the view's shape.

        The result may alias the storage: never write into it. Raises Fault S402 for a run-time
        index out of range and S401 for unwritten elements when the options ask for it.
        """
        return self.gather(group=group)[0]

    def gather(
        self, *, skip: bool = False, group: int = 16
    ) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Return the elements, and which rows a run-time index reached (None: all)."""
        assert self.storage.data is not None, "there is no data in shape-only mode"
        flags = self.storage.flags
        strict = flags is not None and active_options().uninitialized == "fault"
        if self.dynamic is None:
            if strict:
                self._refuse_unwritten(self._flag_window())
            return self._window(), None
        indices, legal = flat_indices(self, skip=skip, group=group)
        if strict and flags is not None:
            self._refuse_unwritten(flags[indices * self.cell.itemsize])
        return self.storage.data.view(self.cell)[indices], legal

    def _refuse_unwritten(self, flags: NDArray[np.uint8]) -> None:
        missing = (flags & WRITTEN) == 0
        if missing.any():
            where = tuple(int(i) for i in np.argwhere(missing)[0])
            raise Fault(
                "S401",
                f"element {list(where)} of tensor `{self.storage.name or 'unnamed'}` was never "
                "written",
                values={"shape": self.shape, "unwritten": int(missing.sum())},
            )

    def load_f32(self, group: int = 16) -> NDArray[np.float32]:
        """Return the elements as float32 `[partitions, free size]` (a copy unless already so)."""
        values = self.load(group)
        return values.astype(np.float32, copy=False).reshape(self.partitions, -1)

    def store(
        self, values: NDArray[Any], *, matmul: bool = False, skip: bool = False, group: int = 16
    ) -> None:
        """Write elements that already have the cell's dtype, row-major, in any shape.

        Where positions coincide (stride 0) the last one wins. `matmul` marks PSUM elements as
        written by TensorE; `skip` leaves rows with a run-time index out of range alone.
        """
        storage = self.storage
        storage.written = True
        values = values.reshape(self.shape)
        indices: NDArray[np.int64] | None = None
        if self.dynamic is not None:
            indices, legal = flat_indices(self, skip=skip, group=group)
            if legal is not None:
                indices, values = indices[legal], values[legal]
        elif not geometry.is_injective(self.shape, self.strides):
            indices = geometry.element_indices(self.shape, self.strides, self.offset)
        if indices is None:
            self._window()[...] = values
        else:
            assert storage.data is not None
            storage.data.view(self.cell)[indices.reshape(-1)] = values.reshape(-1)
        if storage.flags is not None:
            self._mark(indices, matmul)

    def _mark(self, indices: NDArray[np.int64] | None, matmul: bool) -> None:
        """Record who wrote the elements."""
        flags = self.storage.flags
        assert flags is not None
        n = self.cell.itemsize
        if indices is None and not self.storage.fine_flags:
            places: Any = self._flag_window()
            places[...] = _flags_after(places, matmul)
            return
        if indices is None:
            indices = geometry.element_indices(self.shape, self.strides, self.offset)
        step = n if self.storage.fine_flags else 1
        bytes_touched = (indices.reshape(-1, 1) * n + np.arange(step)).reshape(-1)
        flags[bytes_touched] = _flags_after(flags[bytes_touched], matmul)

    def store_f32(self, values: NDArray[Any], *, matmul: bool = False, group: int = 16) -> None:
        """Convert computed values to the view's dtype (not when widened) and write them."""
        self.store(round_to(values, self.dtype, self.cell), matmul=matmul, group=group)

    def accumulation_state(self) -> NDArray[np.uint8]:
        """Return the flags of the view's elements: see `memory.MATMUL_WROTE` and its neighbours."""
        if self.storage.flags is None:
            raise Fault("S109", "accumulation state exists for PSUM tensors only")
        return self._flag_window()


def _flags_after(flags: NDArray[np.uint8], matmul: bool) -> NDArray[np.uint8]:
    """Return the flags of elements after a write."""
    if matmul:
        return (flags & ~OTHER_WROTE_LAST) | (MATMUL_WROTE | WRITTEN)
    return flags | (OTHER_WROTE_LAST | WRITTEN)
