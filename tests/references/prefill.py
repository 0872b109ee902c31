"""Kernels over many tokens, by loops over rows and heads. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.references import gates as g
from tests.references import recurrences as rec

Array = NDArray[Any]
Arguments = Mapping[str, Any]
Outputs = dict[str, Array]


def _start(a: Arguments, name: str, *shape: int) -> Array:
    return np.asarray(a[name], float) if a.get(name) is not None else np.zeros(shape)


def _prefill(
    a: Arguments, alpha: Array, rule: Callable[..., rec.Result], lengths: Array
) -> tuple[Array, Array]:
    """Heads of q, k [B, Hk, T, K], v [B, Hv, T, V]; row b has `lengths[b]` tokens."""
    q, k, v = (np.asarray(a[n], float) for n in ("query", "key", "value"))
    B, Hv, _, V = v.shape
    S0 = _start(a, "recurrent_state", B, Hv, k.shape[3], V)
    out, state = np.zeros(v.shape), np.zeros(S0.shape)
    for b in range(B):
        n = int(lengths[b])
        for h in range(Hv):
            head = h // (Hv // q.shape[1])
            o, states = rule(
                q[b, head, :n] * a.get("scale", 1.0),
                k[b, head, :n],
                v[b, h, :n],
                alpha[b, h, :n],
                np.asarray(a["beta"], float)[b, h, :n],
                S0[b, h],
            )
            out[b, h, :n], state[b, h] = o, states[-1]
    return out, state


def gdn_cte(a: Arguments) -> Outputs:
    """Prefill of GDN, scalar decay."""
    lengths = np.full(len(a["query"]), a["query"].shape[2])
    alpha = np.exp(np.asarray(a["g_log"], float))
    out, state = _prefill(a, alpha, rec.gated_delta_net, lengths)
    return {"out": out, "recurrent_state": state}


def kda_cte(a: Arguments) -> Outputs:
    """Prefill of KDA, a decay for every channel, right padding."""
    lengths = a.get("valid_len", np.full(len(a["query"]), a["query"].shape[2]))
    out, state = _prefill(a, np.exp(np.asarray(a["g"], float)), rec.kimi_delta, lengths)
    return {"out": out, "recurrent_state": state}


def gdn_verify(a: Arguments) -> Outputs:
    """Several draft tokens from the states after `accepted` tokens; states after every token."""
    B, T, C = a["x"].shape
    Hv, K, V = a["states"].shape[2:]
    Hk = (C - Hv * V) // (2 * K)
    W = a["conv_weight"].shape[1]
    out, last = np.zeros((B, T, Hv, V)), np.zeros((B, Hv, K, V))
    states_out, windows_out = np.zeros((B, T, Hv, K, V)), np.zeros((B, T, C, W))
    for b in range(B):
        start, n = int(a["accepted"][b]), int(a["valid_len"][b])
        y = np.zeros((n, C))
        for c in range(C):
            y[:, c], windows = rec.causal_convolution(
                a["x"][b, :n, c], a["conv_weight"][c], a["conv_states"][b, start, c]
            )
            windows_out[b, :n, c] = windows[1:]
        q, k, v = np.split(g.rows(g.silu, y), [Hk * K, 2 * Hk * K], axis=1)
        for h in range(Hv):
            head = h // (Hv // Hk)
            o, states = rec.gated_delta_net(
                g.rows(g.l2norm, q.reshape(n, Hk, K)[:, head]) / np.sqrt(K),
                g.rows(g.l2norm, k.reshape(n, Hk, K)[:, head]),
                v.reshape(n, Hv, V)[:, h],
                np.exp(np.asarray(a["g_log"], float)[b, :n, h]),
                np.asarray(a["beta"], float)[b, :n, h],
                a["states"][b, start, h],
            )
            out[b, :n, h], last[b, h] = o, states[-1]
            states_out[b, :n, h] = np.reshape(states[1:], (n, K, V))
    return {
        "out": out,
        "state_out": last,
        "states_out": states_out,
        "conv_states_out": windows_out,
    }
