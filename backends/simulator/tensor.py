"""`NkiTensor`: what kernels and instructions see of a storage.

Creating views costs nothing on the machine and touches no data here. The view methods are in
`views.py` and `access_pattern.py`, data access in `stored_view.py`; this module holds indexing and
what Python may ask.
"""

from __future__ import annotations

from math import prod
from sys import maxsize
from typing import Any, NoReturn

from backends.simulator import geometry
from backends.simulator.access_pattern import AccessPatterns
from backends.simulator.faults import Fault
from backends.simulator.indexing import index_layout
from backends.simulator.memory import Storage
from backends.simulator.options import active_options
from backends.simulator.stored_view import StoredView
from backends.simulator.tokens import MemoryRegion
from backends.simulator.views import Views


class NkiTensor(StoredView, Views, AccessPatterns):
    """A view of an allocation."""

    __slots__ = ()

    @property
    def buffer(self) -> MemoryRegion:
        """`nl.sbuf`, `nl.psum`, `nl.private_hbm` or `nl.shared_hbm`."""
        return self.layout.region

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
        return self.storage.allocation.address

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

    def out_of_reach(self, fault: Fault) -> NkiTensor:
        """Return a view whose every use is this fault."""
        return OutOfReach(self.storage, fault)

    def __repr__(self) -> str:
        return (
            f"NkiTensor({self.name or 'unnamed'}, {list(self.shape)}, {self.dtype}, {self.memory})"
        )

    def __getitem__(self, key: Any) -> NkiTensor:
        if type(key) is tuple and len(key) == 2:
            a, b = key
            try:
                # By far the most frequent keys: two slices, seen before. `indices` tells bounds
                # that are equal but no integers apart, by refusing them.
                found, by = self.layout.slices[a.indices(maxsize), b.indices(maxsize)]
                return NkiTensor(self.storage, found, self.offset + by)
            except (AttributeError, KeyError, TypeError):
                pass
        keys = key if type(key) is tuple else (key,)
        try:
            plain = tuple([k if type(k) is int else k.indices(maxsize) for k in keys])
        except (AttributeError, TypeError):  # an ellipsis, or something to refuse
            plain = None
        known = self.layout.slices.get(plain)
        if known is not None:
            return NkiTensor(self.storage, known[0], self.offset + known[1])
        return self._index(keys, plain)

    def _index(self, keys: tuple[Any, ...], plain: Any) -> NkiTensor:
        """Work out `self[keys]`; `plain` is the key to remember it by, None for none."""
        layout, dynamic = self.layout, self.dynamic
        if dynamic is not None and dynamic.kind != "scalar":
            self._check_row_slice(keys)
        shape, strides, by = index_layout(layout.shape, layout.strides, keys, layout.on_chip)
        found = layout.moved(shape, strides, by)
        # Whether partitions may be stepped over is an option, so that is asked each time.
        steps = layout.on_chip and type(keys[0]) is slice and keys[0].step is not None
        if plain is not None and dynamic is None and not steps:
            layout.remember(plain, found, by)
        return NkiTensor(self.storage, found, self.offset + by, dynamic)

    def _check_row_slice(self, keys: tuple[Any, ...]) -> None:
        """Refuse to slice the dimension that a row table replaced."""
        first = keys[0] if keys else Ellipsis
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


class OutOfReach(NkiTensor):
    """A pattern that leaves its tensor: a kernel may write it down, nothing may use it."""

    __slots__ = ("_fault",)

    def __init__(self, storage: Storage, fault: Fault) -> None:
        self.storage = storage
        self._fault = fault

    def __getattr__(self, name: str) -> NoReturn:
        """Layout and offset are not there, and every use of a view asks for one of them."""
        raise self._fault
