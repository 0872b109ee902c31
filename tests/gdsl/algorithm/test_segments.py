"""Segment sums: right where prefix differences are not, and never positive where promised."""

from __future__ import annotations

import numpy as np
import pytest

from gdsl.algorithm.chunk_plan import AnchoredSegments, Rows
from gdsl.algorithm.segments import around, from_start, pairs, to_end
from gdsl.ir.expr import Const
from gdsl.ir.types import Type

C = 16
LOG = Const(0.0, Type())
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
@pytest.mark.parametrize(("subblock", "tile"), [(1, 1), (2, 4), (4, 4), (4, 8), (8, 16)])
def test_references_cover_every_pair_once(
    g: np.ndarray, rows: Rows, subblock: int, tile: int
) -> None:
    levels = tuple(w for w in (1, 2, 4, 8) if w >= tile)
    segments = AnchoredSegments(LOG, subblock, tile, levels, subblock / 2 * -g.min())
    wanted = exact(g, rows)
    covered = np.zeros((C, C), int)
    for reference in segments.references:
        row, column = around(g, reference.block, reference.at, rows)
        place, block = np.arange(C) % reference.block, np.arange(C) // reference.block
        is_row = (reference.first <= place) & (place < reference.last)
        is_column = place < reference.columns
        where = (block[:, None] == block) & is_row[:, None] & is_column & ~np.isnan(wanted[..., 0])
        np.testing.assert_allclose((row[:, None] + column[None])[where], wanted[where], atol=1e-12)
        covered += where
        largest = segments.reach if reference.columns > reference.first else 0.0
        assert max(row[is_row].max(), column[is_column].max()) <= largest + 1e-12
    below = np.tril(np.ones((C, C), int), -1)
    assert (covered[below == 1] == 1).all()
    on_diagonal = 1 if subblock > 1 and rows is Rows.INCLUSIVE else 0
    assert (np.diag(covered) == on_diagonal).all()


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
    for factor in (*around(g, 8, 4, Rows.INCLUSIVE), *around(g, 4, 2, Rows.EXCLUSIVE)):
        assert (np.exp(factor) == 1).all()
