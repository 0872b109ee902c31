"""Kernels over many tokens, by loops over rows and heads. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.references import heads
from tests.references import recurrences as rec

Array = NDArray[Any]
Arguments = Mapping[str, Any]
Outputs = dict[str, Array]


def _lengths(a: Arguments, B: int, T: int) -> list[int]:
    return [int(n) for n in a.get("valid_len", [T] * B)]


def _head_major(a: Arguments, one: Callable[..., rec.Result], every: int = 0) -> Outputs:
    """Loop over [B, H, T, .] tensors; `one(b, h, key, n, S0)` is a head over its first n tokens.

    With `every`, also the states after every `every` tokens, exactly 0 past a row's length.
    """
    B, Hv, T, V = a["value"].shape
    Hk, K = a["key"].shape[1], a["key"].shape[3]
    given = a.get("recurrent_state")
    out, after = np.zeros((B, Hv, T, V)), np.zeros((B, Hv, K, V))
    kept = np.zeros((B, T // every if every else 0, Hv, K, V))
    for b, n in enumerate(_lengths(a, B, T)):
        for h in range(Hv):
            S0 = np.zeros((K, V)) if given is None else given[b, h]
            o, S = one(b, h, h // (Hv // Hk), n, S0)
            out[b, h, :n], after[b, h] = o, S[-1]
            for j in range(kept.shape[1]):
                if (j + 1) * every <= n:
                    kept[b, j, h] = S[(j + 1) * every]
    outputs = {"out": out, "recurrent_state": after}
    return {**outputs, "checkpoints": kept} if every else outputs


def gdn_cte(a: Arguments, every: int = 0) -> Outputs:
    """Normalised keys, finished log decay per head."""

    def one(b: int, h: int, key: int, n: int, S0: Array) -> rec.Result:
        return rec.gated_delta_net(
            a["query"][b, key, :n] * a["scale"], a["key"][b, key, :n], a["value"][b, h, :n],
            np.exp(a["g_log"][b, h, :n]), a["beta"][b, h, :n], S0,
        )  # fmt: skip

    return _head_major(a, one, every)


def kda_cte(a: Arguments, every: int = 0) -> Outputs:
    """Normalised keys, finished log decay per channel."""

    def one(b: int, h: int, key: int, n: int, S0: Array) -> rec.Result:
        return rec.kimi_delta(
            a["query"][b, key, :n] * a["scale"], a["key"][b, key, :n], a["value"][b, h, :n],
            np.exp(a["g"][b, h, :n]), a["beta"][b, h, :n], S0,
        )  # fmt: skip

    return _head_major(a, one, every)


def gdn_prefill(a: Arguments, beta_range: float = 1.0, eps: float = 1e-6) -> Outputs:
    """Norms, gates and gated output norm inside."""

    def one(b: int, h: int, key: int, n: int, S0: Array) -> rec.Result:
        o, S = heads.gdn(
            a["query"][b, key, :n], a["key"][b, key, :n], a["value"][b, h, :n], a["a"][b, h, :n],
            a["b"][b, h, :n], a["A_log"][h], a["dt_bias"][h], S0, beta_range,
        )  # fmt: skip
        return heads.gated_norm(o, a["norm_weight"], heads.silu(a["z"][b, h, :n]), eps), S

    return _head_major(a, one)


def kda_prefill(a: Arguments, bounded: bool) -> Outputs:
    """Kimi-Linear's layer, or with the bounded gate; A_log may be missing (0)."""

    def one(b: int, h: int, key: int, n: int, S0: Array) -> rec.Result:
        A_log = a["A_log"][h] if "A_log" in a else 0.0
        f, bias = a["f"][b, h, :n], a["dt_bias"][h]
        log = heads.softplus_gate(f, A_log, bias)
        if bounded:
            log = heads.bounded_gate(f, A_log, bias, -5.0)
        o, S = heads.kda(
            a["query"][b, key, :n], a["key"][b, key, :n], a["value"][b, h, :n],
            log, a["b"][b, h, :n], S0,
        )  # fmt: skip
        gate = heads.logistic(a["z"][b, h, :n])
        return heads.gated_norm(o, a["norm_weight"], gate, 1e-5), S

    return _head_major(a, one)


# ---- several tokens for speculative decoding, tensors [B, T, H, .]


def gdn_tkg_tokens(a: Arguments) -> Outputs:
    """The decode step for T tokens, with the state after each."""
    B, T, Hv, V = a["v"].shape
    Hk, K = a["q"].shape[2:]
    out, after = np.zeros((B, T, Hv, V)), np.zeros((B, Hv, K, V))
    kept = np.zeros((B, T, Hv, K, V))
    for b in range(B):
        for h in range(Hv):
            key = h // (Hv // Hk)
            o, S = heads.gdn(
                a["q"][b, :, key], a["k"][b, :, key], a["v"][b, :, h], a["a"][b, :, h],
                a["b"][b, :, h], a["A_log"][h], a["dt_bias"][h], a["recurrent_state"][b, h],
            )  # fmt: skip
            out[b, :, h] = heads.gated_norm(o, a["norm_weight"], heads.silu(a["z"][b, :, h]))
            after[b, h], kept[b, :, h] = S[-1], np.array(S[1:])
    return {"out": out, "recurrent_state": after, "states_out": kept}


def kda_verify(a: Arguments) -> Outputs:
    """Draft tokens from the state after `accepted` tokens, finished gates."""
    B, T, H, V = a["v"].shape
    K = a["k"].shape[-1]
    out, after = np.zeros((B, T, H, V)), np.zeros((B, H, K, V))
    kept = np.zeros((B, T, H, K, V))
    for b, n in enumerate(_lengths(a, B, T)):
        for h in range(H):
            q, k = heads.unit(a["q"][b, :n, h]), heads.unit(a["k"][b, :n, h])
            o, S = rec.kimi_delta(
                q / np.sqrt(K), k, a["v"][b, :n, h], np.exp(a["g"][b, :n, h]), a["beta"][b, :n, h],
                a["states"][b, int(a["accepted"][b]), h],
            )  # fmt: skip
            out[b, :n, h], after[b, h] = o, S[-1]
            kept[b, :n, h] = np.reshape(S[1:], (n, K, V))
    return {"out": out, "state_out": after, "states_out": kept}


def gdn_verify(a: Arguments) -> Outputs:
    """Convolution and recurrence restart together after the accepted tokens."""
    B, T, C = a["x"].shape
    Hv, K, V = a["states"].shape[2:]
    Hk = (C - Hv * V) // (2 * K)
    out, after = np.zeros((B, T, Hv, V)), np.zeros((B, Hv, K, V))
    kept, windows = np.zeros((B, T, Hv, K, V)), np.zeros((B, T, *a["conv_weight"].shape))
    for b, n in enumerate(_lengths(a, B, T)):
        start = int(a["accepted"][b])
        y, window = heads.convolve(a["x"][b, :n], a["conv_weight"], a["conv_states"][b, start])
        windows[b, :n] = window[1:]
        q, k, v = np.split(heads.silu(y), [Hk * K, 2 * Hk * K], axis=1)
        for h in range(Hv):
            key = h // (Hv // Hk)
            o, S = rec.gated_delta_net(
                heads.unit(q.reshape(n, Hk, K)[:, key]) / np.sqrt(K),
                heads.unit(k.reshape(n, Hk, K)[:, key]),
                v.reshape(n, Hv, V)[:, h],
                np.exp(a["g_log"][b, :n, h]),
                a["beta"][b, :n, h],
                a["states"][b, start, h],
            )
            out[b, :n, h], after[b, h] = o, S[-1]
            kept[b, :n, h] = np.reshape(S[1:], (n, K, V))
    return {"out": out, "state_out": after, "states_out": kept, "conv_states_out": windows}
