"""Gates and norms of the papers, one number or one row at a time. Imports nothing of ours."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x)."""
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def softplus(x: float) -> float:
    """log(1 + e^x)."""
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def silu(row: Array) -> Array:
    """x sigmoid(x)."""
    return np.array([x * sigmoid(x) for x in row])


def log_decay(a: float, A_log: float, dt_bias: float) -> float:
    """g = -exp(A_log) softplus(a + dt_bias), the Mamba-2 gate of GDN and KDA."""
    return -math.exp(A_log) * softplus(a + dt_bias)


def bounded_log_decay(a: float, A_log: float, dt_bias: float, bound: float) -> float:
    """g = L sigmoid(exp(A_log) (a + dt_bias)), the bounded gate of Kimi K3."""
    return bound * sigmoid(math.exp(A_log) * (a + dt_bias))


def l2norm(row: Array, eps: float = 1e-6) -> Array:
    """x / sqrt(sum x^2 + eps)."""
    return row / math.sqrt(float(row @ row) + eps)


def rms_norm(row: Array, eps: float = 1e-6) -> Array:
    """x / sqrt(mean x^2 + eps), without weight."""
    return row / math.sqrt(float(row @ row) / len(row) + eps)


def rows(fn: Callable[[Array], Array], x: Array) -> Array:
    """Apply a function of one row to every row of the last dimension."""
    return np.apply_along_axis(fn, -1, np.asarray(x, float))
