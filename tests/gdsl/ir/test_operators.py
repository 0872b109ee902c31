"""The operators against mpmath at 50 digits: values over the whole range of both float types."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from gdsl.ir.interval import contains
from gdsl.ir.operators import OPERATORS, REDUCTIONS
from gdsl.ir.types import ANY

mpmath.mp.dps = 50

REFERENCE: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "tanh": mpmath.tanh,
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "neg": lambda x: -x,
    "abs": abs,
}
POSITIVE_ONLY = {"log", "sqrt", "rsqrt"}
FLOATS = [np.float32, np.float64]


def arguments(name: str, dtype: type[np.floating[Any]]) -> np.ndarray[Any, Any]:
    magnitudes = np.concatenate([np.geomspace(1e-30, 700, 200), [15, 19.9, 20, 20.1, 88, 89, 100]])
    signed = magnitudes if name in POSITIVE_ONLY else np.concatenate([-magnitudes, magnitudes])
    return signed.astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", REFERENCE)
def test_elementary_function_is_exact_to_a_few_ulps(
    name: str, dtype: type[np.floating[Any]]
) -> None:
    x = arguments(name, dtype)
    y = OPERATORS[name].evaluate(x)
    assert y.dtype == dtype
    limits = np.finfo(dtype)
    for argument, result in zip(x, y, strict=True):
        true = REFERENCE[name](mpmath.mpf(float(argument)))
        if abs(true) > limits.max:
            assert math.isinf(result)
        elif abs(true) < limits.tiny:
            assert abs(float(result) - float(true)) <= float(limits.smallest_subnormal) * 4
        else:
            assert abs(mpmath.mpf(float(result)) / true - 1) <= 8 * float(limits.eps), argument


@pytest.mark.parametrize("dtype", FLOATS)
def test_silu_by_composition_is_finite_at_both_ends(dtype: type[np.floating[Any]]) -> None:
    x = np.array([-1000, -88, -15, 0, 15, 88, 1000], dtype)
    silu = OPERATORS["mul"].evaluate(x, OPERATORS["sigmoid"].evaluate(x))
    np.testing.assert_allclose(
        silu, [0, -88 * math.exp(-88), -15 / (1 + math.exp(15)), 0, 15, 88, 1000], rtol=1e-6
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "argument", "right"),
    [
        ("sigmoid", -math.inf, 0.0),
        ("sigmoid", math.inf, 1.0),
        ("softplus", -math.inf, 0.0),
        ("softplus", math.inf, math.inf),
        ("exp", -math.inf, 0.0),
        ("exp", -0.0, 1.0),
        ("log", 0.0, -math.inf),
        ("log", -1.0, math.nan),
        ("rsqrt", 0.0, math.inf),
        ("rsqrt", -0.0, math.inf),
        ("rsqrt", -1.0, math.nan),
    ],
)
def test_ends_and_poles(
    name: str, argument: float, right: float, dtype: type[np.floating[Any]]
) -> None:
    np.testing.assert_equal(float(OPERATORS[name].evaluate(np.array(argument, dtype))), right)


@pytest.mark.parametrize("name", OPERATORS)
def test_nan_goes_through_except_in_comparisons(name: str) -> None:
    operator = OPERATORS[name]
    nan = np.array(np.nan)
    if name == "where":
        assert np.isnan(operator.evaluate(np.array(True), nan, np.array(1.0)))
        assert operator.evaluate(np.array(False), nan, np.array(1.0)) == 1
        return
    result = operator.evaluate(*[nan] * operator.arity)
    if result.dtype == np.bool_:
        assert bool(result) is (name == "ne")
    else:
        assert np.isnan(result)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OPERATORS)
def test_dtype_is_kept(name: str, dtype: type[np.floating[Any]]) -> None:
    operator = OPERATORS[name]
    args = [np.full((2, 3), 0.5, dtype)] * operator.arity
    if name == "where":
        args[0] = np.ones((2, 3), np.bool_)
    result = operator.evaluate(*args)
    assert result.shape == (2, 3)
    assert result.dtype in (np.dtype(dtype), np.dtype(np.bool_))


@pytest.mark.parametrize(
    ("name", "right"),
    [("sum", [6.0, 15.0]), ("mean", [2.0, 5.0]), ("max", [3.0, 6.0]), ("min", [1.0, 4.0])],
)
def test_reductions(name: str, right: list[float]) -> None:
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    np.testing.assert_array_equal(REDUCTIONS[name].evaluate(x, (1,)), right)
    assert REDUCTIONS[name].evaluate(x, (0, 1)).shape == ()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "right"), [("sum", 0.0), ("mean", math.nan), ("max", -math.inf), ("min", math.inf)]
)
def test_reductions_of_nothing(name: str, right: float, dtype: type[np.floating[Any]]) -> None:
    result = REDUCTIONS[name].evaluate(np.zeros((2, 0), dtype), (1,))
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, [right, right])
    assert contains(REDUCTIONS[name].interval(ANY, 0), right)
