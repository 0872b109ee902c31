"""Typed expressions from typed parts: axes, dtype and range of each node.

Nothing here reports; callers check what a user can get wrong before they build.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

from gdsl.ir import interval as iv
from gdsl.ir import ranges
from gdsl.ir.dims import Atom, Dim, Packed, Product, Unit
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Reduce,
    Rename,
    Shift,
    Size,
    Unpack,
)
from gdsl.ir.operators import OPERATORS, REDUCTIONS
from gdsl.ir.types import Interval, Type
from gdsl.semantics.axes import AxisTable, value_axes
from gdsl.source import Span

COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})


def constant(value: float, span: Span) -> Const:
    """A number."""
    return Const(value, Type(range=iv.point(value)), span=span)


def size(axis: str, table: AxisTable, span: Span) -> Expr:
    """The size of an axis; of a composite or packed one, from its parts."""
    if axis in table.composites:
        return _length(table.composites[axis], table, span)
    if axis in table.packed:
        return _length(table.packed[axis], table, span)
    most = table.atomic[axis].at_most
    largest = float(most) if most is not None else math.inf
    return Size(axis, Type(range=Interval(1.0, largest)), span=span)


def _length(dim: Dim, table: AxisTable, span: Span) -> Expr:
    match dim:
        case Unit():
            return constant(1.0, span)
        case Atom(axis=axis):
            return size(axis, table, span)
        case Product(parts=parts):
            operator, inner = "mul", parts
        case Packed(fields=fields):
            operator, inner = "add", tuple(part for _, part in fields)
        case _:
            assert_never(dim)
    first, *rest = (_length(part, table, span) for part in inner)
    for length in rest:
        first = apply(operator, (first, length), table, span)
    return first


def apply(operator: str, args: Sequence[Expr], table: AxisTable, span: Span) -> Apply:
    """An elementwise operator; its axes are all axes of its arguments."""
    axes = table.ordered(axis for arg in args for axis in arg.type.axes)
    dtype = Dtype.BOOL if operator in COMPARISONS else Dtype.F32
    intervals = [arg.type.range for arg in args]
    if operator == "mul" and args[0] == args[1]:
        known = ranges.square(intervals[0])
    else:
        known = OPERATORS[operator].interval(*intervals)
    return Apply(operator, tuple(args), Type(axes, dtype, known), span=span)


def negate(arg: Expr, table: AxisTable, span: Span) -> Expr:
    """`-arg`; of a number, the negative number."""
    if isinstance(arg, Const):
        return constant(-arg.value, span)
    return apply("neg", (arg,), table, span)


def reduce(operator: str, axes: tuple[str, ...], arg: Expr, table: AxisTable, span: Span) -> Reduce:
    """A reduction over axes that `arg` carries."""
    kept = tuple(axis for axis in arg.type.axes if axis not in axes)
    known = REDUCTIONS[operator].interval(arg.type.range, None)
    return Reduce(operator, axes, arg, Type(kept, Dtype.F32, known), span=span)


def index(axis: str, table: AxisTable, span: Span) -> Index:
    """0, 1, 2, ... along an atomic axis."""
    most = table.atomic[axis].at_most
    largest = float(most - 1) if most is not None else math.inf
    return Index(axis, Type((axis,), Dtype.F32, Interval(0.0, largest)), span=span)


def cast(dtype: Dtype, arg: Expr, span: Span) -> Cast:
    """Round to a dtype."""
    return Cast(
        dtype, arg, Type(arg.type.axes, dtype, iv.rounded(arg.type.range, dtype)), span=span
    )


def shift(axis: str, window: Expr, value: Expr, span: Span) -> Shift:
    """Drop the oldest column of a window, append `value`."""
    known = iv.join(window.type.range, value.type.range)
    return Shift(axis, window, value, Type(window.type.axes, Dtype.F32, known), span=span)


def rename(source: str, target: str, arg: Expr, table: AxisTable, span: Span) -> Rename:
    """The same values along another axis."""
    axes = table.ordered(target if axis == source else axis for axis in arg.type.axes)
    return Rename(source, target, arg, Type(axes, arg.type.dtype, arg.type.range), span=span)


def unpack(packed: Packed, arg: Expr, table: AxisTable, span: Span) -> list[Unpack]:
    """Every field of a packed axis, in order."""
    others = tuple(axis for axis in arg.type.axes if axis != packed.name)
    return [
        Unpack(
            packed.name,
            name,
            arg,
            Type(table.ordered((*others, *value_axes(dim))), arg.type.dtype, arg.type.range),
            span=span,
        )
        for name, dim in packed.fields
    ]
