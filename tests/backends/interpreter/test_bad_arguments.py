"""Spoilt arguments of library kernels give a RunError with a code and a place, or a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from backends.interpreter import RUNNER
from gdsl.errors import RunError
from gdsl.ir.kernel import Kernel
from gdsl.runner import Precision, RunOptions

SIZES = {
    "B": 2, "T": 3, "P": 4, "N": 3, "Hk": 2, "G": 2, "Hv": 4, "H": 4, "R": 2, "K": 3, "V": 4,
    "W": 4, "M": 3, "C": 5, "Hid": 128,
}  # fmt: skip
KERNELS = [
    "gdn_tkg", "gdn_tkg_pool", "kda_tkg", "gdn_cte_varlen", "gdn_verify", "gdn_block_tkg",
    "qwen3next_step", "gdn_conv1d_prefill_w1", "delta_product_fwd", "mamba2_fwd",
]  # fmt: skip


def spoil(array: Any, rng: np.random.Generator) -> Any:
    """Return the array with another shape, dtype, kind or content."""
    array = np.asarray(array)
    choice = int(rng.integers(0, 12))
    longer = array if array.ndim == 0 else np.concatenate([array, array[:1]], axis=0)
    candidates: list[Any] = [
        array[..., None],
        array.ravel(),
        longer,
        array[:0] if array.ndim else array,
        array.astype(np.float16),
        array.astype(np.int64) if array.dtype != np.bool_ else array,
        array != 0,
        np.full(array.shape, np.nan),
        np.full(array.shape, -3, array.dtype),
        array.astype(ml_dtypes.bfloat16),
        3,
        array.astype(np.complex128),
    ]
    return candidates[choice]


@pytest.mark.parametrize("name", KERNELS)
def test_only_run_errors(
    name: str, library_kernel: Callable[[str], Kernel], draw: Callable[..., dict[str, Any]]
) -> None:
    rng = np.random.default_rng(len(name))
    kernel = library_kernel(name)
    refused = 0
    for _ in range(40):
        arguments = draw(kernel, SIZES, int(rng.integers(0, 9)))
        victim = str(rng.choice(sorted(arguments)))
        if rng.random() < 0.1:
            del arguments[victim]
        else:
            arguments[victim] = spoil(arguments[victim], rng)
        precision: Precision = "declared" if rng.random() < 0.3 else "float64"
        try:
            RUNNER.run(kernel, arguments, RunOptions(precision))
        except RunError as error:
            refused += 1
            (found,) = error.diagnostics
            assert found.code.startswith("E07")
            assert found.span is not None
    assert refused > 10
