"""KDA as transformers serves it: a prompt of 133 tokens in their chunks of 64, then 32 tokens.

Kimi-Linear (32 heads) and GLM-5-Next (64 heads) at 128 x 128, with their own forget gates and gated
norms. Ours runs the prompt by the interpreter or by the plan evaluated on numpy, in chunks of 128,
and then token by token from the state that came out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
PROMPT = 133
TOKENS = ("query", "key", "value", "z", "f", "b", "g", "beta")
"""Arguments that have tokens along dimension 2."""
MODELS = {
    "kimi_linear_serving": ("kda_cte", "kda_cte", 32),
    "glm5_next_serving": ("kda_prefill_bounded", "kda_tkg_glm", 64),
}
"""Kernels for the prompt and for a token, and heads.

Kimi-Linear's softplus is log(1 + e^x) in fp32, whose rounding alone moves states by 3e-6
(`test_transformers.test_gate_forms_of_the_kda_family`): its own gate values go into ours.
"""


def normal(x: Array) -> Array:
    return np.asarray(x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + 1e-6), np.float32)


def gated_norm(core: Array, case: Case) -> Array:
    """The output norm and gate around the recurrence, in float64."""
    wide = np.asarray(core, np.float64)
    scaled = wide / np.sqrt(np.mean(wide**2, axis=-1, keepdims=True) + 1e-5)
    return np.asarray(scaled * case["norm_weight"] / (1 + np.exp(-case["z"].astype(float))))


def arguments(case: Case, kernel: str) -> dict[str, Any]:
    """Return what a prefill kernel takes."""
    if kernel == "kda_cte":
        return {
            "query": normal(case["query"]),
            "key": normal(case["key"]),
            "value": case["value"],
            "g": case["g"],
            "beta": (1 / (1 + np.exp(-case["b"].astype(float)))).astype(np.float32),
            "scale": case["query"].shape[-1] ** -0.5,
            "recurrent_state": case["recurrent_state"],
        }
    names = ("query", "key", "value", "z", "f", "b", "A_log", "dt_bias", "norm_weight")
    return {name: case[name] for name in (*names, "recurrent_state")}


def part(given: Mapping[str, Any], first: int, last: int) -> dict[str, Any]:
    """Return the arguments for some of the tokens."""
    return {
        name: np.ascontiguousarray(x[:, :, first:last]) if name in TOKENS else x
        for name, x in given.items()
    }


def decoded(case: Case, kernel: str, state: Array, first: int) -> tuple[list[Array], Array]:
    """Return the outputs of the tokens from `first` on, one call each, and the last state."""
    prompt_kernel = kernel == "kda_cte"
    given, definition = arguments(case, kernel), gdsl.load(kernel).kernel
    names = {"query": "q", "key": "k", "value": "v", "f": "g", "b": "beta"}
    outputs = []
    for token in range(first, case["query"].shape[2]):
        one = part(given, token, token + 1) | {"recurrent_state": state}
        if not prompt_kernel:
            one = {
                names.get(name, name): x[:, :, 0] if name in TOKENS else x
                for name, x in one.items()
            }
        found = RUNNER.run(definition, one, RunOptions("float32"))
        state = found["recurrent_state"]
        outputs.append(found["out"] if prompt_kernel else found["out"][:, :, None])
    return outputs, state


@pytest.mark.parametrize("witness", ["interpreter", "plan"])
@pytest.mark.parametrize("model", MODELS)
def test_prompt_then_tokens(
    transformers_cases: dict[str, Case], e_rms: Errors, model: str, witness: str
) -> None:
    case, (prefill, decode, heads) = transformers_cases[model], MODELS[model]
    assert case["query"].shape == (1, heads, PROMPT + 32, 128)
    kernel = gdsl.load(prefill)
    given = part(arguments(case, prefill), 0, PROMPT)
    if witness == "interpreter":
        found = RUNNER.run(kernel.kernel, given, RunOptions("float32"))
    else:
        plan = gdsl.compile(kernel).compilation.plan
        assert plan.form == "chunked"
        found = evaluate(plan, given, precision="float32")
    rest, state = decoded(case, decode, np.asarray(found["recurrent_state"]), PROMPT)
    out = np.concatenate([np.asarray(found["out"]), *rest], axis=2)
    out = gated_norm(out, case) if prefill == "kda_cte" else out
    assert e_rms(out, case["out"], (0, 1)) <= FP32
    assert e_rms(state, case["state"], (0, 1)) <= FP32


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("model", MODELS)
def test_simulated_prompt(
    transformers_cases: dict[str, Case], e_rms: Errors, model: str, dtype: Any
) -> None:
    """Two heads of the emitted kernel, against transformers' outputs for the prompt."""
    case, (prefill, _, _) = dict(transformers_cases[model]), MODELS[model]
    for name, x in case.items():
        if name in ("A_log", "dt_bias"):
            case[name] = x[:2]
        elif name != "norm_weight":
            case[name] = x[:, :2]
    given = part(arguments(case, prefill), 0, PROMPT)
    kernel = gdsl.load(prefill).kernel
    typed = {i.name for i in kernel.inputs if i.name in given and not hasattr(i.dtype, "numpy")}
    given |= {name: given[name].astype(dtype) for name in typed}
    out = np.asarray(gdsl.compile(gdsl.load(prefill)).run(given)["out"], np.float64)
    out = gated_norm(out, {**case, "z": case["z"][:, :, :PROMPT]}) if prefill == "kda_cte" else out
    bound = FP32 if dtype == np.float32 else BF16
    assert e_rms(out, case["out"][:, :, :PROMPT], (0, 1)) <= bound
