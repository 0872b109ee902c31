"""The operators of the language: what each one computes, and the range of what it can give.

This table is the one place where `exp`, `softplus` or `sum` get a meaning. Everything that
evaluates (the interpreter, the canonical evaluator, the plan evaluator) uses it, so it is tested
against mpmath and not against another part of this project.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from gdsl.ir import interval as iv
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
    """A reduction over axes: `evaluate(array, axes)`, and `interval(range, number of elements)`."""

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


_SIGMOID_RANGE = iv.rising(_scalar(sigmoid), lowest=0.0, highest=1.0)
_SOFTPLUS_RANGE = iv.rising(_scalar(softplus), lowest=0.0)
_TANH_RANGE = iv.rising(_scalar(np.tanh), lowest=-1.0, highest=1.0)

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for operator in (
        Operator("add", 2, _quiet(np.add), iv.add),
        Operator("sub", 2, _quiet(np.subtract), iv.sub),
        Operator("mul", 2, _quiet(np.multiply), iv.mul),
        Operator("div", 2, _quiet(np.divide), iv.div),
        Operator("pow", 2, _quiet(np.power), iv.pow_),
        Operator("neg", 1, _quiet(np.negative), iv.neg),
        Operator("lt", 2, _quiet(np.less), iv.lt),
        Operator("le", 2, _quiet(np.less_equal), iv.le),
        Operator("gt", 2, _quiet(np.greater), iv.gt),
        Operator("ge", 2, _quiet(np.greater_equal), iv.ge),
        Operator("eq", 2, _quiet(np.equal), iv.eq),
        Operator("ne", 2, _quiet(np.not_equal), iv.ne),
        Operator("exp", 1, _quiet(np.exp), iv.exp),
        Operator("log", 1, _quiet(np.log), iv.log),
        Operator("sigmoid", 1, _quiet(sigmoid), _SIGMOID_RANGE, flops=4),
        Operator("softplus", 1, _quiet(softplus), _SOFTPLUS_RANGE, flops=5),
        Operator("tanh", 1, _quiet(np.tanh), _TANH_RANGE),
        Operator("sqrt", 1, _quiet(np.sqrt), iv.sqrt),
        Operator("rsqrt", 1, _quiet(rsqrt), iv.rsqrt, flops=2),
        Operator("abs", 1, _quiet(np.abs), iv.abs_),
        Operator("min", 2, _quiet(np.minimum), iv.min_),
        Operator("max", 2, _quiet(np.maximum), iv.max_),
        Operator("where", 3, _quiet(np.where), iv.where),
    )
}

REDUCTIONS: dict[str, Reduction] = {
    reduction.name: reduction
    for reduction in (
        Reduction("sum", lambda x, axes: np.asarray(np.sum(x, axes)), iv.sum_of),
        Reduction("mean", lambda x, axes: np.asarray(np.mean(x, axes)), iv.mean_of),
        Reduction("max", lambda x, axes: np.asarray(np.max(x, axes)), iv.extreme_of),
        Reduction("min", lambda x, axes: np.asarray(np.min(x, axes)), iv.extreme_of),
    )
}
