"""The table of safe inverses, measured again: its errors hold, what it leaves out is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gdsl.algorithm.chunk_plan import InverseKind
from gdsl.algorithm.inverse_domain import SAFE_INVERSES, SafeInverse, safe_inverse
from gdsl.algorithm.inverses import inverse_named
from gdsl.algorithm.precision import Precision
from gdsl.algorithm.triangular import invert
from gdsl.ir.dtypes import Dtype

CHUNK, CHANNELS = 128, 128
KEYS = ("random", "cosine 0.5", "cosine 0.9", "cosine 0.99", "identical", "alternating", "rank 3")


def unit_keys(kind: str, rng: np.random.Generator) -> NDArray[np.float64]:
    noise = rng.standard_normal((1, CHUNK, CHANNELS))
    common = rng.standard_normal((1, 1, CHANNELS))
    noise /= np.linalg.norm(noise, axis=-1, keepdims=True)
    common /= np.linalg.norm(common, axis=-1, keepdims=True)
    match kind.split():
        case ["random"]:
            keys = noise
        case ["cosine", value]:
            keys = np.sqrt(float(value)) * common + np.sqrt(1 - float(value)) * noise
        case ["identical"]:
            keys = np.broadcast_to(common, noise.shape)
        case ["alternating"]:
            keys = common * (-1.0) ** np.arange(CHUNK)[:, None]
        case _:
            keys = noise[..., :3] @ noise[:, :3]
    return np.asarray(keys / np.linalg.norm(keys, axis=-1, keepdims=True))


def worst_error(row: SafeInverse, leaf: int, corrections: int, product: float) -> float:
    rng = np.random.default_rng(5)
    precision = Precision(np.dtype(np.float32), row.operands)
    name = "neumann" if row.kind is InverseKind.DOUBLING else "schur"
    inverse = inverse_named(name, CHUNK, row.operands, leaf, corrections)
    worst = 0.0
    for kind in KEYS:
        k = unit_keys(kind, rng)
        gram = np.tril(product * (k @ np.swapaxes(k, -1, -2)), -1)
        A: NDArray[Any] = precision.operand(gram)
        exact = np.linalg.inv(np.eye(CHUNK) + A.astype(np.float64))
        with np.errstate(all="ignore"):
            error = np.abs(invert(A, inverse, precision.operand) - exact).max()
        worst = max(worst, float(np.nan_to_num(error, nan=np.inf)))
    return worst


@pytest.mark.parametrize("row", SAFE_INVERSES, ids=lambda r: f"{r.kind.value} {r.operands.value}")
def test_the_stated_error_holds(row: SafeInverse) -> None:
    product = 1.0 if row.product < 2 else 2.0
    leaves = {InverseKind.MERGE: (1,), InverseKind.SUBSTITUTION: (16, 128)}.get(row.kind, (8, 16))
    for leaf in leaves:
        assert worst_error(row, leaf, row.min_corrections, product) <= row.error


@pytest.mark.parametrize(
    ("operands", "leaf", "corrections", "at_least"),
    [
        (Dtype.F32, 128, 1, 1e20),
        (Dtype.F32, 32, 0, 1.0),
        (Dtype.F32, 16, 0, 1e-4),
        (Dtype.BF16, 16, 1, 1.5e-2),
        (Dtype.BF16, 32, 2, 0.5),
    ],
)
def test_what_the_table_leaves_out_is_wrong(
    operands: Dtype, leaf: int, corrections: int, at_least: float
) -> None:
    inverse = inverse_named("neumann", CHUNK, operands, leaf, corrections)
    assert safe_inverse(inverse, operands, 1.0) is None
    row = next(
        r for r in SAFE_INVERSES if r.kind is InverseKind.DOUBLING and r.operands is operands
    )
    assert worst_error(row, leaf, corrections, 1.0) >= at_least


def test_f16_counts_as_a_coarse_dtype() -> None:
    inverse = inverse_named("neumann", CHUNK, Dtype.F16)
    assert inverse.corrections == 2
    assert safe_inverse(inverse, Dtype.F16, 1.0) is not None
