"""softplus at both ends, gate forms, gate space."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gdsl.errors import RunError

GATE = """
use gates
kernel gate:
    axes N
    dtypes X in bf16, f16, f32
    input a: X[N]
    input A_log, dt_bias: f32[N]
    output g: f32[N] = log_decay(a, A_log, dt_bias)
"""

BOUNDED = """
use gates
kernel gate:
    axes N
    input f, dt_bias: f32[N]
    input A_log: f32[N] or 0.0
    output g: f32[N] = bounded_log_decay(f, A_log, dt_bias, -5)
"""

UPPER = [
    (19.9, -19.900000002),
    (20.0, -20.000000002),
    (20.1, -20.1),
    (88.0, -88.0),
    (89.0, -89.0),
    (100.0, -100.0),
    (-15.0, -3.0590227e-7),
    (-30.0, -9.3576e-14),
]


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(("x", "right"), UPPER)
def test_b14_softplus_is_stable_at_both_ends(
    run: Callable[..., Any], precision: str, x: float, right: float
) -> None:
    g = run(GATE, precision, a=[x], A_log=[0.0], dt_bias=[0.0])["g"][0]
    assert g == pytest.approx(right, rel=1e-5 if x == -30 else 1e-6)


def test_b14_far_below_it_is_zero(run: Callable[..., Any]) -> None:
    g = run(GATE, "float32", a=[-100.0], A_log=[0.0], dt_bias=[0.0])["g"][0]
    assert -1e-43 <= g <= 0


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32])
def test_b14_every_dtype(run: Callable[..., Any], dtype: Any) -> None:
    a = np.array([20.0, 88.0, 100.0, -15.0], dtype)
    zeros = np.zeros(4, np.float32)
    g = run(GATE, "declared", a=a, A_log=zeros, dt_bias=zeros)["g"]
    np.testing.assert_allclose(g, [-20.0, -88.0, -100.0, -3.0590227e-7], rtol=1e-6)


def test_decay_of_a_log_minus_infinity_is_one(run: Callable[..., Any]) -> None:
    """A = 0: the gate is 0, never inf * 0."""
    g = run(GATE, a=[5.0], A_log=[-math.inf], dt_bias=[0.0])["g"][0]
    assert g == 0


@pytest.mark.parametrize(
    ("f", "A_log", "dt_bias", "right"),
    [(0.3, 0.5, 0.2, -3.4758060), (8.0, 0.0, 0.0, -4.9983232)],
)
def test_b50_bound_is_a_sigmoid_and_no_clamp(
    run: Callable[..., Any], f: float, A_log: float, dt_bias: float, right: float
) -> None:
    g = run(BOUNDED, f=[f], A_log=[A_log], dt_bias=[dt_bias])["g"][0]
    assert g == pytest.approx(right, abs=1e-7)


def test_b50_absent_a_log(run: Callable[..., Any]) -> None:
    g = run(BOUNDED, f=[0.3], dt_bias=[0.2])["g"][0]
    assert g == pytest.approx(-3.1122967, abs=1e-7)


LINEAR = """
use delta_rule
kernel linear:
    axes B, H, T, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input alpha: f32[B, T, H] in (0, 1]
    input beta: f32[B, T, H]
    state S: f32[B, H, K, V] = s0
    o, S = scan[T] gated_delta(q, k, v, alpha, beta, S)
    output s1: f32[B, H, K, V] = S
"""


def one_token(**gate: float) -> dict[str, Any]:
    one = np.ones((1, 1, 1, 1))
    scalars = {name: np.full((1, 1, 1), value) for name, value in gate.items()}
    return {"q": one, "k": 0 * one, "v": one, "beta": np.ones((1, 1, 1)), "s0": one, **scalars}


def test_b42_the_space_of_a_gate_is_declared(run: Callable[..., Any], scan_text: str) -> None:
    right = pytest.approx(0.9048374, abs=1e-7)
    assert run(scan_text, **one_token(g=-0.1))["s1"].item() == right
    assert run(LINEAR, **one_token(alpha=math.exp(-0.1)))["s1"].item() == right


@pytest.mark.parametrize(
    ("linear", "gate", "shown"),
    [
        (True, {"alpha": -0.1}, "is -0.1 at B=0, T=0, H=0, outside its declared range (0, 1]"),
        (True, {"alpha": 0.0}, "`alpha` is 0 at"),
        (False, {"g": 0.9}, "is 0.9 at B=0, T=0, Hk=0, G=0, outside its declared range (-inf, 0]"),
    ],
)  # fmt: skip
def test_b42_a_gate_in_the_wrong_space_is_refused(
    run: Callable[..., Any], scan_text: str, linear: bool, gate: dict[str, float], shown: str
) -> None:
    with pytest.raises(RunError) as error:
        run(LINEAR if linear else scan_text, **one_token(**gate))
    assert shown in error.value.diagnostics[0].message
