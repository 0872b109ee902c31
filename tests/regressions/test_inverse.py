"""Correlated and repeated keys: where chunk inverses break, the recurrence is exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gdsl.errors import RunError
from tests.references.recurrences import kimi_delta

BOUNDED = """
use delta_rule, gates, norms
kernel bounded:
    axes B, H, T, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input raw: f32[B, T, H, K]
    input A_log: f32[H]
    input dt_bias: f32[H, K]
    input logit: f32[B, T, H]
    state S: f32[B, H, K, V] = s0 or zeros
    decay = exp(bounded_log_decay(raw, A_log, dt_bias, -5))
    o, S = scan[T] gated_delta(l2norm[K](q) * K ** -0.5, l2norm[K](k), v, decay, sigmoid(logit), S)
    output out: f32[B, T, H, V] = o
    output s1: f32[B, H, K, V] = S
"""

KDA = """
use delta_rule
kernel kda:
    axes B, H, T, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input g: f32[B, T, H, K] in (-inf, 0]
    input beta: f32[B, T, H]
    state S: f32[B, H, K, V] = s0 or zeros
    o, S = scan[T] gated_delta(q * K ** -0.5, k, v, exp(g), beta, S)
    output out: f32[B, T, H, V] = o
"""


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    ("signs", "states"),
    [((1.0, 1.0), [None, None, 0.99999999]), ((1.0, -1.0), [0.99966465, -0.99932942, 0.99932953])],
)
def test_b01_equal_tokens_stay_finite(
    run: Callable[..., Any], precision: str, signs: tuple[float, float], states: list[float | None]
) -> None:
    T, K = 64, 128
    rows = np.zeros((1, T, 1, K))
    rows[..., 3] = 1e4  # one vector, long enough for the eps of the norm to vanish
    v = np.ones((1, T, 1, K)) * np.resize(signs, T)[None, :, None, None]
    outputs = run(
        BOUNDED,
        precision,
        q=rows,
        k=rows,
        v=v,
        raw=np.full((1, T, 1, K), -12.0),
        A_log=np.zeros(1),
        dt_bias=np.zeros((1, K)),
        logit=np.full((1, T, 1), 8.0),
    )
    seen = outputs["out"][0, :, 0, 5] * np.sqrt(K)
    tolerance = 2e-8 if precision == "float64" else 1e-6
    for token, state in enumerate(states):
        if state is not None:
            token = 15 if signs == (1.0, 1.0) else token
            assert seen[token] == pytest.approx(state, abs=tolerance)
    if signs == (1.0, 1.0):
        assert outputs["out"][0, 15, 0, 0] == pytest.approx(0.08838835, abs=1e-7)
    assert np.isfinite(outputs["s1"]).all()


def correlated(rng: np.random.Generator, shape: tuple[int, ...], strength: float) -> Any:
    mean = rng.standard_normal(shape[-1])
    keys = strength * mean + rng.standard_normal(shape)
    return keys / np.linalg.norm(keys, axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("case", "T", "strength", "betas", "g"),
    [
        ("b02 slow decay", 64, 3.0, (0.9, 1.0), -1e-3),
        ("b02 fast decay", 64, 3.0, (0.9, 1.0), -3.0),
        ("b04 64 tokens", 64, 3.0, (0.9, 0.9), -1e-4),
        ("b04 128 tokens", 128, 3.0, (0.9, 0.9), -1e-4),
    ],
)
def test_b02_b04_correlated_keys_in_float32(
    run: Callable[..., Any],
    case: str,
    T: int,
    strength: float,
    betas: tuple[float, float],
    g: float,
) -> None:
    rng = np.random.default_rng(len(case))
    K = 128
    k = correlated(rng, (1, T, 1, K), strength)
    q = correlated(rng, (1, T, 1, K), 0.0)
    v = rng.standard_normal((1, T, 1, K))
    beta = rng.uniform(*betas, (1, T, 1))
    decay = np.full((1, T, 1, K), g)
    out = run(KDA, "float32", q=q, k=k, v=v, g=decay, beta=beta)["out"][0, :, 0]
    right, _ = kimi_delta(
        q[0, :, 0] / np.sqrt(K),
        k[0, :, 0],
        v[0, :, 0],
        np.exp(decay[0, :, 0]),
        beta[0, :, 0],
        np.zeros((K, K)),
    )
    assert np.abs(out - right).max() <= 1e-5 * max(np.sqrt(np.mean(right**2)), 1e-3)


def test_b05_stated_key_norm_is_checked_and_reported(run: Callable[..., Any]) -> None:
    text = """
use delta_rule
kernel stated:
    axes B, H, T, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input beta: f32[B, T, H] in [0, 1]
    assume sum[K](k * k) <= 1.01
    state S: f32[B, H, K, V] = s0 or zeros
    o, S = scan[T] gated_delta(q, k, v, 1, beta, S)
    output out: f32[B, T, H, V] = o
    """
    k = np.zeros((1, 4, 1, 2))
    k[0, 2, 0] = 2.0, 2.0
    zeros = np.zeros((1, 4, 1, 2))
    with pytest.raises(RunError) as error:
        run(text, q=zeros, k=k, v=zeros, beta=np.zeros((1, 4, 1)))
    (found,) = error.value.diagnostics
    assert found.code == "E0707"
    assert "B=0, H=0, T=2" in found.message
    assert "8 against 1.01" in found.message
