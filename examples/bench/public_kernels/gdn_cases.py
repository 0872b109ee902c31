"""GDN kernels of nki-library: decode, prefill, convolution and the fused decode block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from examples.bench.public_kernels.case import (
    BF16,
    F32,
    C,
    Case,
    References,
    Values,
    random_state,
)
from examples.bench.public_kernels.references import (
    Array,
    delta_rule,
    gated_rms_norm,
    sigmoid,
    silu,
    softplus,
    unit,
)


def _gdn_tkg_inputs(r: Generator) -> Values:
    bh, hv, k, v = 24, 12, 128, 128
    return {
        "q": unit(r.standard_normal((bh, k))).astype(BF16),
        "k": unit(r.standard_normal((bh, k))).astype(BF16),
        "v": r.standard_normal((bh, v)).astype(BF16),
        "b": r.standard_normal(bh).astype(F32),
        "a": (0.1 * r.standard_normal(bh)).astype(F32),
        "A_log": (0.5 * r.standard_normal(hv)).astype(F32),
        "dt_bias": (0.1 * r.standard_normal(hv)).astype(F32),
        "z": r.standard_normal((bh, v)).astype(BF16),
        "norm_weight": (1 + 0.2 * r.standard_normal(v)).astype(F32),
        "state_in": random_state(r, bh, k, v),
    }


def _gdn_tkg(x: Values) -> References:
    x = {name: np.asarray(value, np.float64) for name, value in x.items()}
    bh, hv = len(x["q"]), len(x["A_log"])
    head = np.arange(bh) % hv
    g = -np.exp(x["A_log"][head]) * softplus(x["a"] + x["dt_bias"][head])
    q, k = unit(x["q"]) / np.sqrt(x["q"].shape[1]), unit(x["k"])
    rows = [
        delta_rule(q[i : i + 1], k[i : i + 1], x["v"][i : i + 1], g[i : i + 1],
                   sigmoid(x["b"][i : i + 1]), x["state_in"][i])
        for i in range(bh)
    ]  # fmt: skip
    out = gated_rms_norm(np.concatenate([row[0] for row in rows]), x["norm_weight"], x["z"])
    return out, np.array([row[1][-1] for row in rows])


def _conv_inputs(b: int, c: int, t: int, *, decode: bool) -> Callable[[Generator], Values]:
    def make(r: Generator) -> Values:
        weight = (0.3 * r.standard_normal((c, 4))).astype(F32)
        values = (0.5 * r.standard_normal((b, c, 1 if decode else t))).astype(BF16)
        if not decode:
            return {"mixed": values, "conv_weight": weight}
        state = (0.5 * r.standard_normal((b, c, 4))).astype(BF16)
        return {"x": values, "conv_state": state, "conv_weight": weight}

    return make


def _conv_prefill(x: Values) -> References:
    tokens, weight = x["mixed"].astype(np.float64), x["conv_weight"].astype(np.float64)
    padded = np.pad(tokens, ((0, 0), (0, 0), (3, 0)))
    length = tokens.shape[2]
    out = sum(padded[:, :, j : j + length] * weight[:, j, None] for j in range(4))
    return silu(out), tokens[:, :, -4:]


def _conv_decode(x: Values) -> References:
    window = np.concatenate([x["conv_state"], x["x"]], axis=2).astype(np.float64)[:, :, 1:]
    return silu((window * x["conv_weight"]).sum(2, keepdims=True)), window


def _block_inputs(r: Generator) -> Values:
    b, h, hk, hv = 1, 128, 2, 4
    conv_dim, width = (2 * hk + hv) * C, hv * C

    def weight(n: int) -> Array:
        return np.asarray(r.standard_normal((h, n)) / np.sqrt(h), dtype=BF16)

    return {
        "hidden": r.standard_normal((b, 1, h)).astype(BF16),
        "W_in_qkv": weight(conv_dim),
        "W_in_z": weight(width),
        "W_in_a": weight(hv),
        "W_in_b": weight(hv),
        "conv_weight": (0.3 * r.standard_normal((conv_dim, 4))).astype(F32),
        "conv_state": (0.5 * r.standard_normal((b, conv_dim, 4))).astype(BF16),
        "A_log": (0.5 * r.standard_normal(hv)).astype(F32),
        "dt_bias": (0.1 * r.standard_normal(hv)).astype(F32),
        "norm_weight": (1 + 0.2 * r.standard_normal(C)).astype(F32),
        "recurrent_state": random_state(r, b, hv, C, C),
    }


def _block(x: Values) -> References:
    hidden = x["hidden"][:, 0].astype(np.float64)
    mixed, z, a, b = (
        hidden @ x[name].astype(np.float64) for name in ("W_in_qkv", "W_in_z", "W_in_a", "W_in_b")
    )
    batch, hv = len(hidden), len(x["A_log"])
    conv, window = _conv_decode(x | {"x": mixed[:, :, None]})
    width = hv * C
    keys = (conv.shape[1] - width) // 2
    group = hv // (keys // C)
    heads = {
        "q": np.repeat(conv[:, :keys].reshape(batch, -1, C), group, axis=1),
        "k": np.repeat(conv[:, keys : 2 * keys].reshape(batch, -1, C), group, axis=1),
        "v": conv[:, 2 * keys :],
        "z": z,
    }
    rows = {name: value.reshape(batch * hv, C) for name, value in heads.items()}
    out, state = _gdn_tkg(
        rows
        | {"a": a.reshape(-1), "b": b.reshape(-1)}
        | {"state_in": x["recurrent_state"].reshape(-1, C, C)}
        | {name: x[name] for name in ("A_log", "dt_bias", "norm_weight")}
    )
    return out.reshape(batch, 1, width), window, state.reshape(x["recurrent_state"].shape)


def _mask_pack() -> Array:
    """Return the ten constant planes of the Schur form."""
    row, column = np.indices((C, C))
    planes = [
        np.where(column > row, -1e9, 0.0),
        np.where(column < row, 1.0, 0.0),
        np.eye(C),
        np.where((row % 2 == 1) & (column == row - 1), 1.0, 0.0),
    ]
    for level in range(6):
        w = 2 ** (level + 1)
        same = row // (2 * w) == column // (2 * w)
        planes.append(np.where(same & (row // w % 2 == 1) & (column // w % 2 == 0), -1.0, 0.0))
    return np.array(planes, F32)


def _gdn_cte_inputs(
    algorithm: str, b: int, hk: int, hv: int, s: int, *, state: bool
) -> Callable[[Generator], Values]:
    def make(r: Generator) -> Values:
        values: Values = {
            "query": unit(r.standard_normal((b, hk, s, C))).astype(BF16),
            "key": unit(r.standard_normal((b, hk, s, C))).astype(BF16),
            "value": r.standard_normal((b, hv, s, C)).astype(BF16),
            "g_log": -np.exp(r.uniform(-5, -1, (b, hv, s))).astype(F32),
            "beta": sigmoid(r.standard_normal((b, hv, s))).astype(F32),
            "algorithm": algorithm,
            "scale": 1 / float(np.sqrt(C)),
        }
        if algorithm == "schur":
            values["mask_pack"] = _mask_pack()
        if state:
            values["recurrent_state"] = random_state(r, b, hv, C, C)
        return values

    return make


def _gdn_cte(x: Values) -> References:
    b, hv, s, _ = x["value"].shape
    group = hv // x["query"].shape[1]
    out, last = np.empty((b, hv, s, C)), np.empty((b, hv, C, C))
    for i in range(b):
        for h in range(hv):
            state = x["recurrent_state"][i, h] if "recurrent_state" in x else np.zeros((C, C))
            q = x["query"][i, h // group].astype(np.float64) * x["scale"]
            k, v = x["key"][i, h // group], x["value"][i, h]
            o, states = delta_rule(q, k, v, x["g_log"][i, h], x["beta"][i, h], state)
            out[i, h], last[i, h] = o, states[-1]
    return out, last


_GDN = "nkilib/experimental/gdn/"

GDN_CASES: tuple[Case, ...] = (
    *(
        Case(_GDN + "gdn_tkg.py", "gdn_tkg", f"BH 24, LNC {lnc}", _gdn_tkg_inputs, _gdn_tkg,
             2e-2, 2e-2, target, lnc)
        for target in ("trn2", "trn3") for lnc in (1, 2)
    ),
    Case(_GDN + "gdn_cte.py", "gdn_cte", "schur B1 Hk2 Hv4 S256, state",
         _gdn_cte_inputs("schur", 1, 2, 4, 256, state=True), _gdn_cte, 5e-2, 5e-2),
    Case(_GDN + "gdn_cte.py", "gdn_cte", "schur B2 Hk2 Hv2 S128, LNC 2",
         _gdn_cte_inputs("schur", 2, 2, 2, 128, state=False), _gdn_cte, 5e-2, 5e-2, lnc=2),
    Case(_GDN + "gdn_cte.py", "gdn_cte", "neumann B1 H2 S128",
         _gdn_cte_inputs("neumann", 1, 2, 2, 128, state=False), _gdn_cte, 5e-2, 5e-2),
    Case(_GDN + "gdn_cte.py", "gdn_cte", "neumann B2 H1 S256",
         _gdn_cte_inputs("neumann", 2, 1, 1, 256, state=False), _gdn_cte, 5e-2, 5e-2),
    *(
        Case(_GDN + "gdn_conv1d.py", "gdn_conv1d_prefill", f"B {b} C {c} T {t}",
             _conv_inputs(b, c, t, decode=False), _conv_prefill, 2e-2, 2e-2)
        for b, c, t in ((1, 256, 8), (2, 1024, 16))
    ),
    *(
        Case(_GDN + "gdn_conv1d.py", "gdn_conv1d_decode", f"B {b} C {c}",
             _conv_inputs(b, c, 1, decode=True), _conv_decode, 2e-2, 2e-2)
        for b, c in ((1, 256), (2, 1024))
    ),
    Case(_GDN + "gdn_block_tkg.py", "gdn_block_tkg", "B 1 H 128 Hk 2 Hv 4", _block_inputs, _block,
         3e-2, 3e-2),
)  # fmt: skip
