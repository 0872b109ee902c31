"""`NkiTensor`: a strided view of a storage, as kernels and instructions see it.

Creating views costs nothing on the machine and touches no data here. The view methods are in
`views.py` and `access_pattern.py`; this module holds the layout, indexing and data access.
"""

from __future__ import annotations

from math import prod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from backends.isa.dtypes import Dtype
from backends.isa.targets import PSUM_BANK_BYTES
from backends.simulator import geometry
from backends.simulator.access_pattern import AccessPatterns
from backends.simulator.dynamic import Dynamic, flat_indices
from backends.simulator.faults import Fault
from backends.simulator.geometry import Ints
from backends.simulator.indexing import index_layout
from backends.simulator.layouts import Layout, intern_layout, sliced
from backends.simulator.memory import MATMUL_WROTE, OTHER_WROTE_LAST, WRITTEN, Storage
from backends.simulator.numerics import round_to
from backends.simulator.options import active_options
from backends.simulator.tokens import MemoryName, MemoryRegion
from backends.simulator.views import Views

_bare = object.__new__


class NkiTensor(Views, AccessPatterns):
    """A view. Element `i` lives at element `offset + sum(strides[k] * i[k])` of the storage.

    Offsets and strides count elements of `dtype`. On chip the partition stride is the storage's
    elements per partition.
    """

    __slots__ = ("_layout", "dtype", "dynamic", "offset", "shape", "storage", "strides")

    def __init__(
        self,
        storage: Storage,
        dtype: Dtype,
        shape: Ints,
        strides: Ints,
        offset: int,
        dynamic: Dynamic | None = None,
        layout: Layout | None = None,
    ) -> None:
        self.storage = storage
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dynamic = dynamic
        self._layout = layout

    # What a kernel may read while it is specialised.

    @property
    def buffer(self) -> MemoryRegion:
        """`nl.sbuf`, `nl.psum`, `nl.private_hbm` or `nl.shared_hbm`."""
        return self.storage.region

    @property
    def name(self) -> str:
        """Name of the allocation."""
        return self.storage.name

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements of the view."""
        return prod(self.shape)

    @property
    def address(self) -> tuple[int, int] | None:
        """Pinned (partition, byte), if the allocation asked for one."""
        return self.storage.address

    def get_pattern(self) -> list[list[int]]:
        """Return `[[stride, count], ...]` in the order of `shape`."""
        return [[s, n] for s, n in zip(self.strides, self.shape, strict=True)]

    def is_contiguous(self) -> bool:
        """Whether elements are dense and row-major, on chip within each partition."""
        first = 1 if self.on_chip else 0
        return geometry.is_dense(self.shape[first:], self.strides[first:])

    def is_indirect(self) -> bool:
        """Whether a run-time index addresses the view."""
        return self.dynamic is not None

    def __repr__(self) -> str:
        return (
            f"NkiTensor({self.name or 'unnamed'}, {list(self.shape)}, {self.dtype}, {self.memory})"
        )

    def __getitem__(self, key: Any) -> NkiTensor:
        dynamic = self.dynamic
        if type(key) is tuple and len(key) == 2 and dynamic is None:
            a, b = key
            # By far the most frequent keys.
            if type(a) is slice is type(b) and a.step is None is b.step:
                layout, moved = sliced(
                    self._layout or self.layout, a.start, a.stop, b.start, b.stop
                )
                # Without the call of `__init__`, which takes as long as all of the above.
                view = _bare(NkiTensor)
                view.storage = self.storage
                view.dtype = self.dtype
                view.shape = layout.shape
                view.strides = layout.strides
                view.offset = self.offset + moved
                view.dynamic = None
                view._layout = layout
                return view
        if dynamic is not None and dynamic.kind != "scalar":
            self._check_row_slice(key)
        shape, strides, offset = index_layout(
            self.shape,
            self.strides,
            self.offset,
            key,
            self.storage.region.on_chip,
        )
        return NkiTensor(self.storage, self.dtype, shape, strides, offset, dynamic)

    def _check_row_slice(self, key: Any) -> None:
        """Refuse to slice the dimension that a row table replaced."""
        first = key[0] if isinstance(key, tuple) and key else key
        whole = first is Ellipsis or first == slice(None) or first == slice(0, self.shape[0])
        if not whole:
            raise Fault("S218", "the dimension that a run-time table addresses cannot be sliced")

    def _no_contents(self, *_: Any) -> NoReturn:
        raise Fault(
            "S108",
            f"the contents of tensor `{self.name or 'unnamed'}` cannot be read by Python",
            help="decide with shapes and arguments, or select on the device with a mask",
        )

    __int__ = __float__ = __index__ = _no_contents

    def __bool__(self) -> bool:
        if active_options().tensor_truth == "fault":
            self._no_contents()
        # The machine knows tensors, so it cannot be imported above.
        from backends.simulator.machine import current

        current().warn("S108", "a tensor is always true; write `!= None` where that is meant")
        return True

    __iter__ = None

    # What instructions need.

    @property
    def layout(self) -> Layout:
        """The view's layout as an object; that of a run-time index is like no other."""
        found = self._layout
        if self.dynamic is not None:
            return Layout(self.dtype.name, self.shape, self.strides, ())
        if found is None:
            storage = self.storage
            region = storage.region
            place: tuple[Any, ...] = (region,)
            if region.on_chip:
                free = storage.bytes_per_partition
                place = (region, storage.start_partition, free, self.offset)
            found = intern_layout(self.dtype.name, self.shape, self.strides, *place)
            self._layout = found
        return found

    @property
    def on_chip(self) -> bool:
        """Whether the tensor is in SBUF or PSUM."""
        return self.storage.region.on_chip

    @property
    def memory(self) -> MemoryName:
        """`sbuf`, `psum`, `hbm` or `shared_hbm`."""
        name: MemoryName = self.storage.region.value
        return name

    @property
    def partitions(self) -> int:
        """Partitions the view covers; 1 in HBM."""
        return self.shape[0] if self.on_chip else 1

    @property
    def free_size(self) -> int:
        """Elements per partition; all elements in HBM."""
        return prod(self.shape[1:]) if self.on_chip else prod(self.shape)

    @property
    def storage_free(self) -> int:
        """Elements of this dtype in one partition of the storage; in all of it for HBM."""
        return self.storage.bytes_per_partition // self.dtype.bytes

    @property
    def storage_size(self) -> int:
        """Elements of this dtype in the storage."""
        return self.storage.size * self.storage.itemsize // self.dtype.bytes

    @property
    def partition_start(self) -> int:
        """First partition: that of the pinned address plus that of the view; 0 in HBM."""
        storage = self.storage
        if not storage.region.on_chip:
            return 0
        if self.offset == 0:
            return storage.start_partition
        return storage.start_partition + self.offset // self.storage_free

    @property
    def free_start_bytes(self) -> int:
        """Byte of a partition at which the allocation's view begins (its pin not counted)."""
        return self.offset % self.storage_free * self.dtype.bytes

    def banks(self) -> tuple[int, int]:
        """Return the first and last PSUM bank touched, counted from the allocation's first bank."""
        box = geometry.box(self.shape[1:], self.strides[1:])
        first = self.free_start_bytes + box.first * self.dtype.bytes
        last = first + box.extent * self.dtype.bytes - 1
        return first // PSUM_BANK_BYTES, last // PSUM_BANK_BYTES

    @property
    def cell(self) -> np.dtype[Any]:
        """The numpy dtype of one stored element."""
        storage = self.storage
        return storage.cell if self.dtype is storage.dtype else self.dtype.numpy

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
                f"element {list(where)} of tensor `{self.name or 'unnamed'}` was never written",
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
