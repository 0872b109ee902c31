"""Segment sums of log decays and the factors made of them, as numpy meanings of a plan.

G_i - G_j is always the sum of the g strictly after j up to i. Taking it as a difference of two
prefix sums errs by the rounding of the prefixes: 6e-3 in f32 when strong tokens (-21) precede weak
ones (-1e-3) in a chunk. On the machine the sums are one f32 matmul with a 0/1 operand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gdsl.algorithm.chunk_plan import Rows

Array = NDArray[Any]


def from_start(g: Array, rows: Rows) -> Array:
    """Return R_i of a chunk, g of shape [..., C, *]: sums from the chunk's first token."""
    total = np.cumsum(g, axis=-2)
    return total if rows is Rows.INCLUSIVE else _shifted(total)


def to_end(g: Array) -> Array:
    """Return G_last - G_i of a chunk: sums over the tokens after i."""
    return _after(g)


def pairs(g: Array, rows: Rows) -> Array:
    """Return R_i - G_j for j < i (and j = i when inclusive) of a scalar decay, g [..., C].

    Elsewhere the result is -inf, so that exp gives 0: the argument is masked, never the product.
    """
    size = g.shape[-1]
    m, i = np.arange(size)[:, None], np.arange(size)[None, :]
    last = i if rows is Rows.INCLUSIVE else i - 1
    upto = np.where(m <= last, g[..., :, None], np.zeros((), g.dtype))
    after = (m < m.T).astype(g.dtype)
    sums = np.swapaxes(after @ upto, -1, -2)
    visible = np.tril(np.ones((size, size), bool), 0 if rows is Rows.INCLUSIVE else -1)
    return np.where(visible, sums, -np.inf)


def around(g: Array, block: int, at: int, rows: Rows) -> tuple[Array, Array]:
    """Return (R_i - G_ref, G_ref - G_j) in blocks of `block`, the reference before token `at`.

    g is [..., C, K]. Each is the sum of the g between the token and the reference: rows at and
    after it and columns before it have one <= 0, the others have one >= 0.
    """
    first, second = np.split(_blocks(g, block), [at], axis=-2)
    back, forth = _after(first), np.cumsum(second, axis=-2)
    column = np.concatenate((back, -forth), axis=-2)
    if rows is Rows.INCLUSIVE:
        row = np.concatenate((-back, forth), axis=-2)
    else:
        before = np.flip(np.cumsum(np.flip(first, -2), axis=-2), -2)
        row = np.concatenate((-before, _shifted(forth)), axis=-2)
    return row.reshape(g.shape), column.reshape(g.shape)


def _blocks(g: Array, width: int) -> Array:
    """[..., C, K] -> [..., C / width, width, K]."""
    return g.reshape(*g.shape[:-2], g.shape[-2] // width, width, g.shape[-1])


def _shifted(total: Array) -> Array:
    """Inclusive running sums -> exclusive ones; nothing is subtracted."""
    return np.concatenate((np.zeros_like(total[..., :1, :]), total[..., :-1, :]), axis=-2)


def _after(g: Array) -> Array:
    """Sums over the tokens after each one, from the end."""
    return np.flip(_shifted(np.cumsum(np.flip(g, -2), axis=-2)), -2)
