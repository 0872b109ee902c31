"""The other recurrences as whole kernels; tensors are [B, T, H, .]. Imports nothing of ours."""

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


def _each_head(
    a: Arguments, K: int, V: int, one: Callable[[int, int, Array], rec.Result]
) -> tuple[Array, Array]:
    B, T, H = a["v"].shape[0], a["v"].shape[1], a["v"].shape[-2]
    S0 = _start(a, "s0", B, H, K, V)
    out, state = np.zeros((B, T, H, V)), np.zeros((B, H, K, V))
    for b in range(B):
        for h in range(H):
            o, states = one(b, h, S0[b, h])
            out[b, :, h], state[b, h] = o, states[-1]
    return out, state


def comba_fwd(a: Arguments) -> Outputs:
    """Comba with q corrected by D p, all three keys normalised."""
    K, V = a["k"].shape[-1], a["v"].shape[-1]

    def one(b: int, h: int, S0: Array) -> rec.Result:
        q, k, p = (g.rows(g.l2norm, a[name][b, :, h]) for name in "qkp")
        q = (q - a["D"][h] * p) / np.sqrt(K)
        return rec.comba(q, p, k, a["v"][b, :, h], np.exp(a["g"][b, :, h]), a["beta"][b, :, h], S0)

    out, state = _each_head(a, K, V, one)
    return {"out": out, "s1": state}


def gdn2_fwd(a: Arguments) -> Outputs:
    """GDN-2 with erase gate b and write gate w."""

    def one(b: int, h: int, S0: Array) -> rec.Result:
        q, k, v, log, erase, write = (a[n][b, :, h] for n in ("q", "k", "v", "g", "b", "w"))
        return rec.gated_delta_net_2(q, k, v, np.exp(log), erase, write, S0)

    out, state = _each_head(a, a["k"].shape[-1], a["v"].shape[-1], one)
    return {"out": out, "s1": state}


def delta_product_fwd(a: Arguments) -> Outputs:
    """Gated DeltaProduct; k, v are [B, T, N, H, .]."""

    def one(b: int, h: int, S0: Array) -> rec.Result:
        return rec.gated_delta_product(
            a["q"][b, :, h],
            a["k"][b, :, :, h],
            a["v"][b, :, :, h],
            np.exp(a["g"][b, :, h]),
            a["beta"][b, :, :, h],
            S0,
        )

    out, state = _each_head(a, a["k"].shape[-1], a["v"].shape[-1], one)
    return {"out": out, "s1": state}


def rwkv7_fwd(a: Arguments) -> Outputs:
    """RWKV-7 time mixing without its norm: bonus (r . k' . r_k) v added to the read."""

    def one(b: int, h: int, S0: Array) -> rec.Result:
        r, w, k, v, rate = (a[n][b, :, h] for n in ("r", "w", "k", "v", "a"))
        decay = np.exp(-0.60653066 * _logistic(w))
        kk = g.rows(g.l2norm, k * a["k_k"][h])
        key = k * (1 + (rate - 1) * a["k_a"][h])
        o, states = rec.rwkv7(r, decay, key, v, kk, rate, S0)
        return o + (r * key * a["r_k"][h]).sum(1, keepdims=True) * v, states

    out, state = _each_head(a, a["k"].shape[-1], a["v"].shape[-1], one)
    return {"out": out, "s1": state}


def mamba2_fwd(a: Arguments) -> Outputs:
    """Mamba-2: B and C shared by the heads of a group, skip D x, gate before norm."""
    B, T, H, P = a["x"].shape
    groups, N = a["C"].shape[2:]
    S0 = _start(a, "s0", B, H, P, N)
    out, state = np.zeros((B, T, H, P)), np.zeros((B, H, P, N))
    for b in range(B):
        for h in range(H):
            group = h // (H // groups)
            dt = np.array([g.softplus(x) for x in a["dt_raw"][b, :, h] + a["dt_bias"][h]])
            x = a["x"][b, :, h]
            y, states = rec.gated_linear_attention(
                a["C"][b, :, group],
                a["Bt"][b, :, group],
                dt[:, None] * x,
                np.exp(-np.exp(a["A_log"][h]) * dt),
                S0[b, h].T,
            )
            gated = (y + a["D"][h] * x) * g.rows(g.silu, a["z"][b, :, h])
            out[b, :, h], state[b, h] = g.rows(g.rms_norm, gated), states[-1].T
    return {"out": out, "s1": state}


def deltanet_fwd(a: Arguments) -> Outputs:
    """DeltaNet."""
    K, V = a["k"].shape[-1], a["v"].shape[-1]

    def one(b: int, h: int, S0: Array) -> rec.Result:
        q, k = (g.rows(g.l2norm, a[name][b, :, h]) for name in "qk")
        return rec.delta_net(q / np.sqrt(K), k, a["v"][b, :, h], a["beta"][b, :, h], S0)

    out, state = _each_head(a, K, V, one)
    return {"out": out, "s1": state}


def dplr_fwd(a: Arguments) -> Outputs:
    """Diagonal plus low rank."""
    K, V = a["k"].shape[-1], a["v"].shape[-1]

    def one(b: int, h: int, S0: Array) -> rec.Result:
        q, k, v, log, read, erase = (a[n][b, :, h] for n in ("q", "k", "v", "g", "a", "b"))
        return rec.diagonal_plus_low_rank(q / np.sqrt(K), k, v, np.exp(log), read, erase, S0)

    out, state = _each_head(a, K, V, one)
    return {"out": out, "s1": state}


def _linear(a: Arguments, decay: Callable[[int, int], Array], key: str = "k") -> Outputs:
    """Linear attention with the decay [T] or [T, K] of a head; `key` names the keys."""
    K, V = a["q"].shape[-1], a["v"].shape[-1]

    def one(b: int, h: int, S0: Array) -> rec.Result:
        q, k, v = (a[name][b, :, h] for name in ("q", key, "v"))
        return rec.gated_linear_attention(q / np.sqrt(K), k, v, decay(b, h), S0)

    out, state = _each_head(a, K, V, one)
    return {"out": out, "s1": state}


def retnet_fwd(a: Arguments) -> Outputs:
    """RetNet: the decay of head h is 1 - 2^(-5 - h)."""
    return _linear(a, lambda b, h: np.full(a["q"].shape[1], 1 - 2.0 ** (-5 - h)))


def lightning_fwd(a: Arguments) -> Outputs:
    """Lightning attention: e^slope of each head."""
    return _linear(a, lambda b, h: np.full(a["q"].shape[1], np.exp(a["slope"][h])))


def simple_gla_fwd(a: Arguments) -> Outputs:
    """Simple GLA: a finished log decay of each head."""
    return _linear(a, lambda b, h: np.exp(a["g"][b, :, h]))


def gla_fwd(a: Arguments) -> Outputs:
    """GLA: sigmoid(gk)^(1/16) of each channel."""
    return _linear(a, lambda b, h: _logistic(a["gk"][b, :, h]) ** (1 / 16))


def hgrn2_fwd(a: Arguments) -> Outputs:
    """HGRN2: the key is 1 - sigmoid(f), the decay sigmoid(f)."""
    keys = dict(a, k=1 - _logistic(a["f"]))
    return _linear(keys, lambda b, h: _logistic(a["f"][b, :, h]))


def _logistic(x: Array) -> Array:
    return np.array([g.sigmoid(y) for y in x.ravel()]).reshape(x.shape)
