"""Segment sums: right where prefix differences are not, and never positive where promised."""

from __future__ import annotations

import numpy as np
import pytest

from gdsl.algorithm.chunk_plan import Rows
from gdsl.algorithm.segments import around_middle, between_halves, from_start, pairs, to_end
from gdsl.algorithm.triangular import below_diagonal_blocks

C = 16
ROWS = (Rows.INCLUSIVE, Rows.EXCLUSIVE)


def exact(g: np.ndarray, rows: Rows) -> np.ndarray:
    """R_i - G_j by summing each segment, g [C, K]; NaN where no such pair exists."""
    size = len(g)
    out = np.full((size, size, g.shape[1]), np.nan)
    for i in range(size):
        last = i if rows is Rows.INCLUSIVE else i - 1
        for j in range(last + 1):
            out[i, j] = g[j + 1 : last + 1].sum(axis=0)
    return out


@pytest.fixture
def g() -> np.ndarray:
    return -np.exp(2 * np.random.default_rng(1).standard_normal((C, 3)))


@pytest.mark.parametrize("rows", ROWS)
def test_pairs(g: np.ndarray, rows: Rows) -> None:
    found, expected = pairs(g[:, 0], rows), exact(g, rows)[..., 0]
    np.testing.assert_allclose(found, np.where(np.isnan(expected), -np.inf, expected))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_between_halves(g: np.ndarray, rows: Rows, width: int) -> None:
    row, column = between_halves(g, width, rows)
    assert row.max() <= 0
    assert column.max() <= 0
    where = below_diagonal_blocks(C, width)
    np.testing.assert_allclose((row[:, None] + column[None])[where], exact(g, rows)[where])


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("width", [2, 4, 16])
def test_around_middle(g: np.ndarray, rows: Rows, width: int) -> None:
    row, column = around_middle(g, width, rows)
    block = np.arange(C) // width
    where = (block[:, None] == block[None]) & ~np.isnan(exact(g, rows)[..., 0])
    np.testing.assert_allclose(
        (row[:, None] + column[None])[where], exact(g, rows)[where], atol=1e-12
    )
    reach = width / 2 * -g.min()
    assert max(abs(row).max(), abs(column).max()) <= reach + 1e-12


def test_ends(g: np.ndarray) -> None:
    np.testing.assert_allclose(from_start(g, Rows.INCLUSIVE), np.cumsum(g, 0))
    np.testing.assert_allclose(from_start(g, Rows.EXCLUSIVE), np.cumsum(g, 0) - g, atol=1e-12)
    np.testing.assert_allclose(to_end(g), g.sum(0) - np.cumsum(g, 0), atol=1e-12)


def test_weak_tokens_after_strong_ones_keep_their_decay() -> None:
    g = np.where(np.arange(128) < 64, -21.0, -1e-3)
    truth = np.exp(pairs(g, Rows.INCLUSIVE))
    single = g.astype(np.float32)
    prefix = np.cumsum(single)
    naive = np.exp(np.where(truth > 0, prefix[:, None] - prefix[None], -np.inf))
    sums = np.exp(pairs(single, Rows.INCLUSIVE))
    assert np.abs(sums - truth).max() < 1e-5
    assert np.abs(naive - truth).max() > 1e-3


@pytest.mark.parametrize("value", [0.0, -0.0])
def test_no_decay_is_exactly_one(value: float) -> None:
    g = np.full((C, 2), value)
    assert (np.exp(pairs(g[:, 0], Rows.INCLUSIVE))[np.tril_indices(C)] == 1).all()
    for factor in (*between_halves(g, 4, Rows.INCLUSIVE), *around_middle(g, 4, Rows.EXCLUSIVE)):
        assert (np.exp(factor) == 1).all()
