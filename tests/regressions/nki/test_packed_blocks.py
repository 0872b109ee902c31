"""Packed projections in emitted blocks: every field is found where the checkpoint has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

B, HID, HK, G, K, V, W = 2, 128, 3, 2, 16, 8, 4
Array = NDArray[Any]


def _bf16(x: Array) -> Array:
    rounded: Array = x.astype(ml_dtypes.bfloat16)
    return rounded


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize(
    ("form", "tokens", "state_out", "window_out"),
    [
        ("tkg", 1, "state_out", "conv_out"),
        ("prefill", 131, "recurrent_state", "conv_state"),
    ],
)
def test_b19_fields_side_by_side_or_within_each_key_head(
    launch: Callable[..., Any], form: str, tokens: int, state_out: str, window_out: str, lnc: int
) -> None:
    """One set of weights in two packings, more value than key heads: the same layer, bit for bit.

    A split of `in_proj_qkvz` or `in_proj_ba` at the midpoint, or of all heads instead of each
    key head's own, gives other numbers.
    """
    rng = np.random.default_rng(19)

    def weight(*columns: int) -> Array:
        return rng.normal(0.0, HID**-0.5, (HID, *columns))

    q, k = weight(HK, K), weight(HK, K)
    v, z = weight(HK, G * V), weight(HK, G * V)
    a, b = weight(HK, G), weight(HK, G)
    taps = [rng.normal(size=(HK, n, W)) for n in (K, K, G * V)]
    windows = [rng.normal(size=(B, HK * n, W)) for n in (K, K, G * V)]
    state = rng.normal(size=(B, HK * G, K, V)).astype(np.float32)
    both = {
        "hidden": _bf16(rng.normal(size=(B, tokens, HID))),
        "A_log": rng.normal(size=HK * G),
        "dt_bias": rng.normal(size=HK * G),
        "norm_weight": rng.normal(size=V),
        "recurrent_state": state,
    }

    def flat(x: Array) -> Array:
        return _bf16(x.reshape(HID, -1))

    side_by_side = launch(
        f"gdn_block_{form}",
        lnc=lnc,
        **both,
        W_in_qkv=np.concatenate([flat(x) for x in (q, k, v)], axis=1),
        W_in_z=flat(z),
        W_in_a=flat(a),
        W_in_b=flat(b),
        conv_weight=np.concatenate([x.reshape(-1, W) for x in taps]),
        conv_state=_bf16(np.concatenate(windows, axis=1)),
    )
    within = launch(
        f"qwen3next_block_{form}",
        lnc=lnc,
        **both,
        W_qkvz=flat(np.concatenate([q, k, v, z], axis=2)),
        W_ba=flat(np.concatenate([b, a], axis=2)),
        **{f"conv_{n}": x.reshape(-1, W) for n, x in zip("qkv", taps, strict=True)},
        **{f"conv_state_{n}": _bf16(x) for n, x in zip("qkv", windows, strict=True)},
    )
    for name in ("core_out", state_out):
        assert side_by_side[name].tobytes() == within[name].tobytes(), name
    window = np.concatenate([within[f"{window_out}_{n}"] for n in "qkv"], axis=1)
    assert side_by_side[window_out].tobytes() == window.tobytes()


@pytest.mark.parametrize("G", [1, 3])
def test_fields_of_two_tensors_that_are_called_alike(both: Callable[..., Any], G: int) -> None:
    """A bias of all channels is cut into the fields of the window that it is added to."""
    text = """
use delta_rule, norms, conv
kernel biased:
    axes B, Hk, G, Hv = (Hk G), K, V, W, C = q:(Hk K) | k:(Hk K) | v:(Hk G V)
    input x: f32[B, C]
    input conv_weight: f32[C, W]
    input bias: f32[C]
    state win: f32[B, C, W] = conv_state
    state S: f32[B, Hv, K, V] = s0
    y, win = step causal_conv(x, conv_weight, win)
    q, k, v = unpack[C](y + bias)
    o, S = step delta(q, l2norm[K](k), v, 1, S)
    output out: f32[B, Hv, V] = o
    output c1: f32[B, C, W] = win
    output s1: f32[B, Hv, K, V] = S
"""
    got, right = both(text, {"B": 3, "Hk": 2, "G": G, "K": 8, "V": 12, "W": 4})
    for name, array in right.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-4, atol=1e-5)
