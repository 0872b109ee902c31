"""The interpreter with rounded operands errs as much as rounding them by hand does."""

import ml_dtypes
import numpy as np
import pytest

import gdsl
from gdsl import registry
from gdsl.ir.text import kernel_text
from gdsl.runner import RunOptions
from gdsl.verification.rounding import round_operands

TEXT = """\
use delta_rule
kernel plain:
    axes K, V
    input q, k: f32[K]
    input v: f32[V]
    input beta: f32[1] in [0, 1]
    state S: f32[K, V] = s0
    o, S = step delta(q, k, v, beta, S)
    output out: f32[V] = o
    output s1: f32[K, V] = S
"""


def rounded(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


def test_it_rounds_q_k_delta_and_the_state_operand_and_nothing_else() -> None:
    kernel = gdsl.loads(TEXT).kernel
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(8).astype(np.float32) for _ in range(3))
    beta = np.array([0.7], np.float32)
    S = rng.standard_normal((8, 8)).astype(np.float32)
    arguments = {"q": q, "k": k, "v": v, "beta": beta, "s0": S}
    got = registry.interpreter().run(round_operands(kernel), arguments, RunOptions("declared"))
    delta = beta * (v - rounded(k) @ rounded(S))
    expected = S + np.outer(rounded(k), rounded(delta))
    np.testing.assert_allclose(got["s1"], expected, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(got["out"], rounded(q) @ rounded(expected), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["gdn_tkg", "kda_tkg", "delta_product_fwd", "rwkv7_fwd"])
def test_library_rules_get_casts_and_windows_do_not(name: str) -> None:
    kernel = gdsl.load(name).kernel
    assert "bf16(" in kernel_text(round_operands(kernel))
    window = gdsl.load("gdn_conv1d_decode").kernel
    assert round_operands(window).body == window.body
