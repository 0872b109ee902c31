"""`nki.language` arithmetic: each function allocates an SBUF tile and issues instructions.

As documented these are conveniences: shapes must agree, nothing is broadcast but numbers, and one
call is one or a few `nki.isa` instructions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from backends.isa.dtypes import Dtype
from backends.simulator.allocation import element_type, ndarray
from backends.simulator.faults import Fault
from backends.simulator.instruction_calls import instruction
from backends.simulator.instructions.enums import ENUMS
from backends.simulator.op_tokens import TOKENS
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion

_tensor_tensor = instruction("tensor_tensor")
_tensor_scalar = instruction("tensor_scalar")
_scalar_tensor_tensor = instruction("scalar_tensor_tensor")
_tensor_copy = instruction("tensor_copy")
_activation = instruction("activation")
_reciprocal = instruction("reciprocal")

Operand = NkiTensor | float | int


def _tile(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return a fresh SBUF tile of the shape of `x`."""
    return ndarray(x.shape, x.dtype if dtype is None else element_type(dtype), MemoryRegion.sbuf)


def binary(name: str) -> Callable[..., NkiTensor]:
    """Return `nl.<name>(x, y)` for an ALU operator; one operand may be a number."""
    op = TOKENS[name]

    def call(x: Operand, y: Operand, dtype: Any = None) -> NkiTensor:
        if isinstance(x, NkiTensor) and isinstance(y, NkiTensor):
            if x.shape != y.shape:
                raise Fault(
                    "S214",
                    f"`nl.{name}` on shapes {list(x.shape)} and {list(y.shape)}: operands are not "
                    "broadcast",
                    help="use `nisa.tensor_scalar` for a (P, 1) operand, or a `broadcast` view",
                )
            tile = _tile(x, dtype)
            _tensor_tensor(dst=tile, data1=x, data2=y, op=op)
        elif isinstance(x, NkiTensor):
            tile = _tile(x, dtype)
            _tensor_scalar(dst=tile, data=x, op0=op, operand0=y)
        elif isinstance(y, NkiTensor) and isinstance(x, Real):
            tile = _tile(y, dtype)
            _tensor_scalar(dst=tile, data=y, op0=op, operand0=x, reverse0=True)
        else:
            raise Fault("S104", f"`nl.{name}` needs at least one tensor")
        return tile

    return call


def activation(name: str) -> Callable[..., NkiTensor]:
    """Return `nl.<name>(x)` for an activation function."""
    op = TOKENS[name]

    def call(x: NkiTensor, dtype: Any = None) -> NkiTensor:
        tile = _tile(x, dtype)
        _activation(dst=tile, op=op, data=x)
        return tile

    return call


def unary_alu(name: str) -> Callable[..., NkiTensor]:
    """Return `nl.<name>(x)` for a unary ALU operator."""
    op = TOKENS[name]

    def call(x: NkiTensor, dtype: Any = None) -> NkiTensor:
        tile = _tile(x, dtype)
        _tensor_scalar(dst=tile, data=x, op0=op, operand0=0)
        return tile

    return call


def reciprocal(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return 1 / x (VectorE)."""
    tile = _tile(x, dtype)
    _reciprocal(dst=tile, data=x)
    return tile


def rsqrt(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return x ** -0.5 (GpSimdE; `x` in SBUF)."""
    tile = _tile(x, dtype)
    _tensor_scalar(
        dst=tile, data=x, op0=TOKENS["rsqrt"], operand0=0.0, engine=ENUMS["engine"]["gpsimd"]
    )
    return tile


def negative(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return -x."""
    tile = _tile(x, dtype)
    _tensor_scalar(dst=tile, data=x, op0=TOKENS["multiply"], operand0=-1.0)
    return tile


def _f32(x: NkiTensor) -> NkiTensor:
    return _tile(x, "float32")


def _nearest(x: NkiTensor) -> NkiTensor:
    """Return x rounded to the nearest integer: conversions to int32 round to nearest even."""
    integer, back = _tile(x, "int32"), _f32(x)
    _tensor_copy(dst=integer, src=x)
    _tensor_copy(dst=back, src=integer)
    return back


def _corrected(x: NkiTensor, compare: str, change: str, dtype: Any) -> NkiTensor:
    """Return the nearest integer, moved by one where it lies on the wrong side of x."""
    nearest, wrong, tile = _nearest(x), _f32(x), _tile(x, dtype)
    _tensor_tensor(dst=wrong, data1=nearest, data2=x, op=TOKENS[compare])
    _tensor_tensor(dst=tile, data1=nearest, data2=wrong, op=TOKENS[change])
    return tile


def floor(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return the largest integer not above x; |x| < 2**31."""
    return _corrected(x, "greater", "subtract", dtype)


def ceil(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return the smallest integer not below x; |x| < 2**31."""
    return _corrected(x, "less", "add", dtype)


def trunc(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return x without its fraction; |x| < 2**31."""
    magnitude, sign, tile = _f32(x), _f32(x), _tile(x, dtype)
    _tensor_scalar(dst=magnitude, data=x, op0=TOKENS["abs"], operand0=0)
    _activation(dst=sign, op=TOKENS["sign"], data=x)
    _tensor_tensor(dst=tile, data1=floor(magnitude), data2=sign, op=TOKENS["multiply"])
    return tile


def _reduced_angle(x: NkiTensor, shift: float) -> NkiTensor:
    """Return x + shift moved into [-pi, pi] by whole turns."""
    turns, angle, shifted = _f32(x), _f32(x), _f32(x)
    _tensor_scalar(dst=shifted, data=x, op0=TOKENS["add"], operand0=shift)
    _tensor_scalar(dst=turns, data=shifted, op0=TOKENS["multiply"], operand0=0.5 / math.pi)
    _scalar_tensor_tensor(
        dst=angle,
        data=_nearest(turns),
        op0=TOKENS["multiply"],
        operand0=-2 * math.pi,
        op1=TOKENS["add"],
        operand1=shifted,
    )
    return angle


def sin(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return sin x; unlike the bare activation it reduces the range first."""
    tile = _tile(x, dtype)
    _activation(dst=tile, op=TOKENS["sin"], data=_reduced_angle(x, 0.0))
    return tile


def cos(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return cos x."""
    tile = _tile(x, dtype)
    _activation(dst=tile, op=TOKENS["sin"], data=_reduced_angle(x, 0.5 * math.pi))
    return tile


def tan(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return sin x / cos x."""
    tile = _tile(x, dtype)
    inverse = reciprocal(cos(x, "float32"))
    _tensor_tensor(dst=tile, data1=sin(x, "float32"), data2=inverse, op=TOKENS["multiply"])
    return tile


def where(condition: NkiTensor, x: NkiTensor, y: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return x where the condition is not 0, else y; NaN on the other side does not matter."""
    tile = _tile(x, dtype)
    chosen, mask = _tile(x, dtype), _tile(condition, "uint8")
    _tensor_copy(dst=tile, src=y)
    _tensor_copy(dst=chosen, src=x)
    _tensor_scalar(dst=mask, data=condition, op0=TOKENS["not_equal"], operand0=0.0)
    instruction("tensor_copy_predicated")(dst=tile, src=chosen, predicate=mask)
    return tile


def not_on_hardware(name: str) -> Callable[..., NkiTensor]:
    """Return a function that says no engine has the operation."""

    def call(*_: Any, **__: Any) -> NkiTensor:
        raise Fault("S109", f"`nl.{name}` is not available on hardware", help=_INSTEAD[name])

    return call


_INSTEAD = {
    "divide": "multiply by `nl.reciprocal`",
    "mod": "subtract whole multiples with `nl.floor`",
    "fmod": "subtract whole multiples with `nl.trunc`",
}


def broadcast_to(x: NkiTensor, shape: Sequence[int], dtype: Any = None) -> NkiTensor:
    """Return a new tile with dimensions of size 1 repeated; partitions by a matmul with ones."""
    sizes = tuple(shape)
    if len(sizes) != x.ndim or any(n not in (1, m) for n, m in zip(x.shape, sizes, strict=True)):
        raise Fault("S214", f"`nl.broadcast_to` from {list(x.shape)} to {list(sizes)}")
    view = x
    for axis in range(1, x.ndim):
        if view.shape[axis] != sizes[axis]:
            view = view.broadcast(axis, sizes[axis])
    tile = ndarray(sizes, x.dtype if dtype is None else dtype, MemoryRegion.sbuf)
    if x.shape[0] == sizes[0]:
        _tensor_copy(dst=tile, src=view)
        return tile
    _repeat_partition(tile, view, x.dtype)
    return tile


_MOVING_LIMIT = 512


def _repeat_partition(tile: NkiTensor, row: NkiTensor, dtype: Dtype) -> None:
    """Write one partition to all partitions of a tile, 512 elements at a time."""
    count = tile.shape[0]
    dense = ndarray((1, row.free_size), dtype, MemoryRegion.sbuf)
    _tensor_copy(dst=dense, src=row)
    ones = ndarray((1, count), dtype, MemoryRegion.sbuf)
    instruction("memset")(dst=ones, value=1.0)
    flat = tile.reshape((count, tile.free_size))
    for start in range(0, flat.shape[1], _MOVING_LIMIT):
        stop = min(start + _MOVING_LIMIT, flat.shape[1])
        part = ndarray((count, stop - start), "float32", MemoryRegion.psum)
        instruction("nc_matmul")(
            dst=part, stationary=ones, moving=dense[:, start:stop], accumulate=False
        )
        _tensor_copy(dst=flat[:, start:stop], src=part)
