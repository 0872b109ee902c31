"""Upper bounds on sum[axis](x * x): from normalisations, stated facts and ranges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import frozen

from gdsl.ir.expr import Apply, Cast, Const, Expr, Reduce, Ref
from gdsl.ir.kernel import Assume, Kernel, Let
from gdsl.ir.node import Symbol

# Rounding to bf16 moves a value by at most 2^-9 of itself, its square by twice that.
_CAST = (1 + 2.0**-8) ** 2


@frozen
class Facts:
    """What a kernel states and defines: `assume` bounds on squared norms, and its `Let`s."""

    bounds: tuple[tuple[Expr, str, float], ...]
    """(x, axis, bound) for each `assume sum[axis](x * x) <= bound`."""
    definitions: Mapping[Symbol, Expr]

    def value(self, expr: Expr) -> Expr:
        """Return what a name stands for, the expression itself if it is not a defined name."""
        while isinstance(expr, Ref) and expr.symbol in self.definitions:
            expr = self.definitions[expr.symbol]
        return expr


def facts_of(kernel: Kernel) -> Facts:
    """Collect the facts of a kernel."""
    definitions = {s.target: s.value for s in kernel.body if isinstance(s, Let)}
    return Facts(tuple(_bounds(kernel.assumes)), definitions)


def square_norm(expr: Expr, axis: str, facts: Facts) -> float:
    """Return a bound on sum[axis](expr * expr), infinity when none is known."""
    best = min(
        (bound for known, over, bound in facts.bounds if over == axis and known == expr),
        default=math.inf,
    )
    return min(best, _structural(expr, axis, facts))


def _structural(expr: Expr, axis: str, facts: Facts) -> float:
    match expr:
        case Ref(symbol=symbol) if symbol in facts.definitions:
            return square_norm(facts.definitions[symbol], axis, facts)
        case Apply(operator="neg", args=(arg,)):
            return square_norm(arg, axis, facts)
        case Cast(arg=arg):
            return _CAST * square_norm(arg, axis, facts)
        case Apply(operator="mul", args=(left, right)):
            if _normalises(left, right, axis, facts) or _normalises(right, left, axis, facts):
                return 1.0
            return min(_scaled(left, right, axis, facts), _scaled(right, left, axis, facts))
        case Apply(operator="div", args=(left, right)):
            if _divides(left, right, axis, facts):
                return 1.0
            smallest = max(right.type.range.lo, -right.type.range.hi)
            return square_norm(left, axis, facts) / smallest**2 if smallest > 0 else math.inf
        case _:
            return math.inf


def _scaled(vector: Expr, factor: Expr, axis: str, facts: Facts) -> float:
    """The bound of vector * factor from the largest size of the factor."""
    if axis not in vector.type.axes:
        return math.inf
    norm = square_norm(vector, axis, facts)
    largest = max(abs(factor.type.range.lo), abs(factor.type.range.hi))
    return norm * largest**2 if norm < math.inf else math.inf


def _normalises(vector: Expr, factor: Expr, axis: str, facts: Facts) -> bool:
    """Whether `factor` is 1 / |vector| or less: rsqrt(sum(x x) + eps), rsqrt(max(sum, eps))."""
    match facts.value(factor):
        case Apply(operator="rsqrt", args=(arg,)):
            return _at_least_square(arg, vector, axis, facts)
        case Apply(operator="div", args=(Const(value=1.0), root)):
            return _divides(vector, root, axis, facts)
        case _:
            return False


def _divides(vector: Expr, divisor: Expr, axis: str, facts: Facts) -> bool:
    """Whether `divisor` is |vector| or more: sqrt(sum(x x) + eps), max(sqrt(sum), eps), ..."""
    match facts.value(divisor):
        case Apply(operator="sqrt", args=(arg,)):
            return _at_least_square(arg, vector, axis, facts)
        case Apply(operator="max", args=args):
            return any(_divides(vector, arg, axis, facts) for arg in args)
        case Apply(operator="add", args=(left, right)):
            return _with_positive(left, right, lambda e: _divides(vector, e, axis, facts))
        case _:
            return False


def _at_least_square(expr: Expr, vector: Expr, axis: str, facts: Facts) -> bool:
    """Whether `expr` is sum[axis](vector^2) or more."""
    match facts.value(expr):
        case Reduce(operator="sum", axes=axes, arg=arg) if axes == (axis,):
            return _squared(arg) == vector
        case Apply(operator="add", args=(left, right)):
            return _with_positive(left, right, lambda e: _at_least_square(e, vector, axis, facts))
        case Apply(operator="max", args=args):
            return any(_at_least_square(arg, vector, axis, facts) for arg in args)
        case _:
            return False


def _with_positive(left: Expr, right: Expr, holds: Callable[[Expr], bool]) -> bool:
    """Whether the test holds for one summand and the other is never negative."""
    return (holds(left) and right.type.range.lo >= 0) or (holds(right) and left.type.range.lo >= 0)


def _squared(expr: Expr) -> Expr | None:
    """Return x of x * x or x ** 2."""
    match expr:
        case Apply(operator="mul", args=(left, right)) if left == right:
            return left
        case Apply(operator="pow", args=(base, Const(value=2.0))):
            return base
        case _:
            return None


def _bounds(assumes: Sequence[Assume]) -> Iterator[tuple[Expr, str, float]]:
    for assume in assumes:
        match assume.condition:
            case Apply(operator="le" | "lt", args=(Reduce() as total, Const(value=bound))):
                yield from _bound(total, bound)
            case Apply(operator="ge" | "gt", args=(Const(value=bound), Reduce() as total)):
                yield from _bound(total, bound)
            case _:
                pass


def _bound(total: Reduce, bound: float) -> Iterator[tuple[Expr, str, float]]:
    vector = _squared(total.arg)
    if total.operator == "sum" and len(total.axes) == 1 and vector is not None:
        yield vector, total.axes[0], bound
