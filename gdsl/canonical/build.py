"""Typed constructors of expressions: axes are the union of the arguments', ranges follow.

Nothing here simplifies beyond dropping a factor 1 and cancelling a double negation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from attrs import evolve, frozen

from gdsl.ir import ranges
from gdsl.ir.expr import Apply, Cast, Const, Expr, Index, Reduce, Ref, Rename, Shift, Size, Unpack
from gdsl.ir.interval import rounded
from gdsl.ir.operators import OPERATORS, REDUCTIONS
from gdsl.ir.types import Interval, Type
from gdsl.source import Span

_SIZES = Interval(1.0, float(ranges.LONGEST_AXIS))


@frozen
class Builder:
    """Builds expressions of one kernel; `order` is its axes in declaration order."""

    order: tuple[str, ...]

    def axes(self, names: Iterable[str]) -> tuple[str, ...]:
        """Sort axis names into declaration order (names unknown to it last, by name)."""
        place = {name: i for i, name in enumerate(self.order)}
        return tuple(sorted(set(names), key=lambda name: (place.get(name, len(place)), name)))

    def apply(self, operator: str, *args: Expr, span: Span | None = None) -> Expr:
        """Return `operator` of the arguments, typed."""
        intervals = [arg.type.range for arg in args]
        if operator == "mul" and args[0] == args[1]:
            interval = ranges.square(intervals[0])
        else:
            interval = OPERATORS[operator].interval(*intervals)
        axes = self.axes(axis for arg in args for axis in arg.type.axes)
        return Apply(operator, args, Type(axes, range=interval), span=span)

    def number(self, value: float) -> Expr:
        """Return a constant."""
        return Const(value, Type(range=Interval(value, value)))

    def size(self, axis: str) -> Expr:
        """Return the size of an axis as a number."""
        return Size(axis, Type(range=_SIZES))

    def product(self, factors: Sequence[Expr], span: Span | None = None) -> Expr:
        """Return the product of the factors in order; 1 for none."""
        kept = [factor for factor in factors if not is_number(factor, 1.0)]
        if not kept:
            return self.number(1.0)
        result = kept[0]
        for factor in kept[1:]:
            result = self.apply("mul", result, factor, span=span)
        return result

    def negate(self, expr: Expr) -> Expr:
        """Return -expr."""
        match expr:
            case Apply(operator="neg", args=(arg,)):
                return arg
            case Const(value=value):
                return self.number(-value)
            case Apply(operator="sub", args=(left, right)):
                return self.apply("sub", right, left, span=expr.span)
            case _:
                return self.apply("neg", expr, span=expr.span)

    def total(self, terms: Sequence[tuple[bool, Expr]]) -> Expr:
        """Return the sum of (negative, expression) terms; 0 for none."""
        if not terms:
            return self.number(0.0)
        # Begin with a positive term where there is one: `v - r` and not `-r + v`.
        ordered = sorted(terms, key=lambda term: term[0]) if terms[0][0] else list(terms)
        negative, result = ordered[0]
        if negative:
            result = self.negate(result)
        for negative, term in ordered[1:]:
            result = self.apply("sub" if negative else "add", result, term, span=term.span)
        return result

    def reduce_sum(self, axis: str, arg: Expr, span: Span | None = None) -> Expr:
        """Return sum[axis](arg); times the size where `arg` does not carry the axis."""
        if axis not in arg.type.axes:
            return self.product((self.size(axis), arg), span)
        axes = tuple(name for name in arg.type.axes if name != axis)
        interval = REDUCTIONS["sum"].interval(arg.type.range, None)
        return Reduce("sum", (axis,), arg, Type(axes, range=interval), span=span)

    def typed(self, expr: Expr) -> Expr:
        """Return a node with its type computed from its arguments.

        `Unpack` and `Shift` keep theirs: only the kernel knows the fields of a packed axis.
        """
        match expr:
            case Apply(operator=operator, args=args):
                return self.apply(operator, *args, span=expr.span)
            case Reduce(operator=operator, axes=summed, arg=arg):
                axes = tuple(name for name in arg.type.axes if name not in summed)
                interval = REDUCTIONS[operator].interval(arg.type.range, None)
                return evolve(expr, type=Type(axes, range=interval))
            case Cast(dtype=dtype, arg=arg):
                kind = Type(arg.type.axes, dtype, rounded(arg.type.range, dtype))
                return evolve(expr, type=kind)
            case Rename(source=source, target=target, arg=arg):
                renamed = (target if axis == source else axis for axis in arg.type.axes)
                return evolve(expr, type=Type(self.axes(renamed), range=arg.type.range))
            case Ref() | Const() | Size() | Index() | Shift() | Unpack():
                return expr
            case _:
                assert_never(expr)


def is_number(expr: Expr, value: float) -> bool:
    """Return whether `expr` is the constant `value`."""
    return isinstance(expr, Const) and expr.value == value
