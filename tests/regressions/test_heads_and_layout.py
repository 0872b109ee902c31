"""Which key head a value head reads, and how packed rows are split: declared, never guessed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gdsl.errors import CompileError
from gdsl.ir.kernel import Kernel

STEP = """
use delta_rule
kernel heads:
    axes B, Hk, G, Hv = ({map}), K, V
    input q, k: f32[B, Hk, K]
    input v: f32[B, Hv, V]
    state S: f32[B, Hv, K, V] = s0 or zeros
    o, S = step gated_delta(q, k, v, 1, 1, S)
    output out: f32[B, Hv, V] = o
"""


@pytest.mark.parametrize(
    ("head_map", "right"),
    [("Hk G", [10.0, 20.0, 0.0, 0.0]), ("G Hk", [10.0, 0.0, 30.0, 0.0])],
)
def test_b15_interleaved_and_tiled_head_map(
    run: Callable[..., Any], head_map: str, right: list[float]
) -> None:
    out = run(
        STEP.replace("{map}", head_map),
        q=np.ones((1, 2, 1)),
        k=np.array([1.0, 0.0]).reshape(1, 2, 1),
        v=np.array([10.0, 20.0, 30.0, 40.0]).reshape(1, 4, 1),
    )["out"]
    assert out.ravel().tolist() == right


def test_b15_a_head_map_is_never_guessed(kernel: Callable[[str], Kernel]) -> None:
    text = STEP.replace("axes B, Hk, G, Hv = ({map}), K, V", "axes B, Hk, Hv, K, V")
    with pytest.raises(CompileError) as error:
        kernel(text)
    assert "E0408" in {d.code for d in error.value.diagnostics}


GROUPED = """
use delta_rule
kernel grouped:
    axes B, Hk, G, Hv = (Hk G), K, V
    input q, k: f32[B, Hk, K]
    input v: f32[B, Hv, V]
    input g, beta: f32[B, {heads}]
    state S: f32[B, Hv, K, V] = s0
    o, S = step gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, Hv, V] = o
"""


def test_b18_gates_per_key_head_follow_the_same_map(run: Callable[..., Any]) -> None:
    rng = np.random.default_rng(18)
    args = {
        "q": rng.standard_normal((1, 2, 3)),
        "k": rng.standard_normal((1, 2, 3)),
        "v": rng.standard_normal((1, 4, 3)),
        "s0": rng.standard_normal((1, 4, 3, 3)),
    }
    g, beta = -rng.random((1, 2)), rng.random((1, 2))
    per_key = run(GROUPED.replace("{heads}", "Hk"), g=g, beta=beta, **args)["out"]
    repeated = {"g": np.repeat(g, 2, 1), "beta": np.repeat(beta, 2, 1)}
    np.testing.assert_array_equal(
        per_key, run(GROUPED.replace("{heads}", "Hv"), **repeated, **args)["out"]
    )


BA = """
kernel split:
    axes B, Hk, G, Hv = (Hk G), R = b:G | a:G
    input ba: f32[B, (Hk R)]
    input A_log: f32[Hv]
    param Hk: int
    b, a = unpack[R](ba)
    output beta: f32[B, Hv] = b + 0 * A_log
    output alpha: f32[B, Hv] = a
"""

QKVZ = """
kernel split:
    axes B, Hk, G, Hv = (Hk G), K, V, P = q:K | k:K | v:(G V) | z:(G V)
    input qkvz: f32[B, (Hk P)]
    param Hk: int
    param G: int
    param K: int
    q, k, v, z = unpack[P](qkvz)
    output q_out: f32[B, Hk, K] = q
    output k_out: f32[B, Hk, K] = k
    output v_out: f32[B, Hv, V] = v
    output z_out: f32[B, Hv, V] = z
"""


def test_b19_packed_gates_are_split_per_key_head(run: Callable[..., Any]) -> None:
    """Row [b0,b1,a0,a1,b2,b3,a2,a3]; the midpoint would give b = [b0,b1,a0,a1]."""
    row = [[0.0, 1.0, 10.0, 11.0, 2.0, 3.0, 12.0, 13.0]]
    outputs = run(BA, ba=row, A_log=[0.0] * 4, Hk=2)
    assert outputs["beta"].tolist() == [[0.0, 1.0, 2.0, 3.0]]
    assert outputs["alpha"].tolist() == [[10.0, 11.0, 12.0, 13.0]]


def test_b19_packed_projection_is_split_per_key_head(run: Callable[..., Any]) -> None:
    """Row [q0,k0,v0,v1,z0,z1,q1,k1,v2,v3,z2,z3]."""
    row = [[1.0, 11.0, 20.0, 21.0, 30.0, 31.0, 2.0, 12.0, 22.0, 23.0, 32.0, 33.0]]
    outputs = run(QKVZ, qkvz=row, Hk=2, G=2, K=1)
    assert outputs["q_out"].ravel().tolist() == [1.0, 2.0]
    assert outputs["k_out"].ravel().tolist() == [11.0, 12.0]
    assert outputs["v_out"].ravel().tolist() == [20.0, 21.0, 22.0, 23.0]
    assert outputs["z_out"].ravel().tolist() == [30.0, 31.0, 32.0, 33.0]


@pytest.mark.parametrize(("K", "V"), [(100, 60), (128, 256), (1, 1), (192, 96)])
def test_b76_the_definition_has_no_dimension_limits(
    run: Callable[..., Any], K: int, V: int
) -> None:
    """Limits belong to a target and are reported there with the numbers."""
    out = run(
        STEP.replace("{map}", "Hk G"),
        q=np.ones((1, 2, K)),
        k=np.ones((1, 2, K)) / np.sqrt(K),
        v=np.ones((1, 4, V)),
    )["out"]
    np.testing.assert_allclose(out, np.sqrt(K))


def test_b55_many_rows(run: Callable[..., Any]) -> None:
    """N * HV = 65,536 rows of one token."""
    out = run(
        STEP.replace("{map}", "Hk G"),
        q=np.ones((2048, 16, 1)),
        k=np.ones((2048, 16, 1)),
        v=np.ones((2048, 32, 1)),
    )["out"]
    assert out.shape == (2048, 32, 1)
    assert (out == 1).all()
