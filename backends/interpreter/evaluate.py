"""What every expression of the language means: one case per node, on named axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import numpy as np
from attrs import frozen

from backends.interpreter.axes import Sizes, Value, aligned, field, spread, union
from backends.interpreter.contraction import contract
from backends.interpreter.faults import fault
from backends.interpreter.precision import Arithmetic
from gdsl.ir.dims import Packed
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


@frozen(eq=False)
class Setting:
    """What stays the same during a run: sizes, packed axes, the number system."""

    sizes: Sizes
    packed: Mapping[str, Packed]
    arithmetic: Arithmetic


def evaluate(expr: Expr, names: Mapping[Symbol, Value], setting: Setting) -> Value:
    """Return the value of an expression where `names` holds what it refers to."""
    arithmetic = setting.arithmetic
    match expr:
        case Ref(symbol):
            return names[symbol]
        case Const(number):
            return Value((), np.asarray(number, arithmetic.compute))
        case Size(axis):
            return Value((), np.asarray(setting.sizes[axis], arithmetic.compute))
        case Index(axis):
            return Value((axis,), np.arange(setting.sizes[axis], dtype=arithmetic.compute))
        case Apply():
            return _apply(expr, names, setting)
        case Reduce():
            return _reduce(expr, names, setting)
        case Cast(dtype, arg):
            value = evaluate(arg, names, setting)
            return Value(value.axes, arithmetic.cast(value.array, dtype))
        case Rename(source, target, arg):
            value = evaluate(arg, names, setting)
            if setting.sizes[source] != setting.sizes[target]:
                raise fault(
                    "E0710",
                    f"`rename[{source} -> {target}]` needs axes of one size, but {source} is "
                    f"{setting.sizes[source]} and {target} is {setting.sizes[target]}",
                    expr.span,
                )
            axes = tuple(target if axis == source else axis for axis in value.axes)
            return Value(axes, value.array)
        case Shift(axis, window, value):
            return _shift(axis, evaluate(window, names, setting), evaluate(value, names, setting))
        case Unpack(packed, label, arg):
            return field(
                evaluate(arg, names, setting), setting.packed[packed], label, setting.sizes
            )
        case _:
            assert_never(expr)


def _apply(expr: Apply, names: Mapping[Symbol, Value], setting: Setting) -> Value:
    values = [evaluate(arg, names, setting) for arg in expr.args]
    return _elementwise(expr, values, setting.arithmetic)


def _elementwise(expr: Apply, values: list[Value], arithmetic: Arithmetic) -> Value:
    axes = union(expr.type.axes, values)
    arrays = [arithmetic.computed(aligned(value, axes)) for value in values]
    if expr.operator == "where":
        arrays[0] = arrays[0] != 0
    return Value(axes, OPERATORS[expr.operator].evaluate(*arrays))


def _reduce(expr: Reduce, names: Mapping[Symbol, Value], setting: Setting) -> Value:
    match expr:
        case Reduce("sum", axes, Apply("mul", (a, b)) as product):
            left, right = (
                Value(v.axes, setting.arithmetic.computed(v.array))
                for v in (evaluate(a, names, setting), evaluate(b, names, setting))
            )
            contracted = contract(left, right, axes)
            if contracted is not None:
                return contracted
            value = _elementwise(product, [left, right], setting.arithmetic)
        case _:
            value = evaluate(expr.arg, names, setting)
    # A value that lacks a reduced axis is the same along it, so it is given its full size.
    full = tuple(dict.fromkeys((*value.axes, *expr.axes)))
    array = setting.arithmetic.computed(spread(value, full, setting.sizes))
    kept = tuple(axis for axis in full if axis not in expr.axes)
    places = tuple(full.index(axis) for axis in expr.axes)
    return Value(kept, REDUCTIONS[expr.operator].evaluate(array, places))


def _shift(axis: str, window: Value, value: Value) -> Value:
    """Drop column 0, append the value as the last column."""
    outer = tuple(dict.fromkeys(a for a in (*window.axes, *value.axes) if a != axis))
    old = aligned(window, (*outer, axis))[..., 1:]
    new = aligned(value, (*outer, axis))
    common = np.broadcast_shapes(old.shape[:-1], new.shape[:-1])
    parts = [np.broadcast_to(part, (*common, part.shape[-1])) for part in (old, new)]
    return Value((*outer, axis), np.concatenate(parts, axis=-1))
