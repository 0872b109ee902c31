"""Functions of ScalarE (`nisa.activation`, `nisa.activate2`): numpy meaning and valid input range.

Names and ranges are from the NKI shared reference (0.6). The documentation prints no formulas: the
meanings are the conventional definitions, evaluated in float32. Outside its valid range a function
gives garbage on the machine; what the simulator does there is its own option.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

Array = npt.NDArray[Any]
ALL = (-math.inf, math.inf)


@frozen
class Activation:
    """One function of ScalarE; `meaning` maps float32 to float32 arrays."""

    name: str
    meaning: Callable[[Array], Array]
    valid: tuple[float, float] = ALL
    """Inputs it is accurate for."""
    valid_magnitude: tuple[float, float] | None = None
    """Inputs it is accurate for, on |x|, where the range has two branches."""


_erf_of_float = np.frompyfunc(math.erf, 1, 1)
_SQRT_HALF = np.float32(math.sqrt(0.5))
_TWO_OVER_SQRT_PI = np.float32(2.0 / math.sqrt(math.pi))
_SQRT_TWO_OVER_PI = np.float32(math.sqrt(2.0 / math.pi))
_INV_SQRT_TWO_PI = np.float32(1.0 / math.sqrt(2.0 * math.pi))
_GELU_SIGMOID = np.float32(1.702)
_GELU_CUBIC = np.float32(0.044715)


def _erf(x: Array) -> Array:
    return np.asarray(_erf_of_float(x), dtype=np.float32)


def _sigmoid(x: Array) -> Array:
    # exp of a non-positive number on both sides, so that it never overflows.
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, np.float32(1), e) / (np.float32(1) + e))


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, np.float32(0)) + np.log1p(np.exp(-np.abs(x))))


def _gelu(x: Array) -> Array:
    return np.asarray(np.float32(0.5) * x * (np.float32(1) + _erf(x * _SQRT_HALF)))


def _gelu_dx(x: Array) -> Array:
    density = _INV_SQRT_TWO_PI * np.exp(np.float32(-0.5) * x * x)
    cumulative = np.float32(0.5) * (np.float32(1) + _erf(x * _SQRT_HALF))
    return cumulative + x * density


def _gelu_tanh(x: Array) -> Array:
    inner: Array = _SQRT_TWO_OVER_PI * (x + _GELU_CUBIC * x * x * x)
    return np.asarray(np.float32(0.5) * x * (np.float32(1) + np.tanh(inner)))


def _gelu_sigmoid(x: Array) -> Array:
    return x * _sigmoid(_GELU_SIGMOID * x)


def _gelu_sigmoid_dx(x: Array) -> Array:
    s = _sigmoid(_GELU_SIGMOID * x)
    return s + _GELU_SIGMOID * x * s * (np.float32(1) - s)


def _silu(x: Array) -> Array:
    return x * _sigmoid(x)


def _silu_dx(x: Array) -> Array:
    s = _sigmoid(x)
    return np.asarray(s * (np.float32(1) + x * (np.float32(1) - s)))


def _rsqrt(x: Array) -> Array:
    return np.asarray(np.float32(1) / np.sqrt(x))


ACTIVATIONS: dict[str, Activation] = {
    activation.name: activation
    for activation in (
        Activation("copy", lambda x: x),
        Activation("square", np.square),
        Activation("sigmoid", _sigmoid),
        Activation("relu", lambda x: np.maximum(x, np.float32(0))),
        Activation("gelu", _gelu),
        Activation("gelu_dx", _gelu_dx),
        Activation("gelu_apprx_tanh", _gelu_tanh),
        Activation("gelu_apprx_sigmoid", _gelu_sigmoid),
        Activation("gelu_apprx_sigmoid_dx", _gelu_sigmoid_dx),
        Activation("silu", _silu),
        Activation("silu_dx", _silu_dx),
        Activation("tanh", np.tanh),
        Activation("softplus", _softplus),
        Activation("mish", lambda x: x * np.tanh(_softplus(x))),
        Activation("erf", _erf),
        Activation("erf_dx", lambda x: _TWO_OVER_SQRT_PI * np.exp(-x * x)),
        Activation("exp", np.exp),
        Activation("log", np.log, valid=(2.0**-64, 2.0**64)),
        Activation("sin", np.sin, valid=(-math.pi, math.pi)),
        Activation("arctan", np.arctan, valid=(-math.pi / 2, math.pi / 2)),
        Activation("sqrt", np.sqrt, valid=(2.0**-116, 2.0**118)),
        Activation("rsqrt", _rsqrt, valid=(2.0**-87, 2.0**97)),
        Activation("reciprocal", np.reciprocal, valid_magnitude=(2.0**-42, 2.0**42)),
        Activation("sign", np.sign),
        Activation("abs", np.abs),
    )
}

PRELU = "prelu"
"""The one function with a parameter; `activate2` only: x where x >= 0, else `relu_param` * x."""
