"""Public kernels without a test suite that can run here: inputs, references and tolerances.

A case names the file by the end of its path, so that any checkout layout works.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from examples.bench.public_kernels.case import BF16, F32, C, Case, References, Values, random_state
from examples.bench.public_kernels.gdn_cases import GDN_CASES
from examples.bench.public_kernels.references import (
    Array,
    delta_rule,
    gated_rms_norm,
    sigmoid,
    softplus,
    unit,
)


def _triangles() -> Values:
    """Return the constant masks that the chunked kernels take."""
    ones = np.ones((C, C), F32)
    return {
        "lower_mask": np.tril(ones, -1),
        "identity": np.eye(C, dtype=F32),
        "lower_mask_diag": np.tril(ones),
    }


def _tokens(r: Generator, n: int, *, normalised: bool, heads: tuple[int, ...] = ()) -> Values:
    q, k, v = (r.standard_normal((*heads, n, C)) for _ in range(3))
    if normalised:
        q, k = unit(q) / np.sqrt(C), unit(k)
    g = -np.exp(r.uniform(-4, 0, (*heads, n, 1)))
    beta = sigmoid(r.standard_normal((*heads, n, 1)))
    names = ("query", "key", "value", "g_in", "beta_in")
    return {name: x.astype(F32) for name, x in zip(names, (q, k, v, g, beta), strict=True)}


def _wide(values: Values) -> Values:
    """Repeat the gates over the head size, as the older kernels want them."""
    return values | {name: np.repeat(values[name], C, axis=-1) for name in ("g_in", "beta_in")}


def _recurrence(x: Values, *, raw: bool = False) -> tuple[Array, Array]:
    q, k = x["query"].astype(np.float64), x["key"].astype(np.float64)
    if raw:
        q, k = unit(q, 1e-12) / np.sqrt(C), unit(k, 1e-12)
    state = x["initial_state"] if "initial_state" in x else x.get("state_in")
    if state is None:
        state = np.zeros((C, C))
    return delta_rule(q, k, x["value"], x["g_in"][:, 0], x["beta_in"][:, 0], state)


# DeltaNet of NxD Inference (contrib) and of the qwen3_6_moe translation.


def _step_batched_inputs(r: Generator) -> Values:
    x = _tokens(r, 16, normalised=True)
    return x | {"state_in": random_state(r, 16 * C, C)}


def _step_batched(x: Values) -> References:
    states = x["state_in"].reshape(-1, C, C)
    rows = [
        _recurrence({name: x[name][i : i + 1] for name in list(x)[:5]} | {"state_in": states[i]})
        for i in range(len(states))
    ]
    last = np.concatenate([row[1][-1] for row in rows])
    return np.concatenate([row[0] for row in rows]), last


def _final(x: Values, *, raw: bool = False) -> References:
    outputs, states = _recurrence(x, raw=raw)
    return outputs, states[-1]


def _chunk_step_inputs(r: Generator) -> Values:
    x = _wide(_tokens(r, C, normalised=True))
    total = np.cumsum(x.pop("g_in"), axis=0, dtype=F32)
    names = {"beta_broadcast": x.pop("beta_in"), "g_cumsum": total}
    last = np.broadcast_to(total[-1], total.shape).copy()
    return x | names | {"g_last": last, "state_in": random_state(r, C, C)} | _triangles()


def _chunk_step(x: Values) -> References:
    g = np.diff(x["g_cumsum"][:, :1].astype(np.float64), axis=0, prepend=0.0)
    gates = {"g_in": g, "beta_in": x["beta_broadcast"][:, :1]}
    return _final({name: x[name] for name in ("query", "key", "value", "state_in")} | gates)


def _multihead(x: Values) -> References:
    names = ("query", "key", "value", "g_in", "beta_in", "initial_state")
    rows = [_final({name: x[name][h] for name in names}, raw=True) for h in range(len(x["query"]))]
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


def _affine_inputs(r: Generator) -> Values:
    matrices = [(r.standard_normal((3, C, C)) / np.sqrt(C)).astype(F32) for _ in range(4)]
    names = ("output_base", "output_state", "state_matrix", "state_bias")
    return dict(zip(names, matrices, strict=True)) | {"initial_state": random_state(r, C, C)}


def _affine(x: Values) -> References:
    state, rows = x["initial_state"].astype(np.float64), []
    for i in range(len(x["state_matrix"])):
        rows.append(x["output_base"][i] + x["output_state"][i] @ state)
        state = x["state_matrix"][i] @ state + x["state_bias"][i]
    return np.concatenate(rows), state


def _prefix(x: Values) -> References:
    state, before = x["initial_state"].astype(np.float64), []
    for i in range(len(x["state_matrix"])):
        before.append(state)
        state = x["state_matrix"][i] @ state + x["state_bias"][i]
    return np.array(before), state


def _pick(make: Callable[[Generator], Values], *names: str) -> Callable[[Generator], Values]:
    return lambda r: {name: value for name, value in make(r).items() if name in names}


def _verify_inputs(hk: int, hv: int, t: int) -> Callable[[Generator], Values]:
    def make(r: Generator) -> Values:
        return {
            "q": r.standard_normal((hk, t, C)).astype(F32),
            "k": r.standard_normal((hk, t, C)).astype(F32),
            "v": r.standard_normal((hv, t, C)).astype(F32),
            "a": r.standard_normal((t, hv)).astype(F32),
            "b": r.standard_normal((t, hv)).astype(F32),
            "A_log": (0.5 * r.standard_normal(hv)).astype(F32),
            "dt_bias": (0.1 * r.standard_normal(hv)).astype(F32),
            "init_state": random_state(r, hv, C, C),
        }

    return make


def _verify_states(x: Values) -> tuple[Array, Array]:
    hv, t, _ = x["v"].shape
    group = hv // len(x["q"])
    g = -np.exp(x["A_log"].astype(np.float64)) * softplus(x["a"] + x["dt_bias"].astype(np.float64))
    beta = sigmoid(x["b"].astype(np.float64))
    out, states = np.empty((t, hv, C)), np.empty((t, hv, C, C))
    for h in range(hv):
        q, k = (unit(x[name][h // group].astype(np.float64), 0.0) for name in ("q", "k"))
        out[:, h], states[:, h] = delta_rule(
            q / np.sqrt(C), k, x["v"][h], g[:, h], beta[:, h], x["init_state"][h]
        )
    return out.reshape(t, hv * C), states


def _verify(x: Values) -> References:
    out, states = _verify_states(x)
    return out, states[-1]


def _kda_inputs(bh: int) -> Callable[[Generator], Values]:
    def make(r: Generator) -> Values:
        return {
            "q": r.standard_normal((bh, C)).astype(BF16),
            "k": r.standard_normal((bh, C)).astype(BF16),
            "v": r.standard_normal((bh, C)).astype(BF16),
            "b": r.standard_normal(bh).astype(F32),
            "g_log": -np.exp(r.uniform(-5, 1, (bh, C))).astype(F32),
            "z": r.standard_normal((bh, C)).astype(BF16),
            "norm_weight": (1 + 0.2 * r.standard_normal(C)).astype(F32),
            "state_in": random_state(r, bh, C, C),
        }

    return make


def _kda(x: Values) -> References:
    x = {name: np.asarray(value, np.float64) for name, value in x.items()}
    q, k = unit(x["q"]) / np.sqrt(C), unit(x["k"])
    rows = [
        delta_rule(q[i : i + 1], k[i : i + 1], x["v"][i : i + 1], x["g_log"][i : i + 1],
                   sigmoid(x["b"][i : i + 1]), x["state_in"][i])
        for i in range(len(q))
    ]  # fmt: skip
    o = np.concatenate([row[0] for row in rows])
    rms = np.sqrt((o * o).mean(-1, keepdims=True) + 1e-5)
    out = o / rms * x["norm_weight"] * sigmoid(x["z"])
    return out, np.array([row[1][-1] for row in rows])


def _norm_gate_inputs(r: Generator) -> Values:
    return {
        "attn_raw": r.standard_normal((2, 8 * C)).astype(F32),
        "gamma": (1 + 0.2 * r.standard_normal(C)).astype(F32),
        "z": r.standard_normal((2, 8 * C)).astype(F32),
        "eps": 1e-6,
    }


def _norm_gate(x: Values) -> References:
    o, z = (x[name].astype(np.float64).reshape(2, 8, C) for name in ("attn_raw", "z"))
    return (gated_rms_norm(o, x["gamma"], z, x["eps"]).reshape(2, 8 * C),)


def _matmul_inputs(k: int, m: int, n: int) -> Callable[[Generator], Values]:
    return lambda r: {
        "lhsT": r.standard_normal((k, m)).astype(BF16),
        "rhs": r.standard_normal((k, n)).astype(BF16),
    }


def _matmul(x: Values) -> References:
    return (x["lhsT"].astype(np.float64).T @ x["rhs"].astype(np.float64),)


_NXDI = "Qwen3.5-2B/src/nki_kernels/"
_KEV = "nki_kernels/deltanet/"
_TUTORIAL = "tutorials/matrix_multiplication/matrix_multiplication_nki_kernels.py"


def _nxdi(module: str, kernel: str, inputs: Any, expect: Any, case: str = "", lnc: int = 1) -> Case:
    return Case(_NXDI + module, kernel, case, inputs, expect, 1e-3, 1e-4, lnc=lnc)


def _kev(module: str, kernel: str, inputs: Any, expect: Any, case: str = "", lnc: int = 1) -> Case:
    return Case(_KEV + module, kernel, case, inputs, expect, 1e-2, 1e-5, lnc=lnc)


def _token_inputs(
    n: int, *, normalised: bool, wide: bool = False, extra: Sequence[str] = ()
) -> Callable[[Generator], Values]:
    def make(r: Generator) -> Values:
        x = _tokens(r, n, normalised=normalised)
        state = random_state(r, C, C)
        more = _triangles() | {"initial_state": state, "state_in": state}
        return (_wide(x) if wide else x) | {name: more[name] for name in extra}

    return make


_MASKS = ("lower_mask", "identity", "lower_mask_diag")
_RAW = _token_inputs(2 * C, normalised=False, extra=("initial_state", *_MASKS))


def _multihead_inputs(r: Generator) -> Values:
    x = _tokens(r, C, normalised=False, heads=(2,))
    return x | {"initial_state": random_state(r, 2, C, C)} | _triangles()


CASES: tuple[Case, ...] = (
    *GDN_CASES,
    _nxdi("nki_deltanet.py", "_deltanet_recurrent_step_batched_kernel", _step_batched_inputs,
          _step_batched, "BH 16"),
    _nxdi("nki_deltanet.py", "deltanet_recurrent_step",
          _token_inputs(1, normalised=True, wide=True, extra=("state_in",)), _final),
    _nxdi("nki_deltanet.py", "deltanet_recurrent_fwd",
          _token_inputs(24, normalised=True, wide=True), lambda x: _final(x)[:1], "S 24"),
    _nxdi("nki_deltanet.py", "deltanet_recurrent_fwd_state",
          _token_inputs(24, normalised=True, wide=True), _final, "S 24"),
    _nxdi("nki_deltanet_chunked.py", "deltanet_chunk_step", _chunk_step_inputs, _chunk_step),
    _nxdi("nki_deltanet_fused.py", "deltanet_fused_chunked_fwd", _RAW,
          lambda x: _final(x, raw=True), "S 256"),
    _nxdi("nki_deltanet_fused.py", "deltanet_fused_chunked_fwd_multihead", _multihead_inputs,
          _multihead, "2 heads, LNC 2", lnc=2),
    _nxdi("nki_deltanet_fused.py", "deltanet_autocp_prefix_apply_output", _affine_inputs, _affine),
    _nxdi("nki_deltanet_fused.py", "deltanet_autocp_state_prefix",
          _pick(_affine_inputs, "state_matrix", "state_bias", "initial_state"), _prefix),
    _nxdi("nki_deltanet_fused_legacy.py", "deltanet_fused_chunked_fwd",
          _token_inputs(2 * C, normalised=True, extra=("initial_state", *_MASKS)), _final, "S 256"),
    _kev("decode/recurrent.py", "deltanet_recurrent_fwd",
         _token_inputs(24, normalised=True, wide=True), lambda x: _final(x)[:1], "S 24"),
    _kev("decode/recurrent.py", "deltanet_recurrent_fwd_state",
         _token_inputs(24, normalised=True, wide=True), _final, "S 24"),
    _kev("prefill/chunked_fused.py", "deltanet_fused_chunked_fwd",
         _token_inputs(2 * C, normalised=True, extra=_MASKS), _final, "S 256"),
    _kev("prefill/chunked_step.py", "deltanet_chunk_step", _chunk_step_inputs, _chunk_step),
    *(
        _kev("components/recurrence.py", "deltanet_tkg_fwd", _verify_inputs(hk, hv, t), _verify,
             f"Hk {hk} Hv {hv} T {t}, LNC {lnc}", lnc)
        for hk, hv, t, lnc in ((1, 1, 1, 1), (2, 2, 2, 2), (4, 8, 2, 1), (4, 8, 3, 2))
    ),
    _kev("components/recurrence.py", "deltanet_tkg_fwd_state", _verify_inputs(4, 8, 3),
         _verify_states, "Hk 4 Hv 8 T 3"),
    *(
        _kev("components/norm_gate.py", "deltanet_gated_rmsnorm", _norm_gate_inputs, _norm_gate,
             f"T 2, 8 heads, LNC {lnc}", lnc)
        for lnc in (1, 2)
    ),
    *(
        Case("glm5_next/nki_kda_tkg.py", "kda_tkg", f"BH {bh}, LNC {lnc}", _kda_inputs(bh), _kda,
             1e-2, 0.0, lnc=lnc)
        for bh in (2, 6) for lnc in (1, 2)
    ),
    Case(_TUTORIAL, "nki_matmul_basic_", "64x128x512", _matmul_inputs(128, 64, 512), _matmul,
         1e-2, 1e-4),
    *(
        Case(_TUTORIAL, kernel, f"{k}x{m}x{n}", _matmul_inputs(k, m, n), _matmul, 1e-2, 1e-4)
        for kernel, k, m, n in (
            ("nki_matmul_tiled_", 256, 256, 1024),
            ("nki_matmul_hoist_load_", 256, 256, 1024),
            ("nki_matmul_block_free_dimension_", 256, 512, 1024),
            ("nki_matmul_fully_optimized_", 1024, 2048, 1024),
        )
    ),
)  # fmt: skip
