"""The operators of the language: what each one computes, and the range of what it can give.

This table is the one place where `exp`, `softplus` or `sum` get a meaning. Everything that
evaluates (the interpreter, the canonical evaluator, the plan evaluator) uses it, so it is tested
against mpmath and not against another part of this project.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from gdsl.ir import ranges
from gdsl.ir.types import Interval

Array = NDArray[Any]


@frozen
class Operator:
    """An elementwise operator.

    `evaluate` takes `arity` arrays of one float dtype (`where` takes a boolean first) that
    broadcast by numpy's rules and keeps their dtype; comparisons return booleans. It never warns.
    `flops` counts arithmetic operations for one element, an elementary function as one.
    """

    name: str
    arity: int
    evaluate: Callable[..., Array]
    interval: Callable[..., Interval]
    flops: int = 1


@frozen
class Reduction:
    """A reduction over axes: `evaluate(array, axes)`, and `interval(range, number of elements)`.

    Of no elements, `sum` is 0, `max` -inf, `min` +inf and `mean` NaN.
    """

    name: str
    evaluate: Callable[[Array, tuple[int, ...]], Array]
    interval: Callable[[Interval, int | None], Interval]


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), through e^-|x| so that neither end overflows."""
    e = np.exp(-np.abs(x))
    top = np.where(x >= 0, np.ones_like(e), e)
    return np.asarray(top / (1 + e))


def softplus(x: Array) -> Array:
    """log(1 + e^x) = max(x, 0) + log1p(e^-|x|): exact to rounding for x > 88 and x < -15."""
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x); adding +0 first makes the reciprocal root of -0 +inf like that of +0."""
    return np.asarray(1 / np.sqrt(x + x.dtype.type(0)))


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    """Sum divided by the number of elements; of none it is NaN without a warning."""
    return np.asarray(np.sum(x, axes) / x.dtype.type(np.prod([x.shape[i] for i in axes])))


def _scalar(function: Callable[[Array], Array]) -> Callable[[float], float]:
    def call(x: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(np.asarray(x, np.float64)))

    return call


def _quiet(function: Callable[..., Array]) -> Callable[..., Array]:
    """Infinities and NaN are values here, not warnings; `--nan-origin` finds where they begin."""

    def evaluate(*args: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*args))

    return evaluate


_SIGMOID_RANGE = ranges.rising(_scalar(sigmoid), lowest=0.0, highest=1.0)
_SOFTPLUS_RANGE = ranges.rising(_scalar(softplus), lowest=0.0)
_TANH_RANGE = ranges.rising(_scalar(np.tanh), lowest=-1.0, highest=1.0)

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for operator in (
        Operator("add", 2, _quiet(np.add), ranges.add),
        Operator("sub", 2, _quiet(np.subtract), ranges.sub),
        Operator("mul", 2, _quiet(np.multiply), ranges.mul),
        Operator("div", 2, _quiet(np.divide), ranges.div),
        Operator("pow", 2, _quiet(np.power), ranges.pow_),
        Operator("neg", 1, _quiet(np.negative), ranges.neg),
        Operator("lt", 2, _quiet(np.less), ranges.lt),
        Operator("le", 2, _quiet(np.less_equal), ranges.le),
        Operator("gt", 2, _quiet(np.greater), ranges.gt),
        Operator("ge", 2, _quiet(np.greater_equal), ranges.ge),
        Operator("eq", 2, _quiet(np.equal), ranges.eq),
        Operator("ne", 2, _quiet(np.not_equal), ranges.ne),
        Operator("exp", 1, _quiet(np.exp), ranges.exp),
        Operator("log", 1, _quiet(np.log), ranges.log),
        Operator("sigmoid", 1, _quiet(sigmoid), _SIGMOID_RANGE, flops=4),
        Operator("softplus", 1, _quiet(softplus), _SOFTPLUS_RANGE, flops=5),
        Operator("tanh", 1, _quiet(np.tanh), _TANH_RANGE),
        Operator("sqrt", 1, _quiet(np.sqrt), ranges.sqrt),
        Operator("rsqrt", 1, _quiet(rsqrt), ranges.rsqrt, flops=2),
        Operator("abs", 1, _quiet(np.abs), ranges.abs_),
        Operator("min", 2, _quiet(np.minimum), ranges.min_),
        Operator("max", 2, _quiet(np.maximum), ranges.max_),
        Operator("where", 3, _quiet(np.where), ranges.where),
    )
}

REDUCTIONS: dict[str, Reduction] = {
    reduction.name: reduction
    for reduction in (
        Reduction("sum", _quiet(np.sum), ranges.sum_of),
        Reduction("mean", _quiet(_mean), ranges.mean_of),
        Reduction("max", _quiet(partial(np.max, initial=-np.inf)), ranges.largest_of),
        Reduction("min", _quiet(partial(np.min, initial=np.inf)), ranges.smallest_of),
    )
}
