"""Inverses of unit lower triangular matrices I + A, A strictly lower, as numpy meanings.

Three leaves, then merges; which of them is safe when is data in `inverse_domain`. A full-size
power of A is never formed: with correlated keys its entries grow like binomials (1e26 at C = 128)
while those of the inverse stay near 1.

`operand` rounds a matmul operand (identity for exact evaluation); products accumulate in the
arrays' own dtype. Arrays are [..., C, C]; nothing outside the diagonal blocks of a leaf is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gdsl.algorithm.chunk_plan import Inverse, InverseKind

Array = NDArray[Any]
Rounding = Callable[[Array], Array]


def invert(A: Array, inverse: Inverse, operand: Rounding) -> Array:
    """Return (I + A)^-1 by a plan's method, its entries rounded as an operand."""
    match inverse.kind:
        case InverseKind.MERGE:
            X = np.broadcast_to(np.eye(A.shape[-1], dtype=A.dtype), A.shape).copy()
        case InverseKind.SUBSTITUTION:
            X = operand(substitution(diagonal_blocks(A, inverse.leaf)))
        case InverseKind.DOUBLING:
            blocks = diagonal_blocks(A, inverse.leaf)
            X = doubling(blocks, inverse.leaf, operand)
            for _ in range(inverse.corrections):
                X = corrected(X, blocks, operand)
            X = operand(X)
    for width in inverse.merges:
        X = merged(X, A, width, operand)
    return X


def merged(X: Array, A: Array, width: int, operand: Rounding) -> Array:
    """Return the inverse on blocks of 2 width from that on blocks of width.

    [[P, 0], [R, Q]]^-1 has the lower left block -Q^-1 R P^-1; all blocks of a level at once.
    """
    middle = operand((A * below_diagonal_blocks(A.shape[-1], width)) @ X)
    return operand(X - X @ middle)


def substitution(A: Array) -> Array:
    """Return (I + A)^-1 row by row: x_i = e_i - sum_j A_ij x_j. Exact to rounding."""
    X = np.broadcast_to(np.eye(A.shape[-1], dtype=A.dtype), A.shape).copy()
    for i in range(1, A.shape[-1]):
        X[..., i, :] -= (A[..., i, None, :i] @ X[..., :i, :])[..., 0, :]
    return X


def doubling(A: Array, leaf: int, operand: Rounding) -> Array:
    """Return (I - A + A^2 - ...) as (I + N)(I + N^2)(I + N^4)..., N = -A on blocks of `leaf`."""
    power = -A
    X = np.eye(A.shape[-1], dtype=A.dtype) + power
    reach = 2
    while reach < leaf:
        power = operand(power) @ operand(power)
        X = X + operand(X) @ operand(power)
        reach *= 2
    return X


def corrected(X: Array, A: Array, operand: Rounding) -> Array:
    """Return one residual correction (Newton-Schulz step) X + X (I - (I + A) X)."""
    rounded = operand(X)
    residual = np.eye(A.shape[-1], dtype=A.dtype) - rounded - operand(A) @ rounded
    return np.asarray(rounded + rounded @ operand(residual))


def diagonal_blocks(A: Array, width: int) -> Array:
    """Return A with everything outside its diagonal blocks set to 0."""
    block = np.arange(A.shape[-1]) // width
    return np.where(block[:, None] == block[None, :], A, np.zeros((), A.dtype))


def below_diagonal_blocks(size: int, width: int) -> NDArray[np.bool_]:
    """Return where row and column share a block of 2 width, in its second and first half."""
    block = np.arange(size) // width
    row, column = block[:, None], block[None, :]
    return np.asarray((row // 2 == column // 2) & (row % 2 == 1) & (column % 2 == 0))
