"""View methods of `NkiTensor` that address storage: ap, select, vector_select, indirect."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from backends.isa.dtypes import Dtype, find_dtype
from backends.simulator import geometry
from backends.simulator.dynamic import Dynamic
from backends.simulator.faults import Fault
from backends.simulator.geometry import Ints
from backends.simulator.options import active_options
from backends.simulator.registers import VirtualRegister
from backends.simulator.views import check_reinterpretation

if TYPE_CHECKING:
    from backends.simulator.tensor import NkiTensor

STEP_LIMIT = 2**15
"""Access-pattern steps are int16."""
COUNT_LIMIT = 2**16
"""Access-pattern counts are uint16."""


class AccessPatterns:
    """Mixin of `NkiTensor`."""

    __slots__ = ()

    def ap(  # type: ignore[misc]
        self: NkiTensor,
        pattern: Sequence[Sequence[int]],
        offset: int | None = None,
        scalar_offset: Any = None,
        vector_offset: Any = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> NkiTensor:
        """Return the storage's elements at `offset + sum(step[k] * i[k])`, shape = the counts.

        The shape and strides of this view play no part; its offset is added to `offset`.
        Raises Fault S217, S218.
        """
        new = self.dtype if dtype is None else find_dtype(dtype)
        if new is not self.dtype:
            check_reinterpretation(self, new)
            self.storage.refine_flags()
        if self.dynamic is not None:
            raise Fault("S218", "`.ap` on a view that a run-time index already addresses")
        shape, strides = _pattern(pattern)
        start = _start(self, new, offset)
        view = type(self)(self.storage, new, shape, strides, start)
        if scalar_offset is not None and vector_offset is not None:
            raise Fault("S218", "`scalar_offset` and `vector_offset` exclude one another")
        if scalar_offset is not None:
            view.dynamic = _scalar(self, scalar_offset, indirect_dim, new)
        elif vector_offset is not None:
            view.dynamic = _rows(self, vector_offset, shape[0], indirect_dim, new)
            view.strides = (view.dynamic.unit, *strides[1:])
        if self.on_chip:
            _check_partitions(view)
        _check_bounds(view)
        return view

    def select(self: NkiTensor, dim: int, index: Any) -> NkiTensor:  # type: ignore[misc]
        """Return the view at one index of a dimension, which goes away.

        `index` is an integer, or for run-time selection a register or a (1, 1) SBUF tensor.
        """
        axis = dim + self.ndim if dim < 0 else dim
        if not 0 <= axis < self.ndim:
            raise Fault("S214", f"dimension {dim} of a tensor of rank {self.ndim}")
        if not is_run_time(index):
            if not 0 <= index < self.shape[axis]:
                raise Fault(
                    "S210", f"index {index} is outside dimension {axis} of {self.shape[axis]}"
                )
            return self[(slice(None),) * axis + (index,)]
        if self.dynamic is not None:
            raise Fault("S218", "one run-time index per view; this view has one already")
        if self.on_chip and axis == 0:
            raise Fault("S213", "a run-time index cannot select a partition")
        check_scalar_index(index)
        view = self[(slice(None),) * axis + (0,)]
        view.dynamic = Dynamic("scalar", index, self.strides[axis], self.shape[axis])
        return view

    def vector_select(self: NkiTensor, dim: int, indices: Any) -> NkiTensor:  # type: ignore[misc]
        """Return rows `indices[p]` of an HBM tensor as dimension 0."""
        if dim != 0:
            raise Fault("S218", "`vector_select` addresses dimension 0 only")
        dynamic = _rows(self, indices, indices.shape[0], 0, self.dtype, unit=self.strides[0])
        shape = (indices.shape[0], *self.shape[1:])
        return type(self)(self.storage, self.dtype, shape, self.strides, self.offset, dynamic)

    def indirect(self: NkiTensor, index: NkiTensor, num_elem: int | None = None) -> NkiTensor:  # type: ignore[misc]
        """Return columns listed per partition group by an SBUF tensor (trn3 tensor indirection)."""
        if self.memory not in ("sbuf", "psum") or index.memory != "sbuf":
            raise Fault("S218", "`indirect` addresses on-chip tensors with an index in SBUF")
        if self.dynamic is not None:
            raise Fault("S218", "one run-time index per view; this view has one already")
        if index.shape[0] != self.shape[0]:
            raise Fault(
                "S218",
                f"the index covers {index.shape[0]} partitions, the tensor {self.shape[0]}",
            )
        flat = geometry.reshape_strides(self.shape[1:], self.strides[1:], (self.free_size,))
        if flat is None:
            raise Fault("S215", "`indirect` needs free dimensions that flatten")
        count = index.size if num_elem is None else num_elem
        dynamic = Dynamic("columns", index, flat[0], self.free_size)
        shape, strides = (self.shape[0], count), (self.strides[0], flat[0])
        return type(self)(self.storage, self.dtype, shape, strides, self.offset, dynamic)


def is_run_time(index: Any) -> bool:
    """Whether an index is known only when the kernel runs."""
    return isinstance(index, VirtualRegister) or hasattr(index, "storage")


def check_scalar_index(index: Any) -> None:
    """Refuse anything but a register or a one-element SBUF tensor."""
    if isinstance(index, VirtualRegister):
        return
    if not hasattr(index, "storage") or index.size != 1 or index.memory != "sbuf":
        raise Fault(
            "S218",
            "a scalar run-time index is a register or a (1, 1) tensor in SBUF",
            values={"index": index},
        )


def _pattern(pattern: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return counts and steps of `[[step, count], ...]`."""
    pairs = tuple([tuple(pair) for pair in pattern])
    types = tuple([type(number) for pair in pairs for number in pair])
    return _checked_pattern(pairs, types)


@lru_cache(maxsize=4096)
def _checked_pattern(
    pairs: tuple[tuple[int, ...], ...], _types: tuple[type, ...]
) -> tuple[Ints, Ints]:
    """Return counts and steps; the types of the numbers keep 2 and 2.0 apart."""
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise Fault(
            "S217", f"a pattern is `[[step, count], ...]`, got {[list(pair) for pair in pairs]}"
        )
    for step, count in pairs:
        if not 0 < count < COUNT_LIMIT:
            raise Fault("S217", f"count {count} in a pattern is outside 1..{COUNT_LIMIT - 1}")
        if step < 0:
            raise Fault("S217", f"step {step} in a pattern is negative")
    return tuple(count for _, count in pairs), tuple(step for step, _ in pairs)


def _start(tensor: NkiTensor, new: Dtype, offset: int | None) -> int:
    """Return the first element in units of `new`."""
    scaled = tensor.offset * tensor.dtype.bytes
    if scaled % new.bytes:
        raise Fault("S217", f"the view's offset is no whole number of `{new}` elements")
    own = scaled // new.bytes
    if offset is None:
        return own
    return offset if active_options().ap_offset == "absolute" else own + offset


def _scalar(tensor: NkiTensor, index: Any, dim: int, new: Dtype) -> Dynamic:
    """Return the addressing of `scalar_offset`: it counts steps of the base view's dimension."""
    check_scalar_index(index)
    if not 0 <= dim < tensor.ndim:
        raise Fault("S218", f"`indirect_dim={dim}` on a tensor of rank {tensor.ndim}")
    unit = prod(tensor.shape[dim + 1 :]) * tensor.dtype.bytes // new.bytes
    return Dynamic("scalar", index, unit, max(1, -(-tensor.storage_size // max(1, unit))))


def _rows(
    tensor: NkiTensor, index: Any, rows: int, dim: int, new: Dtype, unit: int | None = None
) -> Dynamic:
    """Return the addressing of a table of row numbers."""
    if tensor.on_chip:
        raise Fault("S218", "a table of row numbers addresses tensors in HBM only")
    if tensor.dynamic is not None:
        raise Fault("S218", "one run-time index per view; this view has one already")
    if dim != 0:
        raise Fault("S218", f"a table of row numbers addresses dimension 0, not {dim}")
    if not hasattr(index, "storage") or index.memory != "sbuf":
        raise Fault("S218", "a table of row numbers is a (P, 1) tensor in SBUF")
    if index.size < rows:
        raise Fault("S218", f"{index.size} row numbers for {rows} rows")
    if unit is None:
        unit = prod(tensor.shape[1:]) * tensor.dtype.bytes // new.bytes
    return Dynamic("rows", index, unit, tensor.shape[0])


def _check_partitions(view: NkiTensor) -> None:
    """Refuse on-chip patterns that step over partitions or leave the partition they start in."""
    free = view.storage_free
    if len(view.shape) < 2:
        raise Fault("S217", "an on-chip pattern has a partition pair and at least one free pair")
    if view.shape[0] > 1 and view.strides[0] != free:
        raise Fault(
            "S217",
            f"the first pair of an on-chip pattern is [{free}, partitions], got "
            f"[{view.strides[0]}, {view.shape[0]}]",
            values={"elements per partition": free},
        )
    if any(step >= STEP_LIMIT for step in view.strides[1:]):
        raise Fault("S217", f"a step of {max(view.strides[1:])} does not fit into int16")
    box = geometry.box(view.shape[1:], view.strides[1:])
    inside = view.offset % free if view.dynamic is None else 0
    if inside + box.extent > free:
        raise Fault(
            "S217",
            f"the pattern reaches element {inside + box.extent - 1} of a partition of {free}",
        )
    start = view.offset // free
    if start + view.shape[0] > view.storage.partitions:
        raise Fault(
            "S217",
            f"the pattern reaches partition {start + view.shape[0] - 1} of a tensor of "
            f"{view.storage.partitions}",
        )


def _check_bounds(view: NkiTensor) -> None:
    """Refuse patterns that leave the storage; run-time offsets are checked when they are known."""
    axes = (
        slice(1, None) if view.dynamic is not None and view.dynamic.kind == "rows" else slice(None)
    )
    box = geometry.box(view.shape[axes], view.strides[axes])
    if view.offset < 0 or view.offset + box.extent > view.storage_size:
        raise Fault(
            "S217",
            f"the pattern reaches element {view.offset + box.extent - 1} of a storage of "
            f"{view.storage_size}",
            values={"offset": view.offset, "pattern": view.get_pattern()},
        )
