"""State dtype, order of decay and write, carried and missing states, sub-steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

BF16 = np.dtype(ml_dtypes.bfloat16)

DECODE = """
use delta_rule
kernel decode:
    axes H, K, V
    input k: bf16[H, K]
    input v: bf16[H, V]
    input g, beta: f32[H]
    state S: bf16[H, K, V] = s0
    o, S = step gated_delta(k, k, v, exp(g), beta, S)
    output out: f32[H, V] = o
    output s1: bf16[H, K, V] = S
"""

SCAN = """
use delta_rule
kernel tokens:
    axes T, K, V
    input k: f32[T, K]
    input v: f32[T, V]
    param g: float
    param beta: float
    state S: f32[K, V] = s0
    o, S = scan[T] gated_delta(k, k, v, exp(g), beta, S)
    output s1: f32[K, V] = S
"""


def in_bf16(
    run: Callable[..., Any], steps: int, start: float, k: float, g: float, beta: float
) -> float:
    """Return the state after decode calls that each store it in bf16."""
    one = np.ones((1, 1), BF16)
    gates = {"g": np.full(1, g, np.float32), "beta": np.full(1, beta, np.float32)}
    state = np.full((1, 1, 1), start, BF16)
    for _ in range(steps):
        key = (one * k).astype(BF16)
        state = run(DECODE, "declared", k=key, v=one, s0=state, **gates)["s1"]
    return float(state.item())


def in_f32(
    run: Callable[..., Any], steps: int, start: float, k: float, g: float, beta: float
) -> tuple[float, float]:
    """Return the state after as many tokens, stored in f32: computed in f32 and in float64."""
    ones = np.ones((steps, 1), np.float32)
    call = {"k": k * ones, "v": ones, "g": g, "beta": beta, "s0": np.full((1, 1), start, "f4")}
    narrow = run(SCAN, "declared", **call)["s1"]
    assert narrow.dtype == np.float32
    return narrow.item(), run(SCAN, "float64", **call)["s1"].item()


@pytest.mark.parametrize(
    ("g", "exact", "rounded"), [(-0.001, 0.3678794, 1.0), (-0.003, 0.0497871, 0.648)]
)
def test_b21_decay_of_a_state_stored_in_its_declared_dtype(
    run: Callable[..., Any], g: float, exact: float, rounded: float
) -> None:
    """1000 tokens on S = 1 that only decay it; in bf16 it stops decaying."""
    narrow, wide = in_f32(run, 1000, 1.0, 0.0, g, 0.0)
    assert wide == pytest.approx(exact, abs=1e-7)
    assert narrow == pytest.approx(exact, rel=1e-4)
    assert in_bf16(run, 1000, 1.0, 0.0, g, 0.0) == pytest.approx(rounded, abs=1e-3)


def test_b21_small_writes_vanish_only_in_a_bf16_state(run: Callable[..., Any]) -> None:
    """4096 writes of beta = 0.001 with g = -1e-4; in bf16 the state sticks at 0.25."""
    narrow, wide = in_f32(run, 4096, 0.0, 1.0, -1e-4, 0.001)
    assert wide == pytest.approx(0.8991546, abs=1e-7)
    # e^-1e-4 rounds by up to 3e-8 of itself in float32; 4096 times, that moves the sum by 2e-5.
    assert narrow == pytest.approx(0.8991546, rel=5e-5)
    assert in_bf16(run, 700, 0.0, 1.0, -1e-4, 0.001) == pytest.approx(0.25, abs=1e-3)
    assert in_bf16(run, 20, 0.25, 1.0, -1e-4, 0.001) == 0.25


def test_b49_decay_is_applied_and_the_state_is_stored(scalar: Callable[..., Any]) -> None:
    first = scalar([1.0], -1, 0.5)["s1"].item()
    second = scalar([1.0], -1, 0.5, s0=first)["s1"].item()
    assert first == 0.5
    assert second == pytest.approx(0.5919699, abs=1e-7)


def test_b54_no_gate_is_a_gate_of_zero(run: Callable[..., Any], scan_text: str) -> None:
    text = scan_text.replace("in (-inf, 0]", "in (-inf, 0] or 0.0")
    rng = np.random.default_rng(54)
    args = {name: rng.standard_normal((1, 5, 1, 3)) for name in "qkv"}
    args["beta"] = rng.random((1, 5, 1))
    with_zeros = run(text, g=np.zeros((1, 5, 1)), **args)
    without = run(text, **args)
    np.testing.assert_array_equal(with_zeros["out"], without["out"])
    np.testing.assert_array_equal(with_zeros["s1"], without["s1"])


@pytest.mark.parametrize("T", [1, 2])
def test_b70_one_row_one_token_keeps_its_shape(
    run: Callable[..., Any], scan_text: str, T: int
) -> None:
    ones = np.ones((1, T, 1, 1))
    outputs = run(scan_text, q=ones, k=ones, v=ones, g=np.zeros((1, T, 1)), beta=np.ones((1, T, 1)))
    assert outputs["out"].shape == (1, T, 1, 1)
    assert outputs["s1"].shape == (1, 1, 1, 1)


def test_b70_missing_cache_is_zeros_b62_bit_for_bit(
    run: Callable[..., Any], scan_text: str
) -> None:
    rng = np.random.default_rng(62)
    args = {name: rng.standard_normal((2, 17, 2, 4)) for name in "qkv"}
    args |= {"g": -rng.random((2, 17, 2)), "beta": rng.random((2, 17, 2))}
    zeros = run(scan_text, "float32", s0=np.zeros((2, 2, 4, 4)), **args)
    for _ in range(3):
        again = run(scan_text, "float32", **args)
        assert again["out"].tobytes() == zeros["out"].tobytes()
        assert again["s1"].tobytes() == zeros["s1"].tobytes()


PRODUCT = """
use delta_rule
kernel product:
    axes T, N, K, V
    input q: f32[T, K]
    input k: f32[T, N, K]
    input v: f32[T, N, V]
    input g: f32[T]
    input beta: f32[T, N]
    state S: f32[K, V] = s0
    o, S = scan[T] delta_product(q, k, v, exp(g), beta, S)
    output out: f32[T, V] = o
    output s1: f32[K, V] = S
"""


def test_b73_sub_steps_decay_once(run: Callable[..., Any]) -> None:
    outputs = run(
        PRODUCT,
        q=[[1.0, 1.0]],
        k=[[[1.0, 0.0], [0.0, 1.0]]],
        v=[[[3.0], [5.0]]],
        g=[math.log(0.5)],
        beta=[[1.0, 0.5]],
        s0=[[1.0], [1.0]],
    )
    np.testing.assert_allclose(outputs["s1"].ravel(), [3.0, 2.75], rtol=1e-15)
    assert outputs["out"].item() == pytest.approx(5.75, rel=1e-15)
