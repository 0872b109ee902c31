"""Whole layers: projections, convolution, recurrence, gated norm. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.references import heads

Array = NDArray[Any]
Arguments = Mapping[str, Any]
Outputs = dict[str, Array]


def _mix(
    x: Array, z: Array, raw_a: Array, raw_b: Array, a: Arguments, window: Array, S0: Array
) -> tuple[Array, Array, Array]:
    """One row of the batch: projected tokens [T, .] -> outputs [T, Hv V], window, states."""
    out, windows, states = _mix_all(x, z, raw_a, raw_b, a, window, S0)
    return out, windows[-1], states[-1]


def _mix_all(
    x: Array, z: Array, raw_a: Array, raw_b: Array, a: Arguments, window: Array, S0: Array
) -> tuple[Array, Array, Array]:
    """The same with the windows and states after 0, 1, ..., T tokens."""
    T, C = x.shape
    Hv, K, V = S0.shape
    Hk = (C - Hv * V) // (2 * K)
    y, windows = heads.convolve(x, a["conv_weight"], window)
    q, k, v = np.split(heads.silu(y), [Hk * K, 2 * Hk * K], axis=1)
    out, states = np.zeros((T, Hv, V)), np.zeros((T + 1, *S0.shape))
    for h in range(Hv):
        key = h // (Hv // Hk)
        o, S = heads.gdn(
            q.reshape(T, Hk, K)[:, key], k.reshape(T, Hk, K)[:, key], v.reshape(T, Hv, V)[:, h],
            raw_a[:, h], raw_b[:, h], a["A_log"][h], a["dt_bias"][h], S0[h],
        )  # fmt: skip
        gate = heads.silu(z.reshape(T, Hv, V)[:, h])
        out[:, h], states[:, h] = heads.gated_norm(o, a["norm_weight"], gate), np.array(S)
    return out.reshape(T, Hv * V), np.array(windows), states


def _projected(a: Arguments) -> tuple[Array, Array, Array, Array]:
    hidden = a["hidden"]
    return tuple(hidden @ a[f"W_in_{name}"] for name in ("qkv", "z", "a", "b"))


def gdn_block_tkg(a: Arguments, window: str = "conv_out", state: str = "state_out") -> Outputs:
    """The decode block; `window` and `state` name the outputs."""
    x, z, raw_a, raw_b = _projected(a)
    rows = [
        _mix(x[b], z[b], raw_a[b], raw_b[b], a, a["conv_state"][b], a["recurrent_state"][b])
        for b in range(len(x))
    ]
    out, windows, states = (np.array(part) for part in zip(*rows, strict=True))
    return {"core_out": out, window: windows, state: states}


def gdn_block_tkg_fp8(a: Arguments) -> Outputs:
    """The decode block on weights that are scaled per column: the weights themselves are."""
    scaled = {f"W_in_{name}": a[f"W_in_{name}"] * a[f"W_scale_{name}"] for name in ("qkv", "z")}
    return gdn_block_tkg({**a, **scaled})


def gdn_block_tkg_pool(a: Arguments) -> Outputs:
    """The decode block on pools of windows and states."""
    x, z, raw_a, raw_b = _projected(a)
    windows, states = np.array(a["conv_pool"], float), np.array(a["state_pool"], float)
    N, out = len(states), np.zeros(z.shape)
    for b in range(len(x)):
        read, write = int(a["read"][b]), int(a["write"][b])
        if not (0 <= read < N or 0 <= write < N):
            continue
        kept = 0 <= read < N and a["has_initial_state"][b]
        window = a["conv_pool"][read] if kept else np.zeros(windows.shape[1:])
        start = a["state_pool"][read] if kept else np.zeros(states.shape[1:])
        out[b], window, after = _mix(x[b], z[b], raw_a[b], raw_b[b], a, window, start)
        if 0 <= write < N:
            windows[write], states[write] = window, after
    return {"core_out": out, "conv_pool": windows, "state_pool": states}


def gdn_block_verify(a: Arguments) -> Outputs:
    """The layer over draft tokens, from what the accepted tokens left."""
    x, z, raw_a, raw_b = _projected(a)
    B, T = x.shape[:2]
    after = np.zeros((B, *a["states"].shape[2:]))
    out, kept = np.zeros(z.shape), np.zeros((B, T, *after.shape[1:]))
    seen = np.zeros((B, T, *a["conv_states"].shape[2:]))
    for b in range(B):
        n, start = int(a["valid_len"][b]), int(a["accepted"][b])
        out[b, :n], windows, states = _mix_all(
            x[b, :n], z[b, :n], raw_a[b, :n], raw_b[b, :n], a,
            a["conv_states"][b, start], a["states"][b, start],
        )  # fmt: skip
        seen[b, :n], kept[b, :n], after[b] = windows[1:], states[1:], states[-1]
    return {"core_out": out, "state_out": after, "states_out": kept, "conv_states_out": seen}


def gdn_block_prefill(a: Arguments) -> Outputs:
    """The layer over a prompt from hidden states."""
    x, z, raw_a, raw_b = _projected(a)
    return _prompt(a, x, z, raw_a, raw_b)


def gdn_mixer_prefill(a: Arguments) -> Outputs:
    """The layer over a prompt from projected tokens."""
    return _prompt(a, a["x"], a["z"], a["a"], a["b"])


def _prompt(a: Arguments, x: Array, z: Array, raw_a: Array, raw_b: Array) -> Outputs:
    out = np.zeros(z.shape)
    windows, states = np.zeros(a["conv_state"].shape), np.zeros(a["recurrent_state"].shape)
    for b in range(len(x)):
        n = int(a["valid_len"][b])
        out[b, :n], windows[b], states[b] = _mix(
            x[b, :n], z[b, :n], raw_a[b, :n], raw_b[b, :n], a,
            a["conv_state"][b], a["recurrent_state"][b],
        )  # fmt: skip
    return {"core_out": out, "conv_state": windows, "recurrent_state": states}


def qwen3next_block_tkg(a: Arguments) -> Outputs:
    """The decode block on the checkpoint's own packing of rows per key head."""
    found = _qwen3next_layer(a, [1] * len(a["hidden"]))
    windows = {f"conv_out_{name}": found[f"conv_state_{name}"] for name in "qkv"}
    return {"core_out": found["core_out"], "state_out": found["recurrent_state"], **windows}


def qwen3next_block_prefill(a: Arguments) -> Outputs:
    """The same for a prompt, rows with lengths of their own."""
    return _qwen3next_layer(a, [int(n) for n in a["valid_len"]])


def _qwen3next_layer(a: Arguments, lengths: list[int]) -> Outputs:
    B, T = a["hidden"].shape[:2]
    Hv, K, V = a["recurrent_state"].shape[1:]
    Hk = a["conv_q"].shape[0] // K
    r = Hv // Hk
    qkvz = (a["hidden"] @ a["W_qkvz"]).reshape(B, T, Hk, -1)
    ba = (a["hidden"] @ a["W_ba"]).reshape(B, T, Hk, 2, r)
    parts = np.split(qkvz, [K, 2 * K, 2 * K + r * V], axis=3)
    q, k, v, z = (part.reshape(B, T, -1) for part in parts)
    together = dict(a, conv_weight=np.concatenate([a["conv_q"], a["conv_k"], a["conv_v"]]))
    out, after = np.zeros((B, T, Hv * V)), np.zeros(a["recurrent_state"].shape)
    windows = {name: np.zeros(a[f"conv_state_{name}"].shape) for name in "qkv"}
    for b, n in enumerate(lengths):
        window = np.concatenate([a[f"conv_state_{name}"][b] for name in "qkv"])
        out[b, :n], window, after[b] = _mix(
            np.concatenate([q[b, :n], k[b, :n], v[b, :n]], axis=1), z[b, :n],
            ba[b, :n, :, 1].reshape(n, Hv), ba[b, :n, :, 0].reshape(n, Hv), together,
            window, a["recurrent_state"][b],
        )  # fmt: skip
        cut = np.split(window, [Hk * K, 2 * Hk * K])
        for name, part in zip("qkv", cut, strict=True):
            windows[name][b] = part
    carried = {f"conv_state_{name}": array for name, array in windows.items()}
    return {"core_out": out, "recurrent_state": after, **carried}


def kda_block_tkg(a: Arguments) -> Outputs:
    """Kimi-Linear's layer for one token: three convolutions, low-rank decay and gate."""
    found = _kda_layer(a, [1] * len(a["hidden"]))
    windows = {f"conv_out_{name}": found[f"conv_state_{name}"] for name in "qkv"}
    return {"core_out": found["core_out"], "state_out": found["recurrent_state"], **windows}


def kda_block_prefill(a: Arguments) -> Outputs:
    """The same for a prompt, rows with lengths of their own."""
    return _kda_layer(a, [int(n) for n in a["valid_len"]])


def _kda_layer(a: Arguments, lengths: list[int]) -> Outputs:
    B, H, K, V = a["recurrent_state"].shape
    T = a["hidden"].shape[1]
    out, after = np.zeros((B, T, H, V)), np.zeros((B, H, K, V))
    windows = {f"conv_state_{name}": np.zeros(a[f"conv_state_{name}"].shape) for name in "qkv"}
    for b, n in enumerate(lengths):
        hidden, y = a["hidden"][b, :n], {}
        for name in "qkv":
            state = a[f"conv_state_{name}"][b]
            rows, seen = heads.convolve(hidden @ a[f"W_{name}"], a[f"conv_{name}"], state)
            y[name] = heads.silu(rows).reshape(n, H, -1)
            windows[f"conv_state_{name}"][b] = seen[-1] if n else state
        f = (hidden @ a["W_f_down"] @ a["W_f_up"]).reshape(n, H, K)
        z = (hidden @ a["W_g_down"] @ a["W_g_up"]).reshape(n, H, V)
        raw_b = hidden @ a["W_b"]
        for h in range(H):
            bias = a["dt_bias"].reshape(H, K)[h]
            log = heads.softplus_gate(f[:, h], a["A_log"][h], bias)
            start = a["recurrent_state"][b, h]
            o, S = heads.kda(y["q"][:, h], y["k"][:, h], y["v"][:, h], log, raw_b[:, h], start)
            gate = heads.logistic(z[:, h])
            out[b, :n, h] = heads.gated_norm(o, a["norm_weight"], gate, 1e-5)
            after[b, h] = S[-1]
    return {"core_out": out.reshape(B, T, H * V), "recurrent_state": after, **windows}


# ---- the convolution on its own, tensors [B, C, T]


def conv1d(a: Arguments, activated: bool, narrow: bool = False) -> Outputs:
    """The convolution over a prompt or one token; `narrow`: the window lacks its oldest column."""
    B, C, T = a["x"].shape
    W = a["weight"].shape[1]
    bias = a.get("bias", np.zeros(C))
    given = a["conv_state"]
    out, after = np.zeros(a["x"].shape), np.zeros(given.shape)
    for b in range(B):
        n = int(a["valid_len"][b]) if "valid_len" in a else T
        window = np.concatenate([np.zeros((C, W - given.shape[2])), given[b]], axis=1)
        y, windows = heads.convolve(a["x"][b, :, :n].T, a["weight"], window)
        y = y + bias
        out[b, :, :n] = (heads.silu(y) if activated else y).T
        after[b] = windows[-1][:, 1:] if narrow else windows[-1]
    return {"out": out, "conv_state_out": after}
