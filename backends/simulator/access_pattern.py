"""View methods of `NkiTensor` that address storage: ap, select, vector_select, indirect."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index as as_integer
from typing import TYPE_CHECKING, Any

from backends.isa.dtypes import INT32S, Dtype, find_dtype
from backends.simulator import geometry
from backends.simulator.dynamic import Dynamic
from backends.simulator.faults import Fault
from backends.simulator.options import active_options
from backends.simulator.patterns import (
    LeavesTensor,
    check_bounds,
    check_partitions,
    pattern_of,
    static_layout,
)
from backends.simulator.registers import VirtualRegister
from backends.simulator.views import check_reinterpretation

if TYPE_CHECKING:
    from backends.simulator.tensor import NkiTensor


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
        Shipped kernels write down patterns beyond the end of a tensor which they then do not use,
        so those are faults of their use. Raises Fault S217, S218.
        """
        own = self.layout.dtype
        new = own if dtype is None else find_dtype(dtype)
        if new is not own:
            check_reinterpretation(self, new)
            self.storage.refine_flags()
        if self.layout.moves is not None:
            raise Fault("S218", "`.ap` on a view that a run-time index already addresses")
        wanted = pattern_of(pattern)
        start = _start(self, new, offset)
        if scalar_offset is None and vector_offset is None:
            try:
                layout = static_layout(self.storage, new, wanted, start)
            except LeavesTensor as fault:
                return self.out_of_reach(fault)
            return type(self)(self.storage, layout, start)
        if scalar_offset is not None and vector_offset is not None:
            raise Fault("S218", "`scalar_offset` and `vector_offset` exclude one another")
        counts, steps = wanted.counts, wanted.steps
        if scalar_offset is not None:
            dynamic = _scalar(self, scalar_offset, indirect_dim, new)
        else:
            dynamic = _rows(self, vector_offset, counts[0], indirect_dim, new)
            steps = (dynamic.unit, *steps[1:])
        form = self.storage.form
        if self.on_chip:
            check_partitions(form, new, wanted, start, dynamic)
        check_bounds(form, new, wanted, start, dynamic)
        return self.laid_out(new, counts, steps, start, dynamic)

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
        first = self[(slice(None),) * axis + (0,)]
        dynamic = Dynamic("scalar", index, self.strides[axis], self.shape[axis])
        return self.laid_out(self.dtype, first.shape, first.strides, first.offset, dynamic)

    def vector_select(self: NkiTensor, dim: int, indices: Any) -> NkiTensor:  # type: ignore[misc]
        """Return rows `indices[p]` of an HBM tensor as dimension 0."""
        if dim != 0:
            raise Fault("S218", "`vector_select` addresses dimension 0 only")
        if hasattr(indices, "storage") and indices.size != indices.shape[0]:
            raise Fault(
                "S218",
                f"`vector_select` takes a (P, 1) tensor of row numbers, not {list(indices.shape)}",
            )
        dynamic = _rows(self, indices, indices.shape[0], 0, self.dtype, unit=self.strides[0])
        shape = (indices.shape[0], *self.shape[1:])
        return self.laid_out(self.dtype, shape, self.strides, self.offset, dynamic)

    def indirect(self: NkiTensor, index: NkiTensor, num_elem: int | None = None) -> NkiTensor:  # type: ignore[misc]
        """Return columns listed per partition group by an SBUF tensor (trn3 tensor indirection)."""
        if self.memory not in ("sbuf", "psum") or index.memory != "sbuf":
            raise Fault("S218", "`indirect` addresses on-chip tensors with an index in SBUF")
        if self.dynamic is not None:
            raise Fault("S218", "one run-time index per view; this view has one already")
        if not index.dtype.is_integer:
            raise Fault("S218", f"an index tensor holds integers, not `{index.dtype}`")
        if index.shape[0] != self.shape[0]:
            raise Fault(
                "S218",
                f"the index covers {index.shape[0]} partitions, the tensor {self.shape[0]}",
            )
        flat = geometry.reshape_strides(self.shape[1:], self.strides[1:], (self.free_size,))
        if flat is None:
            raise Fault("S215", "`indirect` needs free dimensions that flatten")
        count = index.size if num_elem is None else num_elem
        if type(count) is not int or count < 1:
            raise Fault("S218", f"`num_elem` is a positive integer, not {count!r}")
        dynamic = Dynamic("columns", index, flat[0], self.free_size)
        shape, strides = (self.shape[0], count), (self.strides[0], flat[0])
        return self.laid_out(self.dtype, shape, strides, self.offset, dynamic)


def is_run_time(index: Any) -> bool:
    """Whether an index is known only when the kernel runs."""
    return isinstance(index, VirtualRegister) or hasattr(index, "storage")


def _check_integers(index: NkiTensor) -> None:
    """Refuse run-time indices of a type that no document shows."""
    if index.dtype.name not in INT32S:
        raise Fault(
            "S218",
            f"an index tensor holds 32-bit integers, not `{index.dtype}`",
            help="use int32 or uint32",
        )


def check_scalar_index(index: Any) -> None:
    """Refuse anything but a register or a one-element SBUF tensor of integers."""
    if isinstance(index, VirtualRegister):
        return
    if not hasattr(index, "storage") or index.size != 1 or index.memory != "sbuf":
        raise Fault(
            "S218",
            "a scalar run-time index is a register or a (1, 1) tensor in SBUF",
            values={"index": index},
        )
    _check_integers(index)


def _start(tensor: NkiTensor, new: Dtype, offset: int | None) -> int:
    """Return the first element in units of `new`."""
    own, old = tensor.offset, tensor.layout.dtype
    if new is not old:
        own, rest = divmod(own * old.bytes, new.bytes)
        if rest:
            raise Fault("S217", f"the view's offset is no whole number of `{new}` elements")
    if offset is None:
        return own
    if type(offset) is not int:
        offset = _integer(offset)
    return offset if active_options().ap_offset == "absolute" else own + offset


def _integer(offset: Any) -> int:
    """Return the `offset` of a pattern as an integer."""
    try:
        return as_integer(offset)
    except TypeError:
        raise Fault("S217", f"`offset` of a pattern is an integer, not `{offset!r}`") from None


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
    _check_integers(index)
    if index.size < rows:
        raise Fault("S218", f"{index.size} row numbers for {rows} rows")
    if unit is None:
        unit = prod(tensor.shape[1:]) * tensor.dtype.bytes // new.bytes
    return Dynamic("rows", index, unit, tensor.shape[0])
