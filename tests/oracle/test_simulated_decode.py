"""The emitted decode kernel, simulated over 64 tokens, against transformers' Qwen3-Next."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl

Array = NDArray[Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
pytestmark = pytest.mark.oracle

# NUMERICS: bf16 operands, any plan.
_BOUND = 2.5e-2


@pytest.mark.parametrize(("target", "lnc"), [("trn2", 2), ("trn3", 1)])
def test_64_decoded_tokens_with_carried_state(
    transformers_cases: dict[str, dict[str, Array]],
    e_rms: Callable[[Array, Array, tuple[int, ...]], float],
    target: str,
    lnc: int,
) -> None:
    case = transformers_cases["qwen3_next"]
    program = gdsl.compile(gdsl.load("gdn_tkg"), target)
    state = np.zeros((32, 128, 128), np.float32)
    fixed = {name: case[name].astype(np.float32) for name in ("A_log", "dt_bias", "norm_weight")}
    out = []
    for token in range(64):
        rows = {name: case[name][token].astype(BF16) for name in ("q", "k", "v", "z")}
        gates = {name: case[name][token].astype(np.float32) for name in ("b", "a")}
        result = program.run({**rows, **gates, **fixed, "state_in": state}, lnc=lnc)
        state = result["state_out"]
        out.append(result["out"].astype(np.float32))
    assert e_rms(np.stack(out), case["out"], (1,)) < _BOUND
    assert e_rms(state, case["state"], (0,)) < _BOUND
