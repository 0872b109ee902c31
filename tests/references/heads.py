"""One head of a layer over T tokens, and convolution channels. Imports nothing of ours.

Rows are raw, as the projections leave them: norms, scale and gates are applied here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.references import gates as g
from tests.references import recurrences as rec

Array = NDArray[Any]


def gdn(
    q: Array,
    k: Array,
    v: Array,
    a: Array,
    b: Array,
    A_log: float,
    dt_bias: float,
    S0: Array,
    beta_range: float = 1.0,
) -> rec.Result:
    """Gated DeltaNet: q, k `[T, K]`, v `[T, V]`, raw gates a, b `[T]`."""
    alpha = np.array([np.exp(g.log_decay(x, A_log, dt_bias)) for x in a])
    return rec.gated_delta_net(unit(q) / scale(q), unit(k), v, alpha, beta_range * logistic(b), S0)


def kda(
    q: Array, k: Array, v: Array, log: Array, b: Array, S0: Array, factor: float | None = None
) -> rec.Result:
    """Kimi Delta Attention from a finished log decay `[T, K]` and raw b `[T]`."""
    q = unit(q) / scale(q) if factor is None else unit(q) * factor
    return rec.kimi_delta(q, unit(k), v, np.exp(log), logistic(b), S0)


def softplus_gate(f: Array, A_log: float, dt_bias: Array) -> Array:
    """The log decay of Kimi-Linear, `[T, K]`."""
    pairs = zip(f.ravel(), np.broadcast_to(dt_bias, f.shape).ravel(), strict=True)
    return np.array([g.log_decay(x, A_log, y) for x, y in pairs]).reshape(f.shape)


def bounded_gate(f: Array, A_log: float, dt_bias: Array, bound: float) -> Array:
    """The log decay of Kimi-K3 and GLM-5-Next, `[T, K]`."""
    pairs = zip(f.ravel(), np.broadcast_to(dt_bias, f.shape).ravel(), strict=True)
    return np.array([g.bounded_log_decay(x, A_log, y, bound) for x, y in pairs]).reshape(f.shape)


def gated_norm(o: Array, weight: Array, gate: Array, eps: float = 1e-6) -> Array:
    """RMS norm of `[T, V]` rows, times weight, times the finished gate."""
    return np.array([g.rms_norm(row, eps) for row in o]).reshape(o.shape) * weight * gate


def silu(rows: Array) -> Array:
    """x sigmoid(x) of every element."""
    return rows * logistic(rows)


def logistic(rows: Array) -> Array:
    """sigmoid of every element."""
    flat = np.array([g.sigmoid(x) for x in np.asarray(rows, float).ravel()])
    return flat.reshape(np.shape(rows))


def unit(rows: Array) -> Array:
    """l2norm of every row."""
    return np.array([g.l2norm(row) for row in rows]).reshape(rows.shape)


def scale(rows: Array) -> float:
    """sqrt(K)."""
    return float(np.sqrt(rows.shape[-1]))


def convolve(x: Array, w: Array, window: Array) -> tuple[Array, Array]:
    """Channels: x `[T, C]`, w and window `[C, W]` -> y `[T, C]` and windows `[T+1, C, W]`."""
    y, windows = np.zeros(x.shape), np.zeros((len(x) + 1, *w.shape))
    for c in range(x.shape[1]):
        y[:, c], line = rec.causal_convolution(x[:, c], w[c], window[c])
        windows[:, c] = line
    return y, windows
