"""ScalarE functions against mpmath, and their documented ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from backends.isa.activations import ACTIVATIONS

_PHI: Callable[[Any], Any] = mpmath.ncdf


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _derivative(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: mpmath.diff(function, x)


def _gelu(x: Any) -> Any:
    return x * _PHI(x)


def _silu(x: Any) -> Any:
    return x * _sigmoid(x)


def _gelu_sigmoid(x: Any) -> Any:
    return x * _sigmoid(mpmath.mpf("1.702") * x)


def _gelu_tanh(x: Any) -> Any:
    inner = mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)
    return x / 2 * (1 + mpmath.tanh(inner))


def _softplus(x: Any) -> Any:
    return mpmath.log1p(mpmath.exp(x))


EXACT: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: x,
    "square": lambda x: x * x,
    "sigmoid": _sigmoid,
    "relu": lambda x: max(x, 0),
    "gelu": _gelu,
    "gelu_dx": _derivative(_gelu),
    "gelu_apprx_tanh": _gelu_tanh,
    "gelu_apprx_sigmoid": _gelu_sigmoid,
    "gelu_apprx_sigmoid_dx": _derivative(_gelu_sigmoid),
    "silu": _silu,
    "silu_dx": _derivative(_silu),
    "tanh": mpmath.tanh,
    "softplus": _softplus,
    "mish": lambda x: x * mpmath.tanh(_softplus(x)),
    "erf": mpmath.erf,
    "erf_dx": _derivative(mpmath.erf),
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sin": mpmath.sin,
    "arctan": mpmath.atan,
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sign": mpmath.sign,
    "abs": abs,
}
POSITIVE = frozenset({"log", "sqrt", "rsqrt", "reciprocal"})
POINTS = (-30.0, -6.0, -2.5, -1.0, -0.1, 0.0, 0.1, 1.0, 1.5, 2.5, 6.0, 30.0)


def test_every_function_has_an_exact_meaning_here() -> None:
    assert set(EXACT) == set(ACTIVATIONS)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_values(name: str) -> None:
    points = [x for x in POINTS if name not in POSITIVE or x > 0]
    found = ACTIVATIONS[name].meaning(np.array(points, dtype=np.float32))
    assert found.dtype == np.float32
    exact = [float(EXACT[name](mpmath.mpf(float(np.float32(x))))) for x in points]
    # fp32 evaluation; cancellation near the zero crossings of derivatives is absolute.
    np.testing.assert_allclose(found, exact, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "silu", "mish", "tanh", "gelu"])
def test_no_overflow_at_the_ends(name: str) -> None:
    with np.errstate(over="raise", invalid="raise"):
        found = ACTIVATIONS[name].meaning(np.array([-200.0, 200.0], dtype=np.float32))
    assert np.isfinite(found).all()


def test_exp_of_minus_infinity_and_of_zero_are_exact() -> None:
    found = ACTIVATIONS["exp"].meaning(np.array([-np.inf, 0.0], dtype=np.float32))
    assert found.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("log", 2.0**-64, 2.0**64),
        ("sqrt", 2.0**-116, 2.0**118),
        ("rsqrt", 2.0**-87, 2.0**97),
        ("sin", -np.pi, np.pi),
        ("arctan", -np.pi / 2, np.pi / 2),
    ],
)
def test_ranges(name: str, low: float, high: float) -> None:
    assert ACTIVATIONS[name].valid == (low, high)


def test_reciprocal_is_bounded_in_magnitude() -> None:
    assert ACTIVATIONS["reciprocal"].valid_magnitude == (2.0**-42, 2.0**42)
