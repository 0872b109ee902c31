"""`nki.language` reductions, normalisations, matmul, transpose and gathers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from backends.simulator.allocation import ndarray
from backends.simulator.faults import Fault
from backends.simulator.instruction_calls import instruction
from backends.simulator.op_tokens import TOKENS
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion

_tensor_reduce = instruction("tensor_reduce")
_tensor_scalar = instruction("tensor_scalar")
_tensor_tensor = instruction("tensor_tensor")
_activation = instruction("activation")

Axes = int | Sequence[int]


def _axes(x: NkiTensor, axis: Axes, name: str) -> tuple[int, ...]:
    """Return trailing axes, non-negative and in order. Raises Fault S214."""
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(sorted(a + x.ndim if a < 0 else a for a in given))
    if axes != tuple(range(x.ndim - len(axes), x.ndim)) or not axes or axes[0] < 1:
        raise Fault(
            "S214",
            f"`nl.{name}` reduces trailing free axes, not {list(given)} of rank {x.ndim}",
            help="permute the view so that the reduced axes come last",
        )
    return axes


def _reduced(x: NkiTensor, axes: tuple[int, ...], dtype: Any, keepdims: bool) -> NkiTensor:
    """Return an empty tile for the result; on chip at least (P, 1)."""
    kept = x.shape[: axes[0]]
    shape = (*kept, *[1] * len(axes)) if keepdims or len(kept) < 2 else kept
    return ndarray(shape if len(shape) > 1 else (*shape, 1), dtype or x.dtype, MemoryRegion.sbuf)


def reduction(name: str, op: str) -> Callable[..., NkiTensor]:
    """Return `nl.<name>(x, axis)` for an ALU operator."""

    def call(x: NkiTensor, axis: Axes, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
        axes = _axes(x, axis, name)
        tile = _reduced(x, axes, dtype, keepdims)
        _tensor_reduce(dst=tile, op=TOKENS[op], data=x, axis=axes)
        return tile

    return call


def mean(x: NkiTensor, axis: Axes, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
    """Return the average over trailing free axes."""
    axes = _axes(x, axis, "mean")
    total = _reduced(x, axes, "float32", keepdims)
    _tensor_reduce(dst=total, op=TOKENS["add"], data=x, axis=axes)
    tile = _reduced(x, axes, dtype, keepdims)
    count = prod(x.shape[axes[0] :])
    _tensor_scalar(dst=tile, data=total, op0=TOKENS["multiply"], operand0=1.0 / count)
    return tile


def var(x: NkiTensor, axis: Axes, dtype: Any = None, keepdims: bool = True) -> NkiTensor:
    """Return the population variance over all free axes; they are always kept."""
    axes = _axes(x, axis, "var")
    if axes[0] != 1:
        raise Fault("S109", "`nl.var` over some of the free axes", help="flatten the others")
    centre = mean(x, axes, "float32", keepdims=True)
    square = ndarray(x.shape, "float32", MemoryRegion.sbuf)
    column = centre.reshape((x.shape[0], 1))
    _tensor_scalar(dst=square, data=x, op0=TOKENS["subtract"], operand0=column)
    _activation(dst=square, op=TOKENS["square"], data=square)
    return mean(square, axes, dtype or x.dtype, keepdims=True)


def all_(x: NkiTensor, axis: Axes, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
    """Return 1 where every element along the axes is not 0."""
    axes = _axes(x, axis, "all")
    truth = ndarray(x.shape, "float32", MemoryRegion.sbuf)
    _tensor_scalar(dst=truth, data=x, op0=TOKENS["not_equal"], operand0=0.0)
    tile = _reduced(x, axes, dtype, keepdims)
    _tensor_reduce(dst=tile, op=TOKENS["minimum"], data=truth, axis=axes)
    return tile


def softmax(x: NkiTensor, axis: Axes = -1, dtype: Any = None) -> NkiTensor:
    """Return exp(x - max) / sum over all free axes."""
    axes = _axes(x, axis, "softmax")
    if axes[0] != 1:
        raise Fault("S109", "`nl.softmax` over some of the free axes", help="flatten the others")
    lowest = ndarray((x.shape[0], 1), "float32", MemoryRegion.sbuf)
    _tensor_reduce(dst=lowest, op=TOKENS["maximum"], data=x, axis=axes, negate=True)
    powers = ndarray(x.shape, "float32", MemoryRegion.sbuf)
    _activation(dst=powers, op=TOKENS["exp"], data=x, bias=lowest)
    total = ndarray((x.shape[0], 1), "float32", MemoryRegion.sbuf)
    _tensor_reduce(dst=total, op=TOKENS["add"], data=powers, axis=axes)
    instruction("reciprocal")(dst=total, data=total)
    tile = ndarray(x.shape, dtype or x.dtype, MemoryRegion.sbuf)
    _tensor_scalar(dst=tile, data=powers, op0=TOKENS["multiply"], operand0=total)
    return tile


def rms_norm(
    x: NkiTensor, w: NkiTensor, axis: Axes, n: int, epsilon: float = 1e-6, dtype: Any = None
) -> NkiTensor:
    """Return x * w / sqrt(sum(x**2) / n + epsilon) over all free axes."""
    axes = _axes(x, axis, "rms_norm")
    square = ndarray(x.shape, "float32", MemoryRegion.sbuf)
    _activation(dst=square, op=TOKENS["square"], data=x)
    total = ndarray((x.shape[0], 1), "float32", MemoryRegion.sbuf)
    _tensor_reduce(dst=total, op=TOKENS["add"], data=square, axis=axes)
    _tensor_scalar(
        dst=total,
        data=total,
        op0=TOKENS["multiply"],
        operand0=1.0 / n,
        op1=TOKENS["add"],
        operand1=epsilon,
    )
    _activation(dst=total, op=TOKENS["rsqrt"], data=total)
    scaled = ndarray(x.shape, "float32", MemoryRegion.sbuf)
    _tensor_scalar(dst=scaled, data=x, op0=TOKENS["multiply"], operand0=total)
    tile = ndarray(x.shape, dtype or x.dtype, MemoryRegion.sbuf)
    _tensor_tensor(dst=tile, data1=scaled, data2=w, op=TOKENS["multiply"])
    return tile


def transpose(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return the transpose of a two-dimensional SBUF tile, in PSUM."""
    rows, columns = x.shape
    tile = ndarray((columns, rows), dtype or x.dtype, MemoryRegion.psum)
    instruction("nc_transpose")(dst=tile, data=x)
    return tile


def matmul(x: NkiTensor, y: NkiTensor, transpose_x: bool = False) -> NkiTensor:
    """Return x.T @ y in PSUM for x of shape [K, M]; `transpose_x=True` is the only form."""
    if not transpose_x:
        raise Fault(
            "S109",
            "`nl.matmul` without `transpose_x=True` does not compile",
            help="bring x into the layout [K, M] first",
        )
    result = ndarray((x.shape[1], y.shape[1]), "float32", MemoryRegion.psum)
    instruction("nc_matmul")(dst=result, stationary=x, moving=y, accumulate=False)
    return result


def gather_flattened(data: NkiTensor, indices: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return data[p].flat[indices[p]] for every partition."""
    tile = ndarray(indices.shape, dtype or data.dtype, MemoryRegion.sbuf)
    instruction("nc_n_gather")(dst=tile, data=data, indices=indices)
    return tile


def expand_dims(x: NkiTensor, axis: int) -> NkiTensor:
    """Return the view with a dimension of size 1 at `axis`."""
    return x.expand_dim(axis)
