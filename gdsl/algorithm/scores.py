"""Score matrices X_ij = sum[K](x_i y_j exp(R_i - G_j)) of one chunk, as a plan computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gdsl.algorithm.chunk_plan import (
    AnchoredSegments,
    Reference,
    Rows,
    Score,
    Segments,
)
from gdsl.algorithm.precision import Precision
from gdsl.algorithm.segments import around, pairs

Array = NDArray[Any]


def score(
    wanted: Score,
    row: Array,
    column: Array,
    g: Array | None,
    segments: Segments | None,
    precision: Precision,
) -> Array:
    """Return the [..., C, C] score of row and column vectors [..., C, K], not yet rounded.

    `g` is the log decay, [..., C] for a scalar one and [..., C, K] per channel. Entries with j > i,
    and with j = i unless the score is `diagonal`, are exactly 0. Its scale and weight are left out.
    """
    size = row.shape[-2]
    visible = np.tril(np.ones((size, size), bool), 0 if wanted.diagonal else -1)
    if isinstance(segments, AnchoredSegments) and g is not None:
        return _anchored(row, column, g, segments, wanted.rows, visible, precision)
    product = _product(row, column, precision)
    factor = np.exp(pairs(g, wanted.rows)) if segments is not None and g is not None else None
    if wanted.shared:
        product = precision.operand(product)
        factor = None if factor is None else precision.operand(factor)
    return _masked(product if factor is None else product * factor, visible)


def _anchored(
    row: Array,
    column: Array,
    g: Array,
    segments: AnchoredSegments,
    rows: Rows,
    visible: NDArray[np.bool_],
    precision: Precision,
) -> Array:
    total = np.zeros((), row.dtype)
    if segments.subblock == 1:
        diagonal = visible & np.eye(row.shape[-2], dtype=bool)
        total = _masked(_product(row, column, precision), diagonal)
    for reference in segments.references:
        is_row, is_column = _windows(reference, row.shape[-2])
        of_row, of_column = around(g, reference.block, reference.at, rows)
        product = _product(
            row * _factor(of_row, is_row, precision),
            column * _factor(of_column, is_column, precision),
            precision,
        )
        block = np.arange(row.shape[-2]) // reference.block
        meet = (block[:, None] == block[None, :]) & is_row[:, None] & is_column[None, :]
        total = total + _masked(product, visible & meet)
    return np.asarray(total)


def _windows(reference: Reference, size: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of `size` tokens are rows of a reference, and which are columns."""
    place = np.arange(size) % reference.block
    return (reference.first <= place) & (place < reference.last), place < reference.columns


def _factor(exponent: Array, where: NDArray[np.bool_], precision: Precision) -> Array:
    """exp of the exponents of some tokens, an operand itself; 0 for the others."""
    return precision.operand(np.exp(np.where(where[:, None], exponent, -np.inf)))


def _product(row: Array, column: Array, precision: Precision) -> Array:
    left, right = precision.operand(row), precision.operand(column)
    return np.asarray(left @ np.swapaxes(right, -1, -2))


def _masked(values: Array, where: NDArray[np.bool_]) -> Array:
    return np.where(where, values, np.zeros((), values.dtype))
