"""One-token kernels, by loops over rows and heads. Imports nothing of ours."""

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


def gdn_tkg(a: Arguments) -> Outputs:
    """One token; rows are (batch, head) with the head cycling fastest."""
    Hv = len(a["A_log"])
    out, state = np.zeros(a["v"].shape), np.zeros(a["state_in"].shape)
    for row in range(len(a["q"])):
        head = row % Hv
        alpha = np.exp(g.log_decay(a["a"][row], a["A_log"][head], a["dt_bias"][head]))
        q = g.l2norm(a["q"][row]) / np.sqrt(a["q"].shape[1])
        o, states = rec.gated_delta_net(
            q[None],
            g.l2norm(a["k"][row])[None],
            a["v"][row][None],
            np.array([alpha]),
            np.array([g.sigmoid(a["b"][row])]),
            a["state_in"][row],
        )
        state[row] = states[-1]
        out[row] = g.rms_norm(o[0]) * a["norm_weight"] * g.silu(a["z"][row])
    return {"out": out, "state_out": state}


def kda_tkg(a: Arguments) -> Outputs:
    """One token of KDA with the bounded gate; q, k, g are [B, K, H]."""
    B, _, H = a["q"].shape
    out, state = np.zeros(a["v"].shape), np.zeros(a["S"].shape)
    for b in range(B):
        for h in range(H):
            log = [
                g.bounded_log_decay(x, a["a_log"][0, h], bias, a["lower_bound"][0, 0])
                for x, bias in zip(a["g"][b, :, h], a["dt_bias"][:, h], strict=True)
            ]
            o, states = rec.kimi_delta(
                g.l2norm(a["q"][b, :, h])[None] * a["scale"][0, 0],
                g.l2norm(a["k"][b, :, h])[None],
                a["v"][b, h][None],
                np.exp(log)[None],
                np.array([g.sigmoid(a["beta"][b, 0, h])]),
                a["S"][b, h],
            )
            out[b, h], state[b, h] = o[0], states[-1]
    return {"out": out, "S": state}


def gdn_tkg_pool(a: Arguments) -> Outputs:
    """One token from and to a pool of slots; a row without slots is skipped."""
    B, Hk, _ = a["q"].shape
    Hv, N = a["v"].shape[1], len(a["pool"])
    out, pool = np.zeros(a["v"].shape), np.array(a["pool"], float)
    for b in range(B):
        read, write = int(a["read"][b]), int(a["write"][b])
        if not (0 <= read < N or 0 <= write < N):
            continue
        for h in range(Hv):
            head = h // (Hv // Hk)
            start = np.zeros(a["pool"].shape[2:])
            if 0 <= read < N and a["has_initial_state"][b]:
                start = a["pool"][read, h]
            o, states = rec.gated_delta_net(
                g.l2norm(a["q"][b, head])[None] / np.sqrt(a["q"].shape[2]),
                g.l2norm(a["k"][b, head])[None],
                a["v"][b, h][None],
                np.exp([g.log_decay(a["a"][b, h], a["A_log"][h], a["dt_bias"][h])]),
                np.array([g.sigmoid(a["b"][b, h])]),
                start,
            )
            out[b, h] = g.rms_norm(o[0]) * a["norm_weight"] * g.silu(a["z"][b, h])
            if 0 <= write < N:
                pool[write, h] = states[-1]
    return {"out": out, "pool": pool}


def qwen3next_step(a: Arguments) -> Outputs:
    """One token from Qwen3-Next's projections: per key head q, k, v*r, z*r and b*r, a*r."""
    B, Hv, K, V = a["s0"].shape
    Hk = (a["qkvz"].shape[1] - 2 * Hv * V) // (2 * K)
    r = Hv // Hk
    out, state = np.zeros((B, Hv, V)), np.zeros(a["s0"].shape)
    for b in range(B):
        for head in range(Hk):
            q, k, v, z = np.split(a["qkvz"][b].reshape(Hk, -1)[head], [K, 2 * K, 2 * K + r * V])
            beta, alpha = np.split(a["ba"][b].reshape(Hk, -1)[head], 2)
            for j in range(r):
                h = head * r + j
                o, states = rec.gated_delta_net(
                    g.l2norm(q)[None] / np.sqrt(K),
                    g.l2norm(k)[None],
                    v[None, j * V : (j + 1) * V],
                    np.exp([g.log_decay(alpha[j], a["A_log"][h], a["dt_bias"][h])]),
                    np.array([g.sigmoid(beta[j])]),
                    a["s0"][b, h],
                )
                out[b, h] = o[0] * g.silu(z[j * V : (j + 1) * V])
                state[b, h] = states[-1]
    return {"out": out, "s1": state}


def gdn_block_tkg(a: Arguments, rounded: Callable[[Array], Array] = np.asarray) -> Outputs:
    """One token of the mixer: projections, short convolution, gates, rule, gated norm.

    `rounded` is the rounding of the convolution's input to its declared dtype.
    """
    B, Hv, K, V = a["recurrent_state"].shape
    C = a["conv_weight"].shape[0]
    Hk = (C - Hv * V) // (2 * K)
    hidden = np.asarray(a["hidden"], float)[:, 0]
    x = rounded(hidden @ a["W_in_qkv"])
    z = (hidden @ a["W_in_z"]).reshape(B, Hv, V)
    raw_decay, raw_beta = hidden @ a["W_in_a"], hidden @ a["W_in_b"]
    window, state = np.zeros(a["conv_state"].shape), np.zeros(a["recurrent_state"].shape)
    out = np.zeros((B, Hv, V))
    for b in range(B):
        y = np.zeros(C)
        for c in range(C):
            line, windows = rec.causal_convolution(
                x[b, c : c + 1], a["conv_weight"][c], a["conv_state"][b, c]
            )
            y[c], window[b, c] = line[0], windows[-1]
        q, k, v = np.split(g.silu(y), [Hk * K, 2 * Hk * K])
        for h in range(Hv):
            head = h // (Hv // Hk)
            o, states = rec.gated_delta_net(
                g.l2norm(q.reshape(Hk, K)[head])[None] / np.sqrt(K),
                g.l2norm(k.reshape(Hk, K)[head])[None],
                v.reshape(Hv, V)[h][None],
                np.exp([g.log_decay(raw_decay[b, h], a["A_log"][h], a["dt_bias"][h])]),
                np.array([g.sigmoid(raw_beta[b, h])]),
                a["recurrent_state"][b, h],
            )
            out[b, h] = g.rms_norm(o[0]) * a["norm_weight"] * g.silu(z[b, h])
            state[b, h] = states[-1]
    return {"core_out": out.reshape(B, 1, Hv * V), "conv_out": window, "state_out": state}
