"""Gates as emitted kernels compute them: both ends of softplus, gate forms, every bf16 value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

GATE = """
use delta_rule, gates
kernel gate:
    axes B, H, K, V
    dtypes X in bf16, f16, f32
    input x: X[B, H, V]
    input k: f32[B, H, K]
    input A_log, dt_bias: f32[H]
    state S: f32[B, H, K, V] = s0
    o, S = step gated_delta(k, k, x, 1, 1, S)
    output g: f32[B, H, V] = log_decay(x, A_log, dt_bias)
    output bounded: f32[B, H, V] = bounded_log_decay(x, A_log, dt_bias, -5)
    output s1 = S
"""


def gates(
    launch: Callable[..., Any],
    x: Any,
    A_log: float = 0.0,
    dt_bias: float = 0.0,
    dtype: Any = np.float32,
) -> dict[str, NDArray[Any]]:
    rows = np.asarray(x, np.float64).reshape(1, 1, -1).astype(dtype)
    outputs = launch(
        GATE, x=rows, k=np.zeros((1, 1, 1)), A_log=[A_log], dt_bias=[dt_bias],
        s0=np.zeros((1, 1, 1, rows.size)),
    )  # fmt: skip
    return {name: array.ravel() for name, array in outputs.items()}


SOFTPLUS = {
    19.9: -19.900000002,
    20.0: -20.000000002,
    20.1: -20.1,
    88.0: -88.0,
    89.0: -89.0,
    100.0: -100.0,
    -15.0: -3.0590227e-7,
    -30.0: -9.3576e-14,
}


def test_b14_softplus_at_both_ends(launch: Callable[..., Any]) -> None:
    g = gates(launch, [*SOFTPLUS, -100.0])["g"]
    np.testing.assert_allclose(g[:-2], list(SOFTPLUS.values())[:-1], rtol=1e-6)
    assert g[-2] == pytest.approx(-9.3576e-14, rel=1e-5)
    assert -1e-43 <= g[-1] <= 0


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32])
def test_b14_every_dtype(launch: Callable[..., Any], dtype: Any) -> None:
    g = gates(launch, [20.0, 88.0, 100.0, -15.0], dtype=dtype)["g"]
    np.testing.assert_allclose(g, [-20.0, -88.0, -100.0, -3.0590227e-7], rtol=1e-6)


def test_decay_of_a_log_minus_infinity_is_one(launch: Callable[..., Any]) -> None:
    assert (gates(launch, [5.0, 100.0, -100.0], A_log=-math.inf)["g"] == 0).all()


@pytest.mark.parametrize(
    ("x", "A_log", "dt_bias", "right"),
    [(0.3, 0.5, 0.2, -3.4758060), (0.3, 0.0, 0.2, -3.1122967), (8.0, 0.0, 0.0, -4.9983232)],
)
def test_b50_bound_is_a_sigmoid_and_no_clamp(
    launch: Callable[..., Any], x: float, A_log: float, dt_bias: float, right: float
) -> None:
    bounded = gates(launch, [x], A_log, dt_bias)["bounded"]
    assert bounded[0] == pytest.approx(right, abs=2e-6)


STRONG = """
use delta_rule, gates
kernel strong:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input f: f32[B, H, K]
    input A_log: f32[H]
    state S: f32[B, H, K, V] = s0
    o, S = step gated_delta(q, k, v, exp(log_decay(f, A_log, 0)), 1, S)
    output out: f32[B, H, V] = o
    output s1 = S
"""


@pytest.mark.parametrize(("f", "log_decay"), [(1.0, -21.0119), (40.0, -640.0)])
def test_b08_b12_a_strong_unbounded_gate_is_exact_in_one_token(
    launch: Callable[..., Any], f: float, log_decay: float
) -> None:
    """A = 16: e^-21 still counts, e^-640 is 0; nothing forms e^+21 or e^+640."""
    k = np.array([0.6, 0.8]).reshape(1, 1, 2)
    outputs = launch(
        STRONG, q=k, k=k, v=[[[3.0]]], f=np.full((1, 1, 2), f), A_log=[math.log(16)],
        s0=np.full((1, 1, 2, 1), 1e9),
    )  # fmt: skip
    old = math.exp(log_decay) * 1e9
    state = old + k.ravel() * (3 - 1.4 * old)
    np.testing.assert_allclose(outputs["s1"].ravel(), state, rtol=1e-4)
    assert outputs["out"].item() == pytest.approx(3.0, rel=1e-5)


SWEEP = """
use delta_rule, gates
kernel sweep:
    axes B, H, K, V
    input x: bf16[B, H, V]
    input k: f32[B, H, K]
    state S: f32[B, H, K, V] = s0
    o, S = step gated_delta(k, k, x, 1, 1, S)
    output sigmoid_x: f32[B, H, V] = sigmoid(x)
    output silu_x: f32[B, H, V] = silu(x)
    output softplus_x: f32[B, H, V] = softplus(x)
    output exp_x: f32[B, H, V] = exp(x)
    output s1 = S
"""
FINITE = 65280
"""Finite bf16 values: 2^16 less the two exponents of infinities and NaN (2 * 128)."""


def swept(launch: Callable[..., Any], x: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The functions of every value, a tile of rows per launch."""
    tiles = x.reshape(5, 1, -1, 128)
    heads = tiles.shape[2]
    zeros = {"k": np.zeros((1, heads, 1)), "s0": np.zeros((1, heads, 1, 128))}
    parts = [launch(SWEEP, x=tile, **zeros) for tile in tiles]
    return {name: np.concatenate([part[name].ravel() for part in parts]) for name in parts[0]}


def test_b69_every_bf16_value_through_the_emitted_functions(launch: Callable[..., Any]) -> None:
    """Error in ulps of the fp32 result and mismatches after rounding to bf16, both stated.

    The simulator's tables are exact to fp32, so these are errors of the emitted formulas; the
    hardware's own tables come on top. Results below FLOOR may be anything below it: 1 + e^-x is
    infinite for x < -88.7, where silu is still -2.6e-37.
    """
    bits = np.arange(2**16, dtype=np.uint16)
    every = bits.view(ml_dtypes.bfloat16)
    x = every[np.isfinite(every.astype(np.float32))]
    assert x.size == FINITE
    outputs = swept(launch, x)
    wide = x.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        e = np.exp(-np.abs(wide))
        sigmoid = np.where(wide >= 0, 1, e) / (1 + e)
        exact = {
            "sigmoid_x": sigmoid,
            "silu_x": wide * sigmoid,
            "softplus_x": np.maximum(wide, 0) + np.log1p(e),
            "exp_x": np.exp(wide),
        }
    for name, right in exact.items():
        got = outputs[name]
        assert not np.isnan(got).any(), name
        ulps, mismatches = compare(got, right)
        assert ulps <= ULPS[name], (name, ulps)
        assert mismatches <= MISMATCHES[name], (name, mismatches)


POWERS = """
use delta_rule
kernel powers:
    axes B, H, K, V
    input k: f32[B, H, K]
    input v: f32[B, H, V]
    input a, b: f32[B, H]
    state S: f32[B, H, K, V] = s0
    o, S = step gated_delta(k, k, v, exp({gate}), sigmoid(b), S)
    output out: f32[B, H, V] = o
    output s1 = S
"""


@pytest.mark.parametrize(
    "gate", ["-a * a", "-a * b * a * b", "-3 * a * a - 1", "-(a * a) * (a * a)"]
)
def test_a_gate_in_which_an_input_is_a_factor_more_than_once(
    launch: Callable[..., Any], run: Callable[..., Any], gate: str
) -> None:
    """An activation takes a product of columns along as its operand and its scale."""
    rng = np.random.default_rng(8)
    given = {name: rng.standard_normal((2, 3)).astype(np.float32) for name in ("a", "b")}
    given |= {name: rng.standard_normal((2, 3, 4)).astype(np.float32) for name in ("k", "v")}
    given["k"] *= 0.1
    given["s0"] = rng.standard_normal((2, 3, 4, 4)).astype(np.float32)
    text = POWERS.replace("{gate}", gate)
    exact, got = run(text, **given), launch(text, **given)
    for name, right in exact.items():
        np.testing.assert_allclose(got[name], right, rtol=1e-5, atol=1e-5)


FLOOR = 1e-36
ULPS = {"sigmoid_x": 3, "silu_x": 3, "softplus_x": 3, "exp_x": 2}
MISMATCHES = {"sigmoid_x": 0, "silu_x": 0, "softplus_x": 0, "exp_x": 1}


def compare(got: NDArray[Any], right: NDArray[Any]) -> tuple[float, int]:
    """Return the largest error in ulps of results above FLOOR, and bf16 mismatches of those."""
    with np.errstate(over="ignore"):
        narrow = right.astype(np.float32)
    normal = np.isfinite(narrow) & (np.abs(right) >= FLOOR)
    assert (got[~np.isfinite(narrow)] == narrow[~np.isfinite(narrow)]).all()
    assert (np.abs(got[np.abs(right) < FLOOR]) <= FLOOR).all()
    error = np.abs(got[normal] - right[normal]) / np.spacing(np.abs(narrow[normal]))
    rounded = [a[normal].astype(ml_dtypes.bfloat16) for a in (got, right)]
    return float(error.max()), int((rounded[0] != rounded[1]).sum())


def test_b69_sigmoid_where_a_fast_form_differed(launch: Callable[..., Any]) -> None:
    x = np.full((1, 1, 1), -6.85).astype(ml_dtypes.bfloat16)
    got = launch(SWEEP, x=x, k=np.zeros((1, 1, 1)), s0=np.zeros((1, 1, 1, 1)))["sigmoid_x"].item()
    assert got == pytest.approx(1 / (1 + math.exp(-float(x.item()))), rel=3e-7)
