"""View methods of `NkiTensor` that only rearrange: slice, permute, reshape, broadcast, view, ...

Nothing is copied. On chip dimension 0 is physical and stays; every refusal names the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from backends.isa.dtypes import find_dtype
from backends.simulator import geometry
from backends.simulator.faults import Fault
from backends.simulator.geometry import Ints
from backends.simulator.options import active_options
from backends.simulator.rearrange import rearrange_steps

if TYPE_CHECKING:
    from backends.simulator.tensor import NkiTensor


class Views:
    """Mixin of `NkiTensor`."""

    __slots__ = ()

    def slice(self: NkiTensor, dim: int, start: int, end: int, step: int = 1) -> NkiTensor:  # type: ignore[misc]
        """Return elements start, start + step, ... below `end` of one dimension."""
        axis = _axis(self, dim)
        size = self.shape[axis]
        if not 0 <= start < end <= size:
            raise Fault(
                "S210",
                f"`slice` from {start} to {end} is empty or outside dimension {axis} of {size}",
                values={"shape": self.shape},
            )
        key = (slice(None),) * axis + (slice(start, end, step),)
        return self[key]

    def permute(self: NkiTensor, dims: Sequence[int]) -> NkiTensor:  # type: ignore[misc]
        """Return the view with dimension `dims[i]` at place `i`."""
        order = tuple(dims)
        if sorted(order) != list(range(self.ndim)):
            raise Fault(
                "S214",
                f"`permute` needs every dimension once, got {list(order)}",
                values={"shape": self.shape},
            )
        if _first_is_fixed(self) and order[0] != 0:
            raise Fault(
                "S213",
                f"`permute` to {list(order)} moves the partition dimension",
                values={"shape": self.shape},
                help="use `nisa.nc_transpose`, a matmul with an identity or `nisa.dma_transpose`",
            )
        shape = tuple([self.shape[i] for i in order])
        strides = tuple([self.strides[i] for i in order])
        return _remade(self, shape, strides)

    def broadcast(self: NkiTensor, dim: int, size: int) -> NkiTensor:  # type: ignore[misc]
        """Return the view with a dimension of size 1 repeated `size` times."""
        axis = _axis(self, dim)
        if type(size) is not int or size < 1:
            raise Fault("S214", f"`broadcast` to `{size!r}`; a size is a positive integer")
        if self.shape[axis] != 1:
            raise Fault(
                "S214",
                f"`broadcast` repeats a size of 1; dimension {axis} has {self.shape[axis]}",
                values={"shape": self.shape},
            )
        if _first_is_fixed(self) and axis == 0:
            raise Fault(
                "S213",
                "`broadcast` cannot repeat the partition dimension",
                help="copy with `nisa.nc_stream_shuffle`, a matmul with ones, or a dma",
            )
        shape = (*self.shape[:axis], size, *self.shape[axis + 1 :])
        strides = (*self.strides[:axis], 0, *self.strides[axis + 1 :])
        return _remade(self, shape, strides)

    def expand_dim(self: NkiTensor, dim: int) -> NkiTensor:  # type: ignore[misc]
        """Return the view with a dimension of size 1 inserted at `dim`."""
        axis = dim + self.ndim + 1 if dim < 0 else dim
        if not 0 <= axis <= self.ndim:
            raise Fault("S214", f"`expand_dim({dim})` on rank {self.ndim}")
        if _first_is_fixed(self) and axis == 0:
            raise Fault("S213", "`expand_dim(0)` would replace the partition dimension")
        stride = self.shape[axis] * self.strides[axis] if axis < self.ndim else 1
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        strides = (*self.strides[:axis], stride, *self.strides[axis:])
        return _remade(self, shape, strides)

    def squeeze_dim(self: NkiTensor, dim: int) -> NkiTensor:  # type: ignore[misc]
        """Return the view without a dimension of size 1."""
        axis = _axis(self, dim)
        if self.shape[axis] != 1:
            raise Fault("S214", f"`squeeze_dim({dim})` on a dimension of size {self.shape[axis]}")
        if _first_is_fixed(self) and axis == 0:
            raise Fault("S213", "`squeeze_dim(0)` would remove the partition dimension")
        shape = (*self.shape[:axis], *self.shape[axis + 1 :])
        strides = (*self.strides[:axis], *self.strides[axis + 1 :])
        return _remade(self, shape, strides)

    def reshape_dim(self: NkiTensor, dim: int, shape: Sequence[int]) -> NkiTensor:  # type: ignore[misc]
        """Return the view with one dimension split into `shape` (one entry may be -1)."""
        axis = _axis(self, dim)
        sizes = _complete(tuple(shape), self.shape[axis], f"reshape_dim({dim}, ...)")
        if _first_is_fixed(self) and axis == 0 and sizes != (self.shape[0],):
            raise Fault("S213", "`reshape_dim(0, ...)` would split the partition dimension")
        inner = [self.strides[axis] * prod(sizes[i + 1 :]) for i in range(len(sizes))]
        new_shape = (*self.shape[:axis], *sizes, *self.shape[axis + 1 :])
        strides = (*self.strides[:axis], *inner, *self.strides[axis + 1 :])
        return _remade(self, new_shape, strides)

    def flatten_dims(self: NkiTensor, start_dim: int, end_dim: int) -> NkiTensor:  # type: ignore[misc]
        """Return the view with dimensions `start_dim` to `end_dim` (inclusive) merged."""
        a, b = _axis(self, start_dim), _axis(self, end_dim)
        if a > b:
            raise Fault("S214", f"`flatten_dims({start_dim}, {end_dim})` goes backwards")
        if _first_is_fixed(self) and a == 0 and b > 0:
            raise Fault("S213", "`flatten_dims` cannot merge the partition dimension")
        merged = prod(self.shape[a : b + 1])
        strides = geometry.reshape_strides(
            self.shape[a : b + 1], self.strides[a : b + 1], (merged,)
        )
        if strides is None:
            raise _not_viewable(self, f"dimensions {a} to {b} do not follow one another in memory")
        new_shape = (*self.shape[:a], merged, *self.shape[b + 1 :])
        return _remade(self, new_shape, (*self.strides[:a], *strides, *self.strides[b + 1 :]))

    def reshape(self: NkiTensor, *shape: Any) -> NkiTensor:  # type: ignore[misc]
        """Return the same elements in the same order under another shape."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        sizes = _complete(tuple(wanted), self.size, "reshape")
        if sizes == self.shape:
            return self
        if _first_is_fixed(self):
            if sizes[0] != self.shape[0]:
                raise Fault(
                    "S213",
                    f"`reshape` to {list(sizes)} changes the partition dimension",
                    values={"shape": self.shape},
                )
            inner = geometry.reshape_strides(self.shape[1:], self.strides[1:], sizes[1:])
            strides = None if inner is None else (self.strides[0], *inner)
        else:
            strides = geometry.reshape_strides(self.shape, self.strides, sizes)
        if strides is None:
            raise _not_viewable(self, f"no strides describe it as {list(sizes)}")
        return _remade(self, sizes, strides)

    def rearrange(  # type: ignore[misc]
        self: NkiTensor,
        src_pattern: Sequence[Any],
        dst_pattern: Sequence[Any],
        fixed_sizes: Mapping[str, int] | None = None,
    ) -> NkiTensor:
        """Return the view split, permuted and merged by names, tuples of names being groups."""
        split, order, merged = rearrange_steps(
            self.shape, tuple(src_pattern), tuple(dst_pattern), dict(fixed_sizes or {})
        )
        return self.reshape(split).permute(order).reshape(merged)

    def view(self: NkiTensor, dtype: Any) -> NkiTensor:  # type: ignore[misc]
        """Return the same bits as elements of another dtype; the last dimension scales."""
        new = find_dtype(dtype)
        old = self.dtype
        if new is old:
            return self
        if self.dynamic is not None:
            raise Fault("S216", "`view(dtype)` after a run-time index is not supported")
        check_reinterpretation(self, new)
        self.storage.refine_flags()
        if new.bytes == old.bytes:
            return self.laid_out(new, self.shape, self.strides, self.offset)
        if self.strides[-1] != 1 and self.shape[-1] != 1:
            raise Fault(
                "S216",
                f"the last dimension has stride {self.strides[-1]}; `view` to a dtype of another "
                "size needs 1",
            )
        values = (self.shape[-1], *self.strides[:-1], self.offset)
        scaled = [v * old.bytes / new.bytes for v in values]
        if not all(v.is_integer() for v in scaled):
            raise Fault(
                "S216",
                f"{self.shape[-1]} elements of `{old}` are no whole number of `{new}`",
                values={"shape": self.shape, "strides": self.strides, "offset": self.offset},
            )
        last, *outer, offset = (int(v) for v in scaled)
        return self.laid_out(new, (*self.shape[:-1], last), (*outer, 1), offset)

    reinterpret_cast = view


def check_reinterpretation(tensor: NkiTensor, new: Any) -> None:
    """Refuse to read widened storage as other bits: in that mode the bits are not the kernel's."""
    narrow = (tensor.storage.form.dtype, new)
    if active_options().widen_to_fp32 and any(d.is_float and d.bytes < 4 for d in narrow):
        raise Fault(
            "S109",
            f"`{tensor.dtype}` read as `{new}` while every float dtype is widened to float32",
            help="run without widening",
        )


def _remade(tensor: NkiTensor, shape: Ints, strides: Ints) -> NkiTensor:
    """Return a view of the same elements with another layout."""
    return tensor.laid_out(tensor.dtype, shape, strides, tensor.offset, tensor.dynamic)


def _first_is_fixed(tensor: NkiTensor) -> bool:
    """Whether dimension 0 must stay: partitions, or rows that a run-time table addresses."""
    dynamic = tensor.dynamic
    return tensor.on_chip or (dynamic is not None and dynamic.kind != "scalar")


def _axis(tensor: NkiTensor, dim: int) -> int:
    """Return a dimension number without sign. Raises Fault S214."""
    axis = dim + tensor.ndim if dim < 0 else dim
    if not 0 <= axis < tensor.ndim:
        raise Fault("S214", f"dimension {dim} of a tensor of rank {tensor.ndim}")
    return axis


def _complete(sizes: Ints, total: int, what: str) -> Ints:
    """Return sizes whose product is `total`, with one -1 filled in."""
    if any(type(n) is not int or n < -1 for n in sizes):
        raise Fault("S214", f"`{what}` to {list(sizes)}; sizes are positive integers, or one -1")
    known = prod(n for n in sizes if n != -1)
    if sizes.count(-1) == 1 and known > 0 and total % known == 0:
        return tuple(total // known if n == -1 else n for n in sizes)
    if not sizes or -1 in sizes or prod(sizes) != total:
        raise Fault("S214", f"`{what}` to {list(sizes)} does not keep {total} elements")
    return sizes


def _not_viewable(tensor: NkiTensor, why: str) -> Fault:
    return Fault(
        "S215",
        f"the view cannot be reshaped: {why}",
        values={"shape": tensor.shape, "strides": tensor.strides},
        help="copy it to a tile of its own first",
    )
