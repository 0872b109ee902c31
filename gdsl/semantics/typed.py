"""Typed expressions from typed parts: axes, dtype and range of each node.

Nothing here reports; callers check what a user can get wrong before they build.
"""

from __future__ import annotations

from collections.abc import Sequence

from gdsl.ir import interval as iv
from gdsl.ir import ranges
from gdsl.ir.dims import Packed, Product
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
        return _product_size(table.composites[axis], table, span)
    if axis in table.packed:
        fields = [_dim_size(dim, table, span) for _, dim in table.packed[axis].fields]
        total = fields[0]
        for term in fields[1:]:
            total = apply("add", (total, term), table, span)
        return total
    most = table.atomic[axis].at_most
    largest = float(most) if most is not None else float("inf")
    return Size(axis, Type(range=Interval(1.0, largest)), span=span)


def _product_size(product: Product, table: AxisTable, span: Span) -> Expr:
    factors = [_dim_size(part, table, span) for part in product.parts]
    total = factors[0]
    for factor in factors[1:]:
        total = apply("mul", (total, factor), table, span)
    return total


def _dim_size(dim: object, table: AxisTable, span: Span) -> Expr:
    match dim:
        case Product():
            return _product_size(dim, table, span)
        case Packed(name=name):
            return size(name, table, span)
        case _:
            axis = getattr(dim, "axis", None)
            return constant(1.0, span) if axis is None else size(axis, table, span)


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
    largest = float(most - 1) if most is not None else float("inf")
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
