"""The emitted gdn_tkg, simulated, against transformers' Qwen3-Next over 64 decoded tokens.

The state is carried from call to call, so an error that builds up shows. Judged per head over all
tokens, as everywhere: fp32 inputs against transformers at the fp32 bound plus the rounding of the
bf16 output, bf16 inputs at the bounds of bf16 operands.
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
from gdsl.ir.dtypes import Dtype
from gdsl.runner import RunOptions
from gdsl.verification.bounds import BF16_RMS, FP32_RMS
from gdsl.verification.judge import Allowed, errors_rms, group_scale, judge
from gdsl.verification.rounding import round_operands

pytestmark = pytest.mark.oracle

Array = NDArray[Any]
Case = Mapping[str, Array]
Call = Callable[[dict[str, Array]], Mapping[str, Array]]
TOKENS = 64
PER_TOKEN = ("q", "k", "v", "z", "b", "a")
WEIGHTS = ("A_log", "dt_bias", "norm_weight")


def decode(case: Case, call: Call, dtype: Any) -> tuple[Array, Array]:
    """Return outputs [T, heads, V] and the last state [heads, K, V] of 64 calls."""
    weights = {name: case[name] for name in WEIGHTS}
    state, out = np.zeros((32, 128, 128), np.float32), []
    for t in range(TOKENS):
        token = {name: case[name][t].astype(dtype) for name in PER_TOKEN}
        outputs = call({**token, **weights, "state_in": state})
        state = outputs["state_out"]
        out.append(np.asarray(outputs["out"], np.float64))
    return np.array(out), np.asarray(state, np.float64)


def by_head(out: Array) -> Array:
    """[T, heads, V] as [heads, T * V]."""
    return np.moveaxis(out, 1, 0).reshape(out.shape[1], -1)


def within(name: str, x: Array, reference: Array, rms: Any, stored: Dtype) -> None:
    """Fail where a head is off by more than its bound and the rounding of its dtype."""
    allowed = Allowed(np.broadcast_to(rms, (len(reference),)), None)
    verdict = judge(name, ("H", "x"), ("H",), x, reference, allowed, stored)
    assert verdict.ok, verdict


@pytest.fixture(scope="module")
def program() -> gdsl.Program:
    return gdsl.compile(gdsl.load("gdn_tkg"), target="trn2")


def test_fp32_inputs_give_what_transformers_computes(
    transformers_cases: dict[str, Case], program: gdsl.Program
) -> None:
    case = transformers_cases["qwen3_next"]
    out, state = decode(case, program.run, np.float32)
    within("out", by_head(out), by_head(case["out"].astype(np.float64)), FP32_RMS, Dtype.BF16)
    flat = case["state"].astype(np.float64).reshape(32, -1)
    within("state_out", state.reshape(32, -1), flat, FP32_RMS, Dtype.F32)


def test_bf16_inputs_stay_within_the_bounds_of_bf16_operands(
    transformers_cases: dict[str, Case], program: gdsl.Program
) -> None:
    """Against transformers (fp32 inputs) at 2.5e-2; against the interpreter in float64 on the same
    bf16 inputs also within twice the error of the interpreter that rounds its operands."""
    case = transformers_cases["qwen3_next"]
    kernel = gdsl.load("gdn_tkg").kernel
    bf16 = ml_dtypes.bfloat16
    out, state = decode(case, program.run, bf16)
    found = {"out": by_head(out), "state_out": state.reshape(32, -1)}

    exact = {
        "out": by_head(case["out"].astype(np.float64)),
        "state_out": case["state"].astype(np.float64).reshape(32, -1),
    }
    dtypes = {"out": Dtype.BF16, "state_out": Dtype.F32}
    for name, x in found.items():
        within(name, x, exact[name], BF16_RMS, dtypes[name])

    def interpreted(which: Any, precision: Any) -> dict[str, Array]:
        options = RunOptions(precision)
        out, state = decode(case, lambda given: RUNNER.run(which, given, options), bf16)
        return {"out": by_head(out), "state_out": state.reshape(32, -1)}

    reference = interpreted(kernel, "float64")
    rounded = interpreted(round_operands(kernel), "declared")
    for name, x in found.items():
        errors = errors_rms(rounded[name], reference[name], group_scale(reference[name]))
        within(name, x, reference[name], np.clip(2 * errors, FP32_RMS, BF16_RMS), dtypes[name])
