"""Expressions evaluated on arrays whose axes have names: the meaning of the operators, no more.

This is not the interpreter: it never runs a rule. It evaluates what a canonical form or a plan is
made of, so that either can be compared with the interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from gdsl.ir.dims import Packed
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Reduce,
    Ref,
    Rename,
    Shift,
    Size,
    Unpack,
)
from gdsl.ir.node import Symbol
from gdsl.ir.operators import OPERATORS, REDUCTIONS
from gdsl.shapes import dim_axes, dim_size

Array = NDArray[Any]


@frozen(eq=False)
class Named:
    """An array with a name for each of its axes."""

    axes: tuple[str, ...]
    data: Array

    def over(self, axes: tuple[str, ...]) -> Array:
        """Return a view with exactly these axes in this order, size 1 where it has none."""
        missing = [axis for axis in self.axes if axis not in axes]
        if missing:
            raise ValueError(f"axes {missing} are not among {axes}")
        order = sorted(range(len(self.axes)), key=lambda i: axes.index(self.axes[i]))
        view = self.data.transpose(order)
        have = set(self.axes)
        return view[tuple(slice(None) if axis in have else np.newaxis for axis in axes)]

    def at(self, axis: str, index: int) -> Named:
        """Return the slice at an index of an axis; itself when it does not carry the axis."""
        if axis not in self.axes:
            return self
        place = self.axes.index(axis)
        rest = self.axes[:place] + self.axes[place + 1 :]
        return Named(rest, np.take(self.data, index, axis=place))


@frozen
class Scope:
    """What evaluation needs besides the values of names.

    `dtype` is that of all arithmetic. `casts` False ignores the casts of the text.
    """

    sizes: Mapping[str, int]
    packed: Mapping[str, Packed]
    dtype: np.dtype[Any]
    casts: bool


Values = Mapping[Symbol, Named]


def evaluate(expr: Expr, values: Values, scope: Scope) -> Named:
    """Return the value of an expression."""
    match expr:
        case Ref(symbol=symbol):
            return values[symbol]
        case Const(value=value):
            return Named((), np.asarray(value, scope.dtype))
        case Size(axis=axis):
            return Named((), np.asarray(scope.sizes[axis], scope.dtype))
        case Index(axis=axis):
            return Named((axis,), np.arange(scope.sizes[axis]).astype(scope.dtype))
        case Apply(operator=operator, args=args):
            return apply(operator, [evaluate(arg, values, scope) for arg in args], scope)
        case Reduce(operator=operator, axes=axes, arg=arg):
            return _reduce(operator, axes, evaluate(arg, values, scope))
        case Cast(dtype=dtype, arg=arg):
            return _cast(evaluate(arg, values, scope), dtype, scope)
        case Rename(source=source, target=target, arg=arg):
            inner = evaluate(arg, values, scope)
            return Named(tuple(target if a == source else a for a in inner.axes), inner.data)
        case Shift(axis=axis, window=window, value=column):
            old, new = (evaluate(part, values, scope) for part in (window, column))
            return shift(axis, old, new)
        case Unpack(packed=packed, field=name, arg=arg):
            return _unpack(scope.packed[packed], name, evaluate(arg, values, scope), scope)
        case _:
            assert_never(expr)


def apply(operator: str, args: list[Named], scope: Scope) -> Named:
    """Return an elementwise operator of values that broadcast by axis name."""
    axes = union(args)
    arrays = [arg.over(axes) for arg in args]
    if operator == "where":
        condition, *branches = arrays
        arrays = [condition != 0, *(branch.astype(scope.dtype) for branch in branches)]
    else:
        arrays = [array.astype(scope.dtype) for array in arrays]
    return Named(axes, OPERATORS[operator].evaluate(*arrays))


def union(values: list[Named]) -> tuple[str, ...]:
    """Return the axes of several values, each once, in order of appearance."""
    return tuple(dict.fromkeys(axis for value in values for axis in value.axes))


def shift(axis: str, window: Named, column: Named) -> Named:
    """Return the window without its first column and with a new last one."""
    rest = tuple(a for a in window.axes if a != axis)
    axes = (*dict.fromkeys((*rest, *column.axes)), axis)
    old = window.over(axes)
    new = column.over(axes)
    shape = np.broadcast_shapes(old.shape[:-1], new.shape[:-1])
    parts = (old[..., 1:], new)
    joined = [np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts]
    return Named(axes, np.concatenate(joined, axis=-1))


def contract(axis: str, vector: Named, state: Named, scope: Scope) -> Named:
    """Return sum[axis](vector * state); a vector without the axis is the same all along it."""
    return _reduce("sum", (axis,), apply("mul", [vector, state], scope))


def _reduce(operator: str, axes: tuple[str, ...], value: Named) -> Named:
    places = tuple(value.axes.index(axis) for axis in axes)
    rest = tuple(axis for axis in value.axes if axis not in axes)
    return Named(rest, REDUCTIONS[operator].evaluate(value.data, places))


def _cast(value: Named, dtype: Dtype, scope: Scope) -> Named:
    if not scope.casts:
        return value
    return Named(value.axes, value.data.astype(dtype.numpy).astype(scope.dtype))


def _unpack(packed: Packed, name: str, value: Named, scope: Scope) -> Named:
    start = 0
    for field, dim in packed.fields:
        size = dim_size(dim, scope.sizes)
        if field == name:
            place = value.axes.index(packed.name)
            part = np.take(value.data, range(start, start + size), axis=place)
            axes = dim_axes(dim)
            shape = [scope.sizes[axis] for axis in axes]
            data = part.reshape(part.shape[:place] + tuple(shape) + part.shape[place + 1 :])
            return Named(value.axes[:place] + axes + value.axes[place + 1 :], data)
        start += size
    raise KeyError(name)
