"""Delta-rule mathematics in float64, token by token, for `public_cases.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EPSILON = 1e-6


def softplus(x: Array) -> Array:
    """Return ln(1 + e^x)."""
    return np.asarray(np.logaddexp(0.0, x))


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + e^-x)."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def silu(x: Array) -> Array:
    """Return x * sigmoid(x)."""
    return x * sigmoid(x)


def unit(x: Array, epsilon: float = EPSILON) -> Array:
    """Return rows divided by sqrt(sum of squares + epsilon)."""
    norm: Array = np.sqrt((x * x).sum(-1, keepdims=True) + epsilon)
    return x / norm


def gated_rms_norm(x: Array, weight: Array, z: Array, epsilon: float = EPSILON) -> Array:
    """Return RMSNorm(x) * weight * silu(z)."""
    rms: Array = np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
    return x / rms * weight * z * sigmoid(z)


def delta_rule(
    q: Array, k: Array, v: Array, log_decay: Array, beta: Array, state: Array
) -> tuple[Array, Array]:
    """Return outputs [T, V] and states [T, K, V] of one head; q, k [T, K], beta [T].

    `log_decay` is [T], or [T, K] for a decay per channel.
    """
    q, k, v, state = (np.asarray(x, np.float64) for x in (q, k, v, state))
    outputs, states = [], []
    for t in range(len(q)):
        state = state * np.exp(np.asarray(log_decay[t], np.float64).reshape(-1, 1))
        delta = float(beta[t]) * (v[t] - k[t] @ state)
        state = state + np.outer(k[t], delta)
        outputs.append(q[t] @ state)
        states.append(state)
    return np.array(outputs), np.array(states)
