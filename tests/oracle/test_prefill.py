"""Prefill against transformers' chunk functions at the sizes of released models.

133 tokens: their chunks are of 64, ours of 128. The interpreter, the plan evaluated on numpy and,
for one key head, the emitted text in the simulator are three witnesses of one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from backends.interpreter import RUNNER
from gdsl.algorithm.evaluate_plan import evaluate
from gdsl.runner import RunOptions

pytestmark = pytest.mark.oracle

Array = NDArray[Any]
Case = Mapping[str, Array]
Errors = Callable[[Array, Array, tuple[int, ...]], float]
FP32 = 3e-6
BF16 = 2.5e-2

MODELS = {
    "qwen3_next_chunks": ("gdn_cte", (16, 32, 128, 128)),
    "qwen3_5_chunks": ("gdn_cte", (16, 48, 128, 128)),
    "olmo_hybrid_chunks": ("gdn_cte_wide_beta", (30, 30, 96, 192)),
}
"""Kernel, and key heads, value heads, K and V."""


def arguments(case: Case, key_heads: int | None = None) -> dict[str, Any]:
    """Return what our kernels take, for the first key heads or all: head-major, normalised keys."""

    def normal(x: Array) -> Array:
        return np.asarray(x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + 1e-6), np.float32)

    group = case["v"].shape[2] // case["q"].shape[2]
    heads = None if key_heads is None else key_heads * group
    given = {
        "query": normal(case["q"][:, :, :key_heads]),
        "key": normal(case["k"][:, :, :key_heads]),
        "value": case["v"][:, :, :heads],
        "g_log": case["g"][:, :, :heads],
        "beta": case["beta"][:, :, :heads],
    }
    moved = {name: np.ascontiguousarray(np.swapaxes(x, 1, 2)) for name, x in given.items()}
    state = np.ascontiguousarray(case["s0"][:, :heads])
    return {**moved, "recurrent_state": state, "scale": case["q"].shape[-1] ** -0.5}


def assert_agree(outputs: Mapping[str, Any], case: Case, e_rms: Errors, bound: float) -> None:
    heads = outputs["recurrent_state"].shape[1]
    expected = np.swapaxes(case["out"], 1, 2)[:, :heads]
    out, state = (np.asarray(outputs[name], np.float64) for name in ("out", "recurrent_state"))
    assert e_rms(out, expected, (0, 1)) <= bound
    assert e_rms(state, case["state"][:, :heads], (0, 1)) <= bound


@pytest.mark.parametrize("model", MODELS)
def test_interpreter(transformers_cases: dict[str, Case], e_rms: Errors, model: str) -> None:
    case = transformers_cases[model]
    name, (key_heads, heads, K, V) = MODELS[model]
    assert case["q"].shape == (1, 133, key_heads, K)
    assert case["v"].shape == (1, 133, heads, V)
    outputs = RUNNER.run(gdsl.load(name).kernel, arguments(case), RunOptions("float32"))
    assert_agree(outputs, case, e_rms, FP32)


@pytest.mark.parametrize(
    ("inverse", "precision"),
    [("schur", "float64"), ("schur", "float32"), ("neumann", "float32")],
)
@pytest.mark.parametrize("model", MODELS)
def test_plan_evaluator(
    transformers_cases: dict[str, Case],
    e_rms: Errors,
    model: str,
    inverse: str,
    precision: Literal["float64", "float32"],
) -> None:
    case = transformers_cases[model]
    kernel = gdsl.load(MODELS[model][0])
    plan = gdsl.compile(kernel, settings={"inverse": inverse}).compilation.plan
    assert plan.form == "chunked"
    assert_agree(evaluate(plan, arguments(case), precision=precision), case, e_rms, FP32)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("model", MODELS)
def test_simulated_kernel(
    transformers_cases: dict[str, Case], e_rms: Errors, model: str, dtype: Any
) -> None:
    """The first key head and its value heads, at the model's K and V."""
    case = transformers_cases[model]
    given = arguments(case, key_heads=1)
    given |= {name: given[name].astype(dtype) for name in ("query", "key", "value")}
    outputs = gdsl.compile(gdsl.load(MODELS[model][0])).run(given)
    assert_agree(outputs, case, e_rms, FP32 if dtype == np.float32 else BF16)


def folded(case: Case, key_heads: int | None = None) -> dict[str, Any]:
    """The 64 decoded tokens of Qwen3-Next as one prompt of `gdn_prefill`, raw as they come."""
    heads = None if key_heads is None else 2 * key_heads
    per_token = {"query": case["q"][:, ::2], "key": case["k"][:, ::2], "value": case["v"]}
    per_token |= {name: case[name] for name in ("z", "a", "b")}
    tokens = {
        name: np.ascontiguousarray(np.swapaxes(x, 0, 1)[: key_heads if i < 2 else heads][None])
        for i, (name, x) in enumerate(per_token.items())
    }
    weights = {name: case[name][:heads] for name in ("A_log", "dt_bias")}
    return {**tokens, **weights, "norm_weight": case["norm_weight"]}


@pytest.mark.parametrize("witness", ["interpreter", "plan", "simulator"])
def test_prefill_with_everything_folded_in_is_the_decode_path_of_qwen3_next(
    transformers_cases: dict[str, Case], e_rms: Errors, witness: str
) -> None:
    """Raw projections in, gated norm out: what transformers computed token by token. The simulator
    runs two key heads of 16."""
    case = transformers_cases["qwen3_next"]
    given = folded(case, key_heads=2 if witness == "simulator" else None)
    kernel = gdsl.load("gdn_prefill")
    if witness == "simulator":
        outputs = gdsl.compile(kernel).run(given)
    elif witness == "plan":
        outputs = evaluate(gdsl.compile(kernel).compilation.plan, given, precision="float32")
    else:
        outputs = RUNNER.run(kernel.kernel, given, RunOptions("float32"))
    heads = outputs["out"].shape[1]
    expected = np.swapaxes(case["out"], 0, 1)[None, :heads]
    assert e_rms(np.asarray(outputs["out"], np.float64), expected, (0, 1)) <= FP32
    state = np.asarray(outputs["recurrent_state"], np.float64)
    assert e_rms(state, case["state"][None, :heads], (0, 1)) <= FP32


@pytest.mark.parametrize("witness", ["interpreter", "plan", "simulator"])
def test_prefill_of_olmo_hybrid_with_its_gated_norm(
    transformers_cases: dict[str, Case], e_rms: Errors, witness: str
) -> None:
    """K 96, V 192: the norm of an output goes over more value columns than a tile has. The
    simulator runs two of 30 heads."""
    case = transformers_cases["olmo_hybrid_layer"]
    heads = 2 if witness == "simulator" else 30
    results = ("out", "state")
    given = {
        name: x if name == "norm_weight" else np.ascontiguousarray(_of_heads(x, heads))
        for name, x in case.items()
        if name not in results
    }
    kernel = gdsl.load("gdn_prefill_wide_beta")
    if witness == "simulator":
        outputs = gdsl.compile(kernel).run(given, lnc=2)
    elif witness == "plan":
        outputs = evaluate(gdsl.compile(kernel).compilation.plan, given, precision="float32")
    else:
        outputs = RUNNER.run(kernel.kernel, given, RunOptions("float32"))
    for ours, theirs in zip(("out", "recurrent_state"), results, strict=True):
        expected = case[theirs][:, :heads]
        assert e_rms(np.asarray(outputs[ours], np.float64), expected, (0, 1)) <= FP32


def _of_heads(x: Array, heads: int) -> Array:
    """The first heads of [H] or [1, H, ...]."""
    return x[:heads] if x.ndim == 1 else x[:, :heads]
