"""Strong and absent decay: exponentials that overflow elsewhere must not overflow here."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gdsl.ir.kernel import Kernel, Let

GATED = """
use delta_rule, gates
kernel gated:
    axes B, H, T, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input a: f32[B, T, H]
    input A_log, dt_bias: f32[H]
    input beta: f32[B, T, H]
    state S: f32[B, H, K, V] = s0 or zeros
    g = log_decay(a, A_log, dt_bias)
    o, S = scan[T] gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, T, H, V] = o
    output g_out: f32[B, T, H] = g
"""


@pytest.mark.parametrize("T", [1, 20, 65, 79])
def test_b07_strong_decay_at_any_length(scalar: Callable[..., Any], T: int) -> None:
    """The recurrence has no partial chunk; the closed form is what kernels are held against."""
    rho = 0.5 * math.exp(-10)
    right = 0.5 * (1 - rho**T) / (1 - rho)
    assert scalar([1.0] * T, -10, 0.5)["s1"][0] == pytest.approx(right, rel=1e-14)
    if T == 20:
        assert right == pytest.approx(0.5000114, abs=1e-7)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("g", [-0.7, -1.5, -6.0, -21.0])
def test_b08_uniform_decay_that_overflows_chunks(
    scalar: Callable[..., Any], precision: str, g: float
) -> None:
    T, rho = 256, 0.5 * math.exp(g)
    outputs = scalar([1.0] * T, g, 0.5, precision=precision)
    assert np.isfinite(outputs["out"]).all()
    right = 0.5 * (1 - rho**T) / (1 - rho)
    assert outputs["s1"][0] == pytest.approx(right, rel=1e-5)


def test_b08_one_strong_head_emits_only_its_own_token(run: Callable[..., Any]) -> None:
    rng = np.random.default_rng(8)
    q, k, v = (rng.standard_normal((1, 40, 1, 4)) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    beta = rng.uniform(0, 1, (1, 40, 1))
    outputs = run(
        GATED, "float32", q=q, k=k, v=v, a=np.ones((1, 40, 1)), A_log=np.array([np.log(16)]),
        dt_bias=np.zeros(1), beta=beta,
    )  # fmt: skip
    assert outputs["g_out"][0, 0, 0] == pytest.approx(-21.0, abs=0.02)
    own = beta[..., None] * (q * k).sum(-1, keepdims=True) * v
    np.testing.assert_allclose(outputs["out"], own, atol=1e-6)


def test_b08_the_sign_of_the_gate_is_known_from_its_form(
    kernel: Callable[[str], Kernel],
) -> None:
    """What lets a plan choose a select instead of a mask: g <= 0 follows from the text alone."""
    body = kernel(GATED).body
    (gate,) = [s for s in body if isinstance(s, Let) and s.target.name == "g"]
    assert gate.value.type.range.hi <= 0


@pytest.mark.parametrize("T", [7, 50, 2048])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_b09_decay_of_one_is_delta_net(scalar: Callable[..., Any], T: int, zero: float) -> None:
    state = scalar([1.0] * T, zero, 0.5)["s1"][0]
    assert state == 1 - 2.0**-T


def test_b09_half_of_the_tokens_without_decay(run: Callable[..., Any], scan_text: str) -> None:
    rng = np.random.default_rng(9)
    T, K = 50, 8
    q, k, v = (rng.standard_normal((1, T, 1, K)) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    beta = rng.uniform(0, 1, (1, T, 1))
    plain = scan_text.replace("exp(g)", "1").replace(
        "    input g: f32[B, T, Hv] in (-inf, 0]\n", ""
    )
    args = {"q": q, "k": k, "v": v, "beta": beta}
    without = run(plain, **args)["out"]
    np.testing.assert_array_equal(run(scan_text, g=np.zeros((1, T, 1)), **args)["out"], without)
    half = np.where(rng.random((1, T, 1)) < 0.5, 0.0, -0.3)
    assert not np.allclose(run(scan_text, g=half, **args)["out"], without)


def test_b12_unbounded_gate_is_exact(run: Callable[..., Any]) -> None:
    """G = -336 inside 16 tokens: exact here; the chunk planner's refusal is tested with it."""
    T = 16
    ones = np.ones((1, T, 1, 1))
    outputs = run(
        GATED, "float32", q=ones, k=ones, v=ones, a=np.ones((1, T, 1)),
        A_log=np.array([np.log(16)]), dt_bias=np.zeros(1), beta=np.full((1, T, 1), 0.5),
    )  # fmt: skip
    np.testing.assert_allclose(outputs["out"].ravel(), 0.5, rtol=1e-6)
