"""The chunked plan where others have failed: the regimes of the numerics page, in f32 and bf16.

Judged per head as rms(x - ref) / s and max|x - ref| / s with s the rms of the reference of that
head (at least 1% of that of all heads), against the interpreter in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from backends.interpreter import RUNNER
from gdsl.algorithm.choose import choose
from gdsl.algorithm.evaluate_plan import evaluate
from gdsl.canonical.form import CanonicalKernel
from gdsl.runner import RunOptions

B, H, K, V, C = 1, 2, 32, 24, 128
Array = NDArray[Any]
Regime = Callable[[dict[str, Array], np.random.Generator], None]


def unit(x: Array) -> Array:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def gaussian(a: dict[str, Array], rng: np.random.Generator) -> None:
    pass


def identical_keys(a: dict[str, Array], rng: np.random.Generator) -> None:
    a["k"][:] = unit(rng.standard_normal((B, 1, H, K)))
    a["g"] *= 1e-3


def correlated_keys(a: dict[str, Array], rng: np.random.Generator) -> None:
    common = unit(rng.standard_normal((B, 1, H, K)))
    a["k"] = unit(np.sqrt(0.9) * common + np.sqrt(0.1) * a["k"])
    a["beta"][:] = 1.0
    a["g"] *= 1e-3


def beta_0(a: dict[str, Array], rng: np.random.Generator) -> None:
    # The state only decays; an exponent x keeps |x| 2^-24 of relative error, so x stays moderate.
    a["beta"][:] = 0.0
    a["g"] *= 0.1


def beta_1(a: dict[str, Array], rng: np.random.Generator) -> None:
    a["beta"][:] = 1.0


def no_decay(a: dict[str, Array], rng: np.random.Generator) -> None:
    a["g"][:] = 0.0
    a["g"][:, ::2] = -0.0


def half_of_the_channels_without_decay(a: dict[str, Array], rng: np.random.Generator) -> None:
    a["g"].reshape(-1)[::2] = 0.0


def strong_decay(a: dict[str, Array], rng: np.random.Generator) -> None:
    a["g"][:] = -21.0


def uniform_decay(a: dict[str, Array], rng: np.random.Generator) -> None:
    a["g"][:] = -0.7


def strong_then_weak(a: dict[str, Array], rng: np.random.Generator) -> None:
    a["g"][:] = -1e-3
    a["g"][:, : C // 2] = -21.0
    a["g"][:, C // 2 + 3] = -336.0


def one_strong_channel(a: dict[str, Array], rng: np.random.Generator) -> None:
    a["g"][..., :1] = -25.8


def zero_key(a: dict[str, Array], rng: np.random.Generator) -> None:
    a["k"][:, 5] = 0.0


REGIMES: tuple[Regime, ...] = (
    gaussian,
    identical_keys,
    correlated_keys,
    beta_0,
    beta_1,
    no_decay,
    half_of_the_channels_without_decay,
    strong_decay,
    uniform_decay,
    strong_then_weak,
    one_strong_channel,
    zero_key,
)


def arguments(regime: Regime, tokens: int, channels: bool, dtype: type) -> dict[str, Array]:
    rng = np.random.default_rng(7)
    a: dict[str, Array] = {
        "q": unit(rng.standard_normal((B, tokens, H, K))),
        "k": unit(rng.standard_normal((B, tokens, H, K))),
        "v": rng.standard_normal((B, tokens, H, V)),
        "g": -rng.exponential(0.3, (B, tokens, H, *((K,) if channels else ()))),
        "beta": rng.uniform(size=(B, tokens, H)),
        "s0": rng.standard_normal((B, H, K, V)),
    }
    regime(a, rng)
    return {name: x.astype(dtype if name in "qkv" else np.float32) for name, x in a.items()}


def errors(found: Array, reference: Array) -> tuple[float, float]:
    """(e_rms, e_max) of the worst head; arrays are [B, T, H, V] or [B, H, K, V]."""
    axes = (1, 3) if found.shape[1] != H else (2, 3)
    difference = found.astype(np.float64) - reference
    size = np.sqrt((reference**2).mean(axis=axes, keepdims=True))
    scale = np.maximum(size, 0.01 * np.sqrt((reference**2).mean()))
    rms = np.sqrt((difference**2).mean(axis=axes, keepdims=True))
    return float((rms / scale).max()), float((np.abs(difference) / scale).max())


@pytest.mark.parametrize("regime", REGIMES, ids=lambda r: r.__name__)
@pytest.mark.parametrize("channels", [False, True], ids=["scalar", "channels"])
def test_f32_stays_exact(
    gated: Callable[..., CanonicalKernel], regime: Regime, channels: bool
) -> None:
    kernel = gated(channels=channels)
    values = arguments(regime, C + 15, channels, np.float32)
    reference = RUNNER.run(kernel.kernel, values, RunOptions("float64"))
    found = evaluate(choose(kernel, {}), values, "float32")
    for name, expected in reference.items():
        rms, largest = errors(found[name], expected)
        assert rms <= 3e-6, name
        assert largest <= 3e-5, name


@pytest.mark.parametrize("regime", REGIMES, ids=lambda r: r.__name__)
def test_bf16_operands_stay_within_the_bound(
    gated: Callable[..., CanonicalKernel], regime: Regime
) -> None:
    kernel = gated(channels=True)
    values = arguments(regime, C + 1, True, ml_dtypes.bfloat16)
    reference = RUNNER.run(kernel.kernel, values, RunOptions("float64"))
    for inverse in ("schur", "neumann"):
        found = evaluate(choose(kernel, {"inverse": inverse}), values, "plan")
        for name, expected in reference.items():
            assert errors(found[name], expected)[0] <= 2.5e-2, name


@pytest.mark.parametrize("tokens", [1, C - 1, C, C + 1, 2 * C + 15])
@pytest.mark.parametrize("gate", [" in (-inf, 0]", " in [-5, 0]"])
def test_every_length(gated: Callable[..., CanonicalKernel], tokens: int, gate: str) -> None:
    kernel = gated(channels=True, gate=gate)
    values = arguments(gaussian, tokens, True, np.float64)
    values = {name: x.astype(np.float64) for name, x in values.items()}
    values["g"] = np.maximum(values["g"], -5.0)
    reference = RUNNER.run(kernel.kernel, values, RunOptions("float64"))
    found = evaluate(choose(kernel, {}), values)
    for name, expected in reference.items():
        np.testing.assert_allclose(found[name], expected, atol=1e-10)


@pytest.mark.parametrize(("beta", "limit"), [(1.0, 3e-6), (1.7, 5e-6), (2.0, 1e-5)])
def test_beta_up_to_two_on_correlated_keys(
    gated: Callable[..., CanonicalKernel], beta: float, limit: float
) -> None:
    kernel = gated(beta=" in [0, 2]", dtypes="f32")
    values = arguments(correlated_keys, C + 15, False, np.float32)
    values["beta"][:] = beta
    reference = RUNNER.run(kernel.kernel, values, RunOptions("float64"))
    for inverse in ("schur", "neumann"):
        found = evaluate(choose(kernel, {"inverse": inverse}), values, "float32")
        for name, expected in reference.items():
            assert errors(found[name], expected)[0] <= limit, name


@pytest.mark.parametrize("cut", [1, 64, C, C + 1])
def test_a_cut_anywhere_equals_one_run(gated: Callable[..., CanonicalKernel], cut: int) -> None:
    plan = choose(gated(), {})
    values = {
        name: x.astype(np.float64)
        for name, x in arguments(strong_then_weak, 2 * C + 15, False, np.float32).items()
    }
    whole = evaluate(plan, values)
    head = {name: x if name == "s0" else x[:, :cut] for name, x in values.items()}
    first = evaluate(plan, head)
    tail = {name: x if name == "s0" else x[:, cut:] for name, x in values.items()}
    second = evaluate(plan, {**tail, "s0": first["s1"]})
    joined = np.concatenate((first["out"], second["out"]), axis=1)
    np.testing.assert_allclose(joined, whole["out"], atol=1e-12)
    np.testing.assert_allclose(second["s1"], whole["s1"], atol=1e-12)
