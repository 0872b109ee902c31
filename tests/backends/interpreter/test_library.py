"""Every kernel that ships, in float64, against loops over the papers' equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from backends.interpreter import RUNNER
from gdsl.ir.kernel import Kernel
from gdsl.library import library_kernels
from gdsl.runner import RunOptions
from tests.references.kernels import REFERENCES

SIZES = {
    "B": 2, "T": 7, "P": 8, "N": 2, "Hk": 2, "G": 3, "Hv": 6, "H": 6, "R": 3, "K": 5, "V": 4,
    "W": 4, "M": 3, "C": 9, "Hid": 128,
}  # fmt: skip
"""Axis sizes, all different where a swap could hide; an odd number of heads for each key head."""

SLOTS: dict[str, Any] = {
    "B": 4,
    "N": 6,
    "read": [3, -1, 1, 9],
    "write": [0, -2, -1, 5],
    "has_initial_state": [True, True, False, True],
}

SPECIAL: Mapping[str, Mapping[str, Any]] = {
    "gdn_tkg_pool": SLOTS,
    "gdn_block_tkg_pool": SLOTS,
    "gdn_prefill_pool": SLOTS | {"valid_len": [7, 5, 0, 3]},
    "kda_prefill_pool": SLOTS | {"valid_len": [4, 7, 7, 0]},
    "gdn_block_prefill_pool": SLOTS | {"valid_len": [4, 7, 0, 2]},
    "gdn_mixer_prefill_pool": SLOTS | {"valid_len": [1, 7, 7, 0]},
    "gdn_cte_varlen": {"P": 2, "checkpoint_every": 3, "valid_len": [7, 4]},
    "kda_cte_checkpoints": {"P": 2, "checkpoint_every": 3, "valid_len": [2, 6]},
    "gdn_verify": {"accepted": [0, 7], "valid_len": [4, 7]},
    "gdn_block_verify": {"accepted": [7, 2], "valid_len": [7, 3]},
    "kda_verify": {"accepted": [7, 2], "valid_len": [0, 7]},
    "qwen3next_step": {"R": 6},
    "kda_tkg": {"lower_bound": [[-5.0]]},
    "mamba2_fwd": {"G": 2},
}
"""Sizes and control inputs of kernels that need particular ones."""

SCALES = {"gdn_cte", "gdn_cte_wide_beta", "gdn_cte_varlen"} | {
    "kda_cte",
    "kda_cte_bounded",
    "kda_cte_checkpoints",
}


def call(kernel: Kernel, draw: Callable[..., dict[str, Any]], seed: int) -> dict[str, Any]:
    special = SPECIAL.get(kernel.name, {})
    sizes = SIZES | {name: n for name, n in special.items() if name in SIZES}
    arguments = draw(kernel, sizes, seed)
    for name, value in special.items():
        if name in arguments:
            arguments[name] = np.array(value, np.asarray(arguments[name]).dtype)
        elif name not in sizes:
            arguments[name] = value
    if kernel.name in SCALES:
        arguments["scale"] = 0.37
    return arguments


def test_every_library_kernel_has_a_reference() -> None:
    assert set(REFERENCES) == set(library_kernels())


@pytest.mark.parametrize("name", REFERENCES)
def test_kernel_equals_its_reference(
    name: str,
    library_kernel: Callable[[str], Kernel],
    draw: Callable[..., dict[str, Any]],
) -> None:
    kernel = library_kernel(name)
    arguments = call(kernel, draw, seed=len(name))
    outputs = RUNNER.run(kernel, arguments, RunOptions("float64"))
    right = REFERENCES[name](arguments)
    assert set(outputs) == set(right)
    for output, array in outputs.items():
        assert array.dtype == np.float64
        assert array.shape == right[output].shape
        error = np.abs(array - right[output]).max(initial=0) / np.abs(right[output]).max(initial=1)
        assert error <= 1e-13, output


@pytest.mark.parametrize("name", ["gdn_cte", "kda_cte", "gdn_prefill", "kda_prefill"])
def test_optional_arguments_may_be_missing(
    name: str,
    library_kernel: Callable[[str], Kernel],
    draw: Callable[..., dict[str, Any]],
) -> None:
    kernel = library_kernel(name)
    arguments = call(kernel, draw, seed=3)
    for missing in ("valid_len", "recurrent_state"):
        arguments.pop(missing, None)
    if name == "kda_prefill":
        arguments.pop("A_log")
    outputs = RUNNER.run(kernel, arguments, RunOptions("float64"))
    right = REFERENCES[name](arguments)
    for output, array in outputs.items():
        np.testing.assert_allclose(array, right[output], atol=1e-13)


def test_the_reference_of_a_kernel_separates_a_swap(
    library_kernel: Callable[[str], Kernel], draw: Callable[..., dict[str, Any]]
) -> None:
    """The comparison can fail: a reference fed with a tiled instead of an interleaved head map."""
    arguments = call(library_kernel("gdn_cte"), draw, seed=1)
    outputs = RUNNER.run(library_kernel("gdn_cte"), arguments, RunOptions("float64"))
    B, Hv = arguments["value"].shape[:2]
    tiled = dict(arguments)
    order = np.arange(Hv).reshape(-1, SIZES["G"]).T.ravel()
    for name in ("value", "g_log", "beta", "recurrent_state"):
        tiled[name] = arguments[name][:, order]
    wrong = REFERENCES["gdn_cte"](tiled)["out"]
    assert B == 2
    assert np.abs(wrong[:, np.argsort(order)] - outputs["out"]).max() > 1e-2
