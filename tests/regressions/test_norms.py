"""l2norm and its eps, output gates, the precision a text asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

L2 = """
use norms
kernel norm:
    axes B, K
    input x: f32[B, K]
    output inside: f32[B, K] = l2norm[K](x)
    output outside: f32[B, K] = x / (sqrt(sum[K](x * x)) + 1e-6)
    output largest: f32[B, K] = x / max(sqrt(sum[K](x * x)), 1e-6)
    output bare: f32[B, K] = x * rsqrt(sum[K](x * x))
    output mean_form: f32[B, K] = rms_norm[K](x) * K ** -0.5
"""


def one_hot(size: float) -> Any:
    row = np.zeros((1, 128))
    row[0, 7] = size
    return row


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    ("size", "right"),
    [(1, 0.9999995), (0.1, 0.99995), (0.01, 0.9950372), (1e-3, 0.7071068), (1e-4, 0.0995037)],
)
def test_b51_eps_inside_the_root(
    run: Callable[..., Any], precision: str, size: float, right: float
) -> None:
    assert run(L2, precision, x=one_hot(size))["inside"][0, 7] == pytest.approx(right, abs=1e-7)


def test_b51_an_all_zero_row_is_zero_with_eps_and_nan_without(run: Callable[..., Any]) -> None:
    outputs = run(L2, x=one_hot(0.0))
    assert (outputs["inside"] == 0).all()
    assert np.isnan(outputs["bare"]).all()


def test_b51_the_other_forms_are_other_texts(run: Callable[..., Any]) -> None:
    small = {name: x[0, 7] for name, x in run(L2, x=one_hot(1e-3)).items()}
    assert small["outside"] == pytest.approx(0.9990010, abs=1e-7)
    assert small["largest"] == pytest.approx(1.0, abs=1e-12)
    assert small["mean_form"] == pytest.approx(0.0880451, abs=1e-7)
    tenth = run(L2, x=one_hot(0.1))["mean_form"][0, 7]
    assert tenth == pytest.approx(0.9936608, abs=1e-7)


GATED = """
use gates, norms
kernel gated:
    axes V
    input o, z: f32[V]
    output silu_after: f32[V] = rms_norm[V](o) * silu(z)
    output sigmoid_after: f32[V] = rms_norm[V](o) * sigmoid(z)
    output gate_first: f32[V] = rms_norm[V](o * silu(z))
"""


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("silu_after", [0.6203237, -0.2697254]),
        ("sigmoid_after", [0.6203237, 0.1348627]),
        ("gate_first", [1.2969178, -0.5639179]),
    ],
)
def test_b48_gate_function_and_order(
    run: Callable[..., Any], name: str, right: list[float]
) -> None:
    outputs = run(GATED, o=[3.0, 4.0], z=[1.0, -2.0])
    np.testing.assert_allclose(outputs[name], right, atol=1e-7)


PROFILES = """
use norms
kernel profiles:
    axes T, K
    input x: bf16[T, K]
    output fp32: f32[T, K] = l2norm[K](x)
    output hf: f32[T, K] = bf16(x * bf16(rsqrt(bf16(bf16(sum[K](bf16(x * x))) + 1e-6))))
"""


def test_b53_the_compute_dtype_of_a_norm_stands_in_the_text(run: Callable[..., Any]) -> None:
    """The same rows in fp32 and in activation dtype; each as a numpy emulation computes it."""
    rng = np.random.default_rng(53)
    x = rng.standard_normal((512, 96)).astype(ml_dtypes.bfloat16)
    outputs = run(PROFILES, "declared", x=x)
    wide = x.astype(np.float64)
    right = wide / np.sqrt((wide**2).sum(1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(outputs["fp32"], right, rtol=1e-6)

    def bf16(values: Any) -> Any:
        return values.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)

    squares = bf16(x.astype(np.float32) ** 2)
    total = bf16(bf16(squares.sum(1, keepdims=True)) + np.float32(1e-6))
    activation = bf16(x.astype(np.float32) * bf16(1 / np.sqrt(total)))
    np.testing.assert_allclose(outputs["hf"], activation, rtol=2**-7)
    assert np.mean(outputs["hf"] == activation) > 0.99
    assert np.abs(outputs["hf"] - right).max() > 1e-4
