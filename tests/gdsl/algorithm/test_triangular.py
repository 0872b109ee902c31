"""Inverses of unit lower triangular matrices, in exact arithmetic and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gdsl.algorithm.chunk_plan import Inverse
from gdsl.algorithm.inverses import inverse_named
from gdsl.algorithm.precision import EXACT
from gdsl.algorithm.triangular import below_diagonal_blocks, invert
from gdsl.ir.dtypes import Dtype

METHODS = [
    inverse_named("schur", 64, Dtype.F32),
    inverse_named("schur", 64, Dtype.F32, leaf=16),
    inverse_named("neumann", 64, Dtype.F32),
    inverse_named("neumann", 64, Dtype.BF16, leaf=8),
    inverse_named("neumann", 64, Dtype.F32, leaf=64, corrections=0),
]


@pytest.mark.parametrize("inverse", METHODS, ids=str)
def test_the_inverse_of_a_small_perturbation(inverse: Inverse) -> None:
    A = np.tril(np.random.default_rng(0).uniform(-0.2, 0.2, (3, 64, 64)), -1)
    X = invert(A, inverse, EXACT.operand)
    np.testing.assert_allclose(
        X @ (np.eye(64) + A), np.broadcast_to(np.eye(64), A.shape), atol=1e-12
    )


@pytest.mark.parametrize("inverse", METHODS[:4], ids=str)
def test_identical_keys_with_beta_1_give_a_bidiagonal_inverse(inverse: Inverse) -> None:
    A = np.tril(np.ones((64, 64)), -1)
    X = invert(A, inverse, EXACT.operand)
    np.testing.assert_allclose(X, np.eye(64) - np.eye(64, k=-1), atol=1e-9)


def test_merges_never_read_above_the_diagonal() -> None:
    A = np.tril(np.full((64, 64), 0.5), -1) + np.triu(np.full((64, 64), np.nan))
    A[np.triu_indices(64)] = 7.0
    X = invert(A, METHODS[0], EXACT.operand)
    assert np.array_equal(X, np.tril(X))


def test_the_masks_of_all_merges_tile_the_lower_triangle() -> None:
    total = sum(below_diagonal_blocks(64, width).astype(int) for width in (1, 2, 4, 8, 16, 32))
    assert np.array_equal(total, np.tril(np.ones((64, 64), int), -1))
