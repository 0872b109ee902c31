"""One-token kernels, by loops over rows and heads. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.references import heads

Array = NDArray[Any]
Arguments = Mapping[str, Any]
Outputs = dict[str, Array]


def gdn_rows(a: Arguments, given: str, returned: str, transposed: bool = False) -> Outputs:
    """Rows are (batch, head) with the head cycling fastest; the state may be [V, K]."""
    Hv = len(a["A_log"])
    states = a[given].swapaxes(1, 2) if transposed else a[given]
    out, after = np.zeros(a["v"].shape), np.zeros(states.shape)
    for row in range(len(a["q"])):
        h = row % Hv
        o, S = heads.gdn(
            a["q"][[row]], a["k"][[row]], a["v"][[row]], a["a"][[row]], a["b"][[row]],
            a["A_log"][h], a["dt_bias"][h], states[row],
        )  # fmt: skip
        after[row] = S[-1]
        out[row] = heads.gated_norm(o, a["norm_weight"], heads.silu(a["z"][[row]]))[0]
    return {"out": out, returned: after.swapaxes(1, 2) if transposed else after}


def gdn_tkg_grouped(a: Arguments) -> Outputs:
    """q, k [B, Hk, K]; value head j reads key head j // G."""
    B, Hv = a["v"].shape[:2]
    out, after = np.zeros(a["v"].shape), np.zeros(a["recurrent_state"].shape)
    for b in range(B):
        for h in range(Hv):
            out[b, h], after[b, h] = _grouped_head(a, b, h, a["recurrent_state"][b, h])
    return {"out": out, "recurrent_state": after}


def gdn_tkg_pool(a: Arguments) -> Outputs:
    """From and to a pool of slots; a row without slots is skipped."""
    B, Hv = a["v"].shape[:2]
    N = len(a["pool"])
    out, pool = np.zeros(a["v"].shape), np.array(a["pool"], float)
    for b in range(B):
        read, write = int(a["read"][b]), int(a["write"][b])
        if not (0 <= read < N or 0 <= write < N):
            continue
        for h in range(Hv):
            start = np.zeros(a["pool"].shape[2:])
            if 0 <= read < N and a["has_initial_state"][b]:
                start = a["pool"][read, h]
            out[b, h], after = _grouped_head(a, b, h, start)
            if 0 <= write < N:
                pool[write, h] = after
    return {"out": out, "pool": pool}


def _grouped_head(a: Arguments, b: int, h: int, start: Array) -> tuple[Array, Array]:
    key = h // (a["v"].shape[1] // a["q"].shape[1])
    o, S = heads.gdn(
        a["q"][[b], key], a["k"][[b], key], a["v"][[b], h], a["a"][[b], h], a["b"][[b], h],
        a["A_log"][h], a["dt_bias"][h], start,
    )  # fmt: skip
    return heads.gated_norm(o, a["norm_weight"], heads.silu(a["z"][[b], h]))[0], S[-1]


def kda_columns(a: Arguments) -> Outputs:
    """q, k, g are [B, K, H]; the gate is bounded if there is a bound. No norm behind it."""
    B, _, H = a["q"].shape
    out, after = np.zeros(a["v"].shape), np.zeros(a["S"].shape)
    for b in range(B):
        for h in range(H):
            f, bias = a["g"][[b], :, h], a["dt_bias"][:, h]
            log = _log_decay(f, a["a_log"][0, h], bias, a.get("lower_bound"))
            o, S = heads.kda(
                a["q"][[b], :, h], a["k"][[b], :, h], a["v"][[b], h], log, a["beta"][[b], 0, h],
                a["S"][b, h], a["scale"][0, 0],
            )  # fmt: skip
            out[b, h], after[b, h] = o[0], S[-1]
    return {"out": out, "S": after}


def kda_layer(a: Arguments, bounded: bool) -> Outputs:
    """The whole step: q, k, g [B, H, K], output norm with eps 1e-5, sigmoid gate."""
    B, H = a["v"].shape[:2]
    out, after = np.zeros(a["v"].shape), np.zeros(a["recurrent_state"].shape)
    for b in range(B):
        for h in range(H):
            bound = np.array([[-5.0]]) if bounded else None
            log = _log_decay(a["g"][[b], h], a["A_log"][h], a["dt_bias"][h], bound)
            o, S = heads.kda(
                a["q"][[b], h], a["k"][[b], h], a["v"][[b], h], log, a["beta"][[b], h],
                a["recurrent_state"][b, h],
            )  # fmt: skip
            gate = heads.logistic(a["z"][[b], h])
            out[b, h] = heads.gated_norm(o, a["norm_weight"], gate, 1e-5)[0]
            after[b, h] = S[-1]
    return {"out": out, "recurrent_state": after}


def _log_decay(f: Array, A_log: float, dt_bias: Array, bound: Array | None) -> Array:
    if bound is None:
        return heads.softplus_gate(f, A_log, dt_bias)
    return heads.bounded_gate(f, A_log, dt_bias, float(bound[0, 0]))


def qwen3next_step(a: Arguments) -> Outputs:
    """Qwen3-Next's packed rows: per key head q, k, v*r, z*r and b*r, a*r."""
    B, Hv, K, V = a["s0"].shape
    Hk = (a["qkvz"].shape[1] - 2 * Hv * V) // (2 * K)
    r = Hv // Hk
    out, after = np.zeros((B, Hv, V)), np.zeros(a["s0"].shape)
    for b in range(B):
        for key in range(Hk):
            row = a["qkvz"][b].reshape(Hk, -1)[key]
            q, k, v, z = np.split(row, [K, 2 * K, 2 * K + r * V])
            raw_b, raw_a = np.split(a["ba"][b].reshape(Hk, -1)[key], 2)
            for j in range(r):
                h, part = key * r + j, slice(j * V, (j + 1) * V)
                o, S = heads.gdn(
                    q[None], k[None], v[None, part], raw_a[[j]], raw_b[[j]],
                    a["A_log"][h], a["dt_bias"][h], a["s0"][b, h],
                )  # fmt: skip
                out[b, h], after[b, h] = o[0] * heads.silu(z[part]), S[-1]
    return {"out": out, "s1": after}
