"""Norms, output gates and the precision a text asks for, as emitted kernels compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gdsl

L2 = """
use delta_rule, norms
kernel read:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    state S: f32[B, H, K, V] = s0
    o, S = step gated_delta({norm}, k, v, 1, 1, S)
    output out: f32[B, H, V] = o
    output s1 = S
"""


def normed(launch: Callable[..., Any], size: float, norm: str = "l2norm[K](q)") -> float:
    """Return what the norm makes of a one-hot row of this size: S holds 1 where the row is."""
    row, state = np.zeros((1, 1, 128)), np.zeros((1, 1, 128, 1))
    row[0, 0, 7], state[0, 0, 7, 0] = size, 1.0
    arguments = {"q": row, "k": np.zeros((1, 1, 128)), "v": np.zeros((1, 1, 1)), "s0": state}
    return float(launch(L2.replace("{norm}", norm), **arguments)["out"].item())


@pytest.mark.parametrize(
    ("size", "right"),
    [(1, 0.9999995), (0.1, 0.99995), (0.01, 0.9950372), (1e-3, 0.7071068), (1e-4, 0.0995037)],
)
def test_b51_eps_inside_the_root(launch: Callable[..., Any], size: float, right: float) -> None:
    assert normed(launch, size) == pytest.approx(right, abs=3e-7)


def test_b51_an_all_zero_row_is_zero(launch: Callable[..., Any]) -> None:
    assert normed(launch, 0.0) == 0


def test_b51_the_trick_with_a_mean_is_another_text(launch: Callable[..., Any]) -> None:
    trick = "rms_norm[K](q) * K ** -0.5"
    assert normed(launch, 1e-3, trick) == pytest.approx(0.0880451, abs=3e-7)
    assert normed(launch, 0.1, trick) == pytest.approx(0.9936608, abs=3e-7)


GATED = """
use delta_rule, gates, norms
kernel gated:
    axes B, H, K, V
    input k: f32[B, H, K]
    input v, z: f32[B, H, V]
    state S: f32[B, H, K, V] = s0
    o, S = step gated_delta(k, k, v, 1, 1, S)
    output out: f32[B, H, V] = {epilogue}
    output s1 = S
"""


@pytest.mark.parametrize(
    ("epilogue", "right"),
    [
        ("rms_norm[V](o) * silu(z)", [0.6203237, -0.2697254]),
        ("rms_norm[V](o) * sigmoid(z)", [0.6203237, 0.1348627]),
        ("rms_norm[V](o * silu(z))", [1.2969178, -0.5639179]),
    ],
)
def test_b48_gate_function_and_order(
    launch: Callable[..., Any], epilogue: str, right: list[float]
) -> None:
    """o = [3, 4]: k = q = 1 and beta = 1 write v and read it back."""
    out = launch(
        GATED.replace("{epilogue}", epilogue), k=np.ones((1, 1, 1)), v=[[[3.0, 4.0]]],
        z=[[[1.0, -2.0]]], s0=np.zeros((1, 1, 1, 2)),
    )["out"]  # fmt: skip
    np.testing.assert_allclose(out.ravel(), right, rtol=2e-6)


PROFILES = {
    "fp32": "l2norm[K](q)",
    "hf": "bf16(q * bf16(rsqrt(bf16(bf16(sum[K](bf16(q * q))) + 1e-6))))",
}


def test_b53_the_compute_dtype_of_a_norm_stands_in_the_text(launch: Callable[..., Any]) -> None:
    """Rows in fp32 and in activation dtype, each against a numpy emulation of it."""
    rng = np.random.default_rng(53)
    K = 96
    q = rng.standard_normal((1, 64, K)).astype(ml_dtypes.bfloat16).astype(np.float32)
    # Element 0 of the normed row is read: S is one-hot there.
    state = np.zeros((1, 64, K, 1), np.float32)
    state[:, :, 0] = 1
    rest = {"k": np.zeros((1, 64, K)), "v": np.zeros((1, 64, 1)), "s0": state}
    got = {
        name: launch(L2.replace("{norm}", norm), q=q, **rest)["out"].ravel()
        for name, norm in PROFILES.items()
    }

    def bf16(values: Any) -> Any:
        return np.asarray(values, np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)

    wide = q.astype(np.float64)
    exact = (wide / np.sqrt((wide**2).sum(-1, keepdims=True) + 1e-6))[0, :, 0]
    np.testing.assert_allclose(got["fp32"], exact, rtol=1e-6)
    total = bf16(bf16(bf16(q**2).sum(-1, keepdims=True)) + np.float32(1e-6))
    activation = bf16(q * bf16(1 / np.sqrt(total)))[0, :, 0]
    # An ulp of bf16 where the sums round apart; the fp32 profile is elsewhere.
    np.testing.assert_allclose(got["hf"], activation, rtol=2**-7)
    assert np.mean(got["hf"] == activation) > 0.9
    assert np.abs(got["hf"] - exact).max() > 1e-4


@pytest.mark.parametrize("settings", [{"chunk": 16}, {"form": "recurrent"}])
@pytest.mark.parametrize(
    "norm",
    [
        "{x} * rsqrt(sum[{a}]({x} * {x}))",
        "{x} / sqrt(sum[{a}]({x} * {x}))",
        "{x} / max(sqrt(sum[{a}]({x} * {x})), 0.000001)",
    ],
)
def test_tokens_that_are_none_stay_zeros_in_a_norm_without_epsilon(
    norm: str, settings: dict[str, Any]
) -> None:
    """A tail of a chunk and what lies behind the end of a row; NaN stands there."""
    key, query, out = (norm.format(x=x, a=a) for x, a in (("k", "K"), ("q", "K"), ("o", "V")))
    text = f"""
use delta_rule
kernel bare:
    axes B, T, H, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input n: i32[B] in [0, inf) or T
    state S: f32[B, H, K, V] = s0
    o, S = scan[T < n] delta({query}, {key}, v, 1, S)
    output out: f32[B, T, H, V] = {out}
    output s1: f32[B, H, K, V] = S
"""
    definition = gdsl.loads(text)
    given = dict(gdsl.random_inputs(definition, {"B": 3, "T": 20, "H": 2, "K": 8, "V": 12}, 0))
    given["n"] = np.array([0, 7, 20], np.int32)
    for row, live in enumerate(given["n"]):
        for name in ("q", "k", "v"):
            given[name][row, live:] = np.nan
    right = gdsl.run(definition, given, precision="float64")
    got = gdsl.run(definition, given, backend="simulator", settings=settings)
    np.testing.assert_allclose(got["out"], right["out"], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(got["s1"], right["s1"], rtol=1e-4, atol=1e-5)
