"""The interpreter in fp32 against the recurrent functions of transformers' models, real sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gdsl
from backends.interpreter import RUNNER
from gdsl.runner import RunOptions

pytestmark = pytest.mark.oracle
FP32 = RunOptions("float32")
BOUND = 3e-6

SCAN = """
use delta_rule, norms
kernel layer:
    axes B, Hk, G, Hv = (Hk G), T, K, V
    input q, k: f32[B, T, Hk, K]
    input v: f32[B, T, Hv, V]
    input g: f32[B, T, Hv] in (-inf, 0]
    input beta: f32[B, T, Hv] in [0, 2]
    state S: f32[B, Hv, K, V] = s0
    o, S = scan[T] gated_delta(l2norm[K](q) * K ** -0.5, l2norm[K](k), v, exp(g), beta, S)
    output out: f32[B, T, Hv, V] = o
    output s1: f32[B, Hv, K, V] = S
"""


def test_gdn_tkg_is_the_decode_path_of_qwen3_next(
    transformers_cases: dict[str, dict[str, Any]], e_rms: Callable[..., float]
) -> None:
    """32 heads, K = V = 128, the model's initialisation, 64 tokens with carried state."""
    case = transformers_cases["qwen3_next"]
    kernel = gdsl.load("gdn_tkg").kernel
    weights = {name: case[name] for name in ("A_log", "dt_bias", "norm_weight")}
    state, out = np.zeros((32, 128, 128), np.float32), []
    for t in range(64):
        token = {name: case[name][t] for name in ("q", "k", "v", "z", "b", "a")}
        outputs = RUNNER.run(kernel, {**token, **weights, "state_in": state}, FP32)
        state = outputs["state_out"]
        out.append(outputs["out"])
    assert e_rms(np.array(out), case["out"], (1,)) <= BOUND
    assert e_rms(state, case["state"], (0,)) <= BOUND


@pytest.mark.parametrize("model", ["qwen3_5", "olmo_hybrid"])
def test_recurrent_function_of_the_gdn_family(
    transformers_cases: dict[str, dict[str, Any]], e_rms: Callable[..., float], model: str
) -> None:
    """Qwen3.5-27B (16/48 heads) and OLMo-Hybrid (30 heads, K 96, V 192, beta to 2)."""
    case = dict(transformers_cases[model])
    out, state = case.pop("out"), case.pop("state")
    outputs = RUNNER.run(gdsl.loads(SCAN).kernel, case, FP32)
    assert e_rms(outputs["out"], out, (0, 2)) <= BOUND
    assert e_rms(outputs["s1"], state, (0, 1)) <= BOUND


KDA = """
use delta_rule, norms
kernel layer:
    axes B, H, T, K, V
    input query, key: f32[B, H, T, K]
    input value, z: f32[B, H, T, V]
    input g: f32[B, H, T, K] in (-inf, 0]
    input b: f32[B, H, T]
    input norm_weight: f32[V]
    state S: f32[B, H, K, V] = recurrent_state
    q = l2norm[K](query) * K ** -0.5
    o, S = scan[T] gated_delta(q, l2norm[K](key), value, exp(g), sigmoid(b), S)
    output out: f32[B, H, T, V] = rms_norm[V](o, 1e-5) * norm_weight * sigmoid(z)
    output s1: f32[B, H, K, V] = S
"""

GATES = """
use gates
kernel forget:
    axes B, H, T, K
    input f: f32[B, H, T, K]
    input A_log: f32[H]
    input dt_bias: f32[H, K]
    output classic: f32[B, H, T, K] = log_decay(f, A_log, dt_bias)
    output bounded: f32[B, H, T, K] = bounded_log_decay(f, A_log, dt_bias, -5)
"""


@pytest.mark.parametrize("model", ["kimi_linear", "glm5_next_softplus", "glm5_next_bounded"])
def test_recurrence_and_gated_norm_of_the_kda_family(
    transformers_cases: dict[str, dict[str, Any]], e_rms: Callable[..., float], model: str
) -> None:
    """Kimi-Linear and GLM-5-Next from their own gate values."""
    case = dict(transformers_cases[model])
    out, state = case.pop("out"), case.pop("state")
    for name in ("f", "A_log", "dt_bias"):
        case.pop(name)
    outputs = RUNNER.run(gdsl.loads(KDA).kernel, case, FP32)
    assert e_rms(outputs["out"], out, (0, 1)) <= BOUND
    assert e_rms(outputs["s1"], state, (0, 1)) <= BOUND


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("kimi_linear", "classic"),
        ("glm5_next_softplus", "classic"),
        ("glm5_next_bounded", "bounded"),
    ],
)
def test_gate_forms_of_the_kda_family(
    transformers_cases: dict[str, dict[str, Any]], model: str, form: str
) -> None:
    """Their softplus is log(1 + e^x) in fp32: 1 + e^x rounds by 6e-8, which is 1e-4 of a small
    step and alone moves their states by 3e-6; ours is exact to rounding.
    """
    case = transformers_cases[model]
    inputs = {name: case[name] for name in ("f", "A_log", "dt_bias")}
    fp32 = RUNNER.run(gdsl.loads(GATES).kernel, inputs, FP32)[form]
    exact = RUNNER.run(gdsl.loads(GATES).kernel, inputs, RunOptions("float64"))[form]
    np.testing.assert_allclose(fp32, exact, rtol=2e-6)
    rounding = 1.2e-7 * np.exp(case["A_log"])[:, None, None] if form == "classic" else 0.0
    assert (np.abs(case["g"] - exact) <= 1e-6 * np.abs(exact) + rounding).all()


def test_whole_layer_of_glm5_next_with_its_bounded_gate(
    transformers_cases: dict[str, dict[str, Any]], e_rms: Callable[..., float]
) -> None:
    case = dict(transformers_cases["glm5_next_bounded"])
    out, state, _ = case.pop("out"), case.pop("state"), case.pop("g")
    outputs = RUNNER.run(gdsl.load("kda_prefill_bounded").kernel, case, FP32)
    assert e_rms(outputs["out"], out, (0, 1)) <= BOUND
    assert e_rms(outputs["recurrent_state"], state, (0, 1)) <= BOUND
