"""ALU operators: the tokens of `op`, `op0`, `op1`, `reduce_op`, `cmp_op`.

Source: the operator table of the NKI shared reference (0.6); the engine column was last printed in
the 2.26.1 documentation and never contradicted. `meaning` is the numpy meaning: arithmetic
operators take and give float32 arrays, bit operators take and give equal integer arrays. Where the
documentation is silent (NaN in a comparison, the sign of zero) it is numpy's behaviour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from attrs import frozen

Array = npt.NDArray[Any]
Group = Literal["arithmetic", "bitvec"]
Unit = Literal["vector", "gpsimd", "scalar"]


@frozen
class Operator:
    """One ALU operator. A unary operator ignores its second operand."""

    name: str
    group: Group
    arity: int
    engines: frozenset[Unit]
    meaning: Callable[..., Array]
    reduction: bool = False
    """Whether `tensor_reduce` may fold with it."""
    identity: float | None = None
    """What folding starts from; None where it starts from the first element or cannot fold."""
    generation: int = 2
    """First generation that has it."""


def _truth(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, y: function(x, y).astype(np.float32)


def _logical(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, y: function(x != 0, y != 0).astype(np.float32)


def _logical_right_shift(x: Array, y: Array) -> Array:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    shifted = np.right_shift(x.view(unsigned), y.astype(unsigned))
    return np.asarray(shifted.view(x.dtype))


def _rsqrt(x: Array, _: object) -> Array:
    return np.asarray(1 / np.sqrt(x), dtype=np.float32)


def _reciprocal(x: Array, _: object) -> Array:
    return np.asarray(np.float32(1) / x, dtype=np.float32)


def _abs_max(x: Array, y: Array) -> Array:
    return np.asarray(np.where(np.abs(x) > np.abs(y), x, y))


def _abs_min(x: Array, y: Array) -> Array:
    return np.asarray(np.where(np.abs(x) < np.abs(y), x, y))


def _power(x: Array, y: Array) -> Array:
    # numpy has other code for strided operands, which rounds otherwise: always dense ones.
    base, exponent = (np.copy(operand, order="C") for operand in np.broadcast_arrays(x, y))
    return np.asarray(np.power(base, exponent), dtype=np.float32)


_V: frozenset[Unit] = frozenset({"vector"})
_G: frozenset[Unit] = frozenset({"gpsimd"})
_VS: frozenset[Unit] = frozenset({"vector", "scalar"})
_GS: frozenset[Unit] = frozenset({"gpsimd", "scalar"})
_VGS: frozenset[Unit] = frozenset({"vector", "gpsimd", "scalar"})
_INF = float("inf")

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for operator in (
        Operator("add", "arithmetic", 2, _VGS, np.add, True, 0.0),
        Operator("subtract", "arithmetic", 2, _V, np.subtract, True, 0.0),
        Operator("multiply", "arithmetic", 2, _VGS, np.multiply, True, 1.0),
        Operator("maximum", "arithmetic", 2, _V, np.maximum, True, -_INF),
        Operator("minimum", "arithmetic", 2, _V, np.minimum, True, _INF),
        Operator("equal", "arithmetic", 2, _V, _truth(np.equal)),
        Operator("not_equal", "arithmetic", 2, _V, _truth(np.not_equal)),
        Operator("less", "arithmetic", 2, _V, _truth(np.less)),
        Operator("less_equal", "arithmetic", 2, _V, _truth(np.less_equal)),
        Operator("greater", "arithmetic", 2, _V, _truth(np.greater)),
        Operator("greater_equal", "arithmetic", 2, _V, _truth(np.greater_equal)),
        Operator("logical_and", "arithmetic", 2, _V, _logical(np.logical_and), True),
        Operator("logical_or", "arithmetic", 2, _V, _logical(np.logical_or), True),
        Operator("logical_xor", "arithmetic", 2, _V, _logical(np.logical_xor), True),
        Operator("power", "arithmetic", 2, _G, _power),
        Operator(
            "abs_max",
            "arithmetic",
            2,
            _V,
            _abs_max,
            identity=0.0,
            generation=4,
        ),
        Operator(
            "abs_min",
            "arithmetic",
            2,
            _V,
            _abs_min,
            identity=_INF,
            generation=4,
        ),
        Operator("logical_not", "arithmetic", 1, _V, lambda x, _: (x == 0).astype(np.float32)),
        Operator("abs", "arithmetic", 1, _VS, lambda x, _: np.abs(x)),
        Operator("square", "arithmetic", 1, _V, lambda x, _: x * x, generation=4),
        Operator("relu", "arithmetic", 1, _V, lambda x, _: np.maximum(x, 0), generation=4),
        Operator("rsqrt", "arithmetic", 1, _GS, _rsqrt),
        Operator("reciprocal", "arithmetic", 1, _VS, _reciprocal),
        Operator("bitwise_and", "bitvec", 2, _V, np.bitwise_and, True),
        Operator("bitwise_or", "bitvec", 2, _V, np.bitwise_or, True),
        Operator("bitwise_xor", "bitvec", 2, _V, np.bitwise_xor, True),
        Operator("invert", "bitvec", 1, _V, lambda x, _: np.invert(x)),
        Operator("left_shift", "bitvec", 2, _V, np.left_shift),
        Operator("right_shift", "bitvec", 2, _V, _logical_right_shift),
    )
}

OPERATOR_ALIASES: dict[str, str] = {"max": "maximum", "min": "minimum"}
"""`nl.max` and `nl.min` are taken as reduction tokens; the canonical names are the long ones."""

TOKENS = frozenset({"bypass", "average"})
"""Tokens that only one instruction each understands (`activate2`, `tensor_partition_reduce`)."""

ARITHMETIC = frozenset(name for name, op in OPERATORS.items() if op.group == "arithmetic")
BITVEC = frozenset(name for name, op in OPERATORS.items() if op.group == "bitvec")
BINARY = frozenset(name for name, op in OPERATORS.items() if op.arity == 2)
UNARY = frozenset(name for name, op in OPERATORS.items() if op.arity == 1)
REDUCTIONS = frozenset(name for name, op in OPERATORS.items() if op.reduction)
COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})


def engine_operators(engine: Unit) -> frozenset[str]:
    """Names of the operators that `engine` has."""
    return frozenset(name for name, op in OPERATORS.items() if engine in op.engines)
