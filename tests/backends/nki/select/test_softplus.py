"""softplus and the decays made from it, on chip: without a function but exp, and rounded once."""

from __future__ import annotations

import numpy as np
import pytest

from gdsl import api

TEXT = """
rule keep[K, V](q[K], k[K], v[V], decay[K?], state S[K, V]) -> o[V]:
    S = decay * S + k * v
    o = sum[K](q * S)
kernel gate:
    axes H, K, V
    input k: f32[H, K]
    input v: f32[H, V]
    input a: f32[H{wide}]
    input A: f32[H]
    state S: f32[H, K, V] = s0
    g = softplus(a)
    decay = exp(-A * g)
    o, S = step keep(k, k, v, decay, S)
    output out: f32[H, V] = o
    output soft: f32[H{wide}] = g
    output d: f32[H{wide}] = decay
    output s1: f32[H, K, V] = S
"""
H, K, V = 64, 32, 4


def _run(wide: bool, a: np.ndarray, A: np.ndarray) -> dict[str, np.ndarray]:
    definition = api.loads(TEXT.format(wide=", K" if wide else ""))
    zeros = {"k": (H, K), "v": (H, V), "s0": (H, K, V)}
    given = {name: np.zeros(shape, np.float32) for name, shape in zeros.items()}
    return api.compile(definition, target="trn2").run({**given, "a": a, "A": A})


@pytest.mark.parametrize("wide", [False, True])
def test_softplus_is_accurate_at_both_ends(wide: bool) -> None:
    shape = (H, K) if wide else (H,)
    a = np.linspace(-85, 120, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    found = _run(wide, a, np.ones(H, np.float32))["soft"]
    np.testing.assert_allclose(found, np.logaddexp(0, a.astype(np.float64)), rtol=5e-7)


@pytest.mark.parametrize("wide", [False, True])
def test_decays_near_1_are_rounded_once(wide: bool) -> None:
    """As in the definition in float32; errors of a product of factors would add up over tokens."""
    rng = np.random.default_rng(0)
    shape = (H, K) if wide else (H,)
    a = rng.uniform(-9, 3, shape).astype(np.float32)
    exact = np.logaddexp(0, a.astype(np.float64))
    A = (1e-4 / (exact[:, 0] if wide else exact)).astype(np.float32)
    log_decay = -exact * (A[:, None] if wide else A)
    decay = np.exp(log_decay)
    near = decay > 0.99
    assert near.mean() > 0.3
    error = (_run(wide, a, A)["d"] - decay)[near]
    rounded = (np.exp(log_decay.astype(np.float32)) - decay)[near]
    assert error.std() <= 1.05 * rounded.std()


def test_a_gate_of_minus_infinity_decays_nothing() -> None:
    a = np.full(H, 50, np.float32)
    assert (_run(False, a, np.zeros(H, np.float32))["d"] == 1).all()
