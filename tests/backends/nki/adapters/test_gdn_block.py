"""The drop-in for nki-library's decode block: name, call by position, order of what it returns."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from backends.isa.targets import find_target
from backends.nki import EMITTER
from backends.simulator.options import SimOptions
from backends.simulator.run import load_module, simulate
from gdsl import api
from gdsl.emitter import EmitOptions, NkiProgram
from gdsl.regimes.typed import random_arguments
from gdsl.shapes import resolve_sizes

SIGNATURE = (
    "(hidden, W_in_qkv, W_in_z, W_in_a, W_in_b, conv_weight, conv_state, A_log, dt_bias, "
    "norm_weight, recurrent_state)"
)
"""What callers of the decode block rely on, from its published contract."""
SIZES = {"B": 3, "Hid": 128, "Hk": 3, "G": 2, "K": 16, "V": 32, "W": 4}


@pytest.fixture(scope="module")
def program() -> NkiProgram:
    plan = api.compile(api.load("gdn_block_tkg"), target="trn2").compilation.plan
    return EMITTER.adapt("nki_library", [plan], EmitOptions())[0]


@pytest.fixture(scope="module")
def drop_in(program: NkiProgram) -> ModuleType:
    return load_module(program.text, find_target("trn2"), SimOptions())


def given() -> dict[str, NDArray[Any]]:
    kernel = api.load("gdn_block_tkg").kernel
    sizes = resolve_sizes(kernel, (), SIZES)
    return {name: np.asarray(x) for name, x in random_arguments(kernel, sizes, 5).items()}


def test_signature_is_the_published_one(drop_in: ModuleType) -> None:
    assert str(inspect.signature(drop_in.gdn_block_tkg)) == SIGNATURE


@pytest.mark.parametrize("lnc", [1, 2])
def test_a_call_by_position(program: NkiProgram, lnc: int) -> None:
    """Output, new window, new state; what the caller passed keeps its bits."""
    arrays = given()
    names = SIGNATURE.strip("()").split(", ")
    result = simulate(program.text, "gdn_block_tkg", tuple(arrays[n] for n in names), lnc=lnc)
    assert not result.mutated
    core, window, state = (np.asarray(output) for output in result.outputs)
    assert core.shape == (3, 1, 192)
    assert core.dtype == window.dtype == ml_dtypes.bfloat16
    assert window.shape == arrays["conv_state"].shape
    assert state.shape == arrays["recurrent_state"].shape
    assert state.dtype == np.float32
    wanted = gdsl.run(api.load("gdn_block_tkg"), arrays)
    for found, name in ((core, "core_out"), (window, "conv_out"), (state, "state_out")):
        expected = np.asarray(wanted[name], np.float32)
        assert np.allclose(found.astype(np.float32), expected, atol=2e-2 * np.abs(expected).max())
