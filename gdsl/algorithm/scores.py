"""Score matrices X_ij = sum[K](x_i y_j exp(R_i - G_j)) of one chunk, as a plan computes them."""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from gdsl.algorithm.chunk_plan import AnchoredSegments, Rows, ScalarSegments, Segments
from gdsl.algorithm.precision import Precision
from gdsl.algorithm.segments import around_middle, between_halves, pairs
from gdsl.algorithm.triangular import below_diagonal_blocks

Array = NDArray[Any]


def score(
    row: Array,
    column: Array,
    g: Array | None,
    segments: Segments | None,
    rows: Rows,
    diagonal: bool,
    precision: Precision,
) -> Array:
    """Return the [..., C, C] score of row and column vectors [..., C, K], not yet rounded.

    `g` is the log decay, [..., C] for a scalar one and [..., C, K] per channel. Entries with j > i,
    and with j = i unless `diagonal`, are exactly 0.
    """
    size = row.shape[-2]
    visible = np.tril(np.ones((size, size), bool), 0 if diagonal else -1)
    if segments is None or g is None:
        return _masked(_product(row, column, precision), visible)
    match segments:
        case ScalarSegments():
            factor = np.exp(pairs(g, rows))
            return _masked(_product(row, column, precision) * factor, visible)
        case AnchoredSegments():
            return _anchored(row, column, g, segments, rows, visible, precision)
        case _:
            assert_never(segments)


def _anchored(
    row: Array,
    column: Array,
    g: Array,
    segments: AnchoredSegments,
    rows: Rows,
    visible: NDArray[np.bool_],
    precision: Precision,
) -> Array:
    size, leaf = row.shape[-2], segments.subblock
    block = np.arange(size) // leaf
    inside = visible & (block[:, None] == block[None, :])
    if leaf == 1:
        total = _masked(_product(row, column, precision), inside)
    else:
        exponents = around_middle(g, leaf, rows)
        total = _masked(_product(row, column, precision, *exponents), inside)
    for width in segments.levels:
        exponents = between_halves(g, width, rows)
        level = _product(row, column, precision, *exponents)
        total = total + _masked(level, below_diagonal_blocks(size, width))
    return total


def _product(
    row: Array,
    column: Array,
    precision: Precision,
    row_exponent: Array | None = None,
    column_exponent: Array | None = None,
) -> Array:
    if row_exponent is not None:
        row = row * np.exp(row_exponent)
    if column_exponent is not None:
        column = column * np.exp(column_exponent)
    left, right = precision.operand(row), precision.operand(column)
    return np.asarray(left @ np.swapaxes(right, -1, -2))


def _masked(values: Array, where: NDArray[np.bool_]) -> Array:
    return np.where(where, values, np.zeros((), values.dtype))
