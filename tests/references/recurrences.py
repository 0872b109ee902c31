"""The recurrences of the papers, for one head, in plain numpy float64. Imports nothing of ours.

Each is written in the matrix form its paper prints (state as R^{V x K} or R^{K x V} as there), with
explicit transition matrices, so that it shares no step with the rank-one updates of the kernels.
Arguments are `[T, K]` or `[T, V]` rows, `[T]` scalars; `S0` is `[K, V]`. Every function returns
the outputs `[T, V]` and the list of states `[K, V]` after 0, 1, ..., T tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Result = tuple[Array, list[Array]]


def delta_net(q: Array, k: Array, v: Array, beta: Array, S0: Array) -> Result:
    """S_t = S_{t-1} (I - beta k k^T) + beta v k^T, o = S q (DeltaNet, Yang et al. 2024; V x K)."""
    return gated_delta_net(q, k, v, np.ones(len(k)), beta, S0)


def gated_delta_net(q: Array, k: Array, v: Array, alpha: Array, beta: Array, S0: Array) -> Result:
    """S_t = S_{t-1} (alpha (I - beta k k^T)) + beta v k^T (Gated DeltaNet, 2024; V x K)."""
    S, outputs, states = S0.T.astype(float), [], [S0.astype(float)]
    identity = np.eye(k.shape[1])
    for t in range(len(k)):
        transition = alpha[t] * (identity - beta[t] * np.outer(k[t], k[t]))
        S = S @ transition + beta[t] * np.outer(v[t], k[t])
        outputs.append(S @ q[t])
        states.append(S.T)
    return _stack(outputs, v), states


def kimi_delta(q: Array, k: Array, v: Array, alpha: Array, beta: Array, S0: Array) -> Result:
    """S_t = (I - beta k k^T) Diag(alpha) S_{t-1} + beta k v^T (Kimi Linear, 2025; K x V)."""
    S, outputs, states = S0.astype(float), [], [S0.astype(float)]
    identity = np.eye(k.shape[1])
    for t in range(len(k)):
        transition = (identity - beta[t] * np.outer(k[t], k[t])) @ np.diag(alpha[t])
        S = transition @ S + beta[t] * np.outer(k[t], v[t])
        outputs.append(S.T @ q[t])
        states.append(S)
    return _stack(outputs, v), states


def gated_delta_net_2(
    q: Array, k: Array, v: Array, alpha: Array, erase: Array, write: Array, S0: Array
) -> Result:
    """S_t = (I - k (b . k)^T) Diag(alpha) S_{t-1} + k (w . v)^T; b, w gate channels."""
    S, outputs, states = S0.astype(float), [], [S0.astype(float)]
    identity = np.eye(k.shape[1])
    for t in range(len(k)):
        transition = (identity - np.outer(k[t], erase[t] * k[t])) @ np.diag(alpha[t])
        S = transition @ S + np.outer(k[t], write[t] * v[t])
        outputs.append(S.T @ q[t])
        states.append(S)
    return _stack(outputs, v), states


def gated_delta_product(
    q: Array, k: Array, v: Array, alpha: Array, beta: Array, S0: Array
) -> Result:
    """n Householder steps a token, decay once (Siems et al. 2025); k, v are [T, n, .]."""
    S, outputs, states = S0.astype(float), [], [S0.astype(float)]
    identity = np.eye(k.shape[2])
    for t in range(len(k)):
        transition, write = alpha[t] * identity, np.zeros_like(S)
        for j in range(k.shape[1]):
            householder = identity - beta[t, j] * np.outer(k[t, j], k[t, j])
            transition = householder @ transition
            write = householder @ write + beta[t, j] * np.outer(k[t, j], v[t, j])
        S = transition @ S + write
        outputs.append(S.T @ q[t])
        states.append(S)
    return _stack(outputs, v[:, 0]), states


def comba(q: Array, p: Array, k: Array, v: Array, alpha: Array, beta: Array, S0: Array) -> Result:
    """S_t = S_{t-1} (alpha I - beta p k^T) + beta v k^T (Hu et al. 2025; V x K)."""
    S, outputs, states = S0.T.astype(float), [], [S0.astype(float)]
    identity = np.eye(k.shape[1])
    for t in range(len(k)):
        S = S @ (alpha[t] * identity - beta[t] * np.outer(p[t], k[t]))
        S = S + beta[t] * np.outer(v[t], k[t])
        outputs.append(S @ q[t])
        states.append(S.T)
    return _stack(outputs, v), states


def rwkv7(r: Array, w: Array, k: Array, v: Array, kk: Array, a: Array, S0: Array) -> Result:
    """S_t = S_{t-1} (Diag(w) - kk (a . kk)^T) + v k^T (Peng et al. 2025; V x K)."""
    S, outputs, states = S0.T.astype(float), [], [S0.astype(float)]
    for t in range(len(k)):
        S = S @ (np.diag(w[t]) - np.outer(kk[t], a[t] * kk[t])) + np.outer(v[t], k[t])
        outputs.append(S @ r[t])
        states.append(S.T)
    return _stack(outputs, v), states


def diagonal_plus_low_rank(
    q: Array, k: Array, v: Array, alpha: Array, a: Array, b: Array, S0: Array
) -> Result:
    """S_t = (Diag(alpha) + b a^T) S_{t-1} + k v^T (K x V)."""
    S, outputs, states = S0.astype(float), [], [S0.astype(float)]
    for t in range(len(k)):
        S = (np.diag(alpha[t]) + np.outer(b[t], a[t])) @ S + np.outer(k[t], v[t])
        outputs.append(S.T @ q[t])
        states.append(S)
    return _stack(outputs, v), states


def gated_linear_attention(q: Array, k: Array, v: Array, alpha: Array, S0: Array) -> Result:
    """The attention form o_t = sum_{s<=t} (q_t . prod_{s<m<=t} alpha_m . k_s) v_s, quadratic in T.

    GLA (Yang et al. 2023) with `alpha` `[T, K]`; SSD, RetNet and Lightning with `alpha` `[T]`.
    """
    T, K = k.shape
    alpha = np.broadcast_to(alpha.reshape(T, -1), (T, K))
    outputs = np.zeros((T, v.shape[1]))
    states = [S0.astype(float)]
    for t in range(T):
        state = np.prod(alpha[: t + 1], axis=0)[:, None] * S0
        for s in range(t + 1):
            kept = np.prod(alpha[s + 1 : t + 1], axis=0)
            state = state + np.outer(kept * k[s], v[s])
        outputs[t] = q[t] @ state
        states.append(state)
    return outputs, states


def causal_convolution(x: Array, w: Array, window: Array) -> tuple[Array, list[Array]]:
    """One channel: y_t = sum_j w_j x_{t-W+1+j}; `window` `[W]` holds the inputs before token 0.

    Returns `[T]` and the windows `[W]` after 0, 1, ..., T tokens; the last tap meets the newest.
    """
    W = len(w)
    line = np.concatenate([window, x]).astype(float)
    y = np.convolve(line, w[::-1])[W : W + len(x)]
    return y, [line[t : t + W] for t in range(len(x) + 1)]


def _stack(rows: list[Array], like: Array) -> Array:
    return np.array(rows) if rows else np.zeros((0, like.shape[1]))
