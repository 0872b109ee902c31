"""Statistics triples, the largest values, positions, runs, counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

RNG = np.random.default_rng(11)
ALL_ONES = 2**32 - 1


def test_bn_stats_of_four_elements(bench: Any) -> None:
    dst = bench.empty((1, 6))
    bench.run("bn_stats", dst, bench.tile([[1.0, 10.0, 3.0, 30.0]]))
    assert bench.read(dst).tolist() == [[2, 2, 2, 2, 20, 200]]


def test_bn_stats_of_one_element_has_no_odd_half(bench: Any) -> None:
    dst = bench.empty((1, 6))
    bench.run("bn_stats", dst, bench.tile([[5.0]]))
    assert bench.read(dst).tolist() == [[1, 5, 0, 0, 0, 0]]


@pytest.mark.parametrize("size", [2, 7, 512])
def test_stats_then_aggregate_is_mean_and_variance(bench: Any, size: int) -> None:
    data = RNG.standard_normal((8, size)).astype(np.float32) * 3 + 2
    stats, dst = bench.empty((8, 6)), bench.empty((8, 2))
    bench.run("bn_stats", stats, bench.tile(data))
    bench.run("bn_aggr", dst, stats)
    expected = np.stack([data.mean(1, dtype=np.float64), data.var(1, dtype=np.float64)], axis=1)
    np.testing.assert_allclose(bench.read(dst), expected, rtol=1e-5, atol=1e-5)


def test_max8_descends(bench: Any) -> None:
    data = RNG.permutation(40).astype(np.float32).reshape(2, 20)
    dst = bench.empty((2, 8))
    bench.run("max8", dst, bench.tile(data))
    assert bench.read(dst).tolist() == [sorted(row, reverse=True)[:8] for row in data.tolist()]


def test_find_index8_serves_duplicates_in_order_and_marks_the_missing(bench: Any) -> None:
    data = [[5.0, 1.0, 5.0, 2.0, 5.0, 3.0, 9.0, 9.0]]
    vals = [[5.0, 5.0, 9.0, 3.0, 7.0, 5.0, 9.0, 5.0]]
    dst = bench.empty((1, 8), "uint32")
    bench.run("nc_find_index8", dst, bench.tile(data), bench.tile(vals))
    assert bench.read(dst).tolist() == [[0, 2, 6, 5, ALL_ONES, 4, 7, ALL_ONES]]


def test_match_replace8_serves_the_last_value_first(bench: Any) -> None:
    data = [[5.0, 1.0, 5.0, 2.0, 5.0, 3.0, 9.0, 0.0]]
    vals = [[5.0, 5.0, 9.0, 3.0, 7.0, 7.0, 7.0, 7.0]]
    dst, index = bench.empty((1, 8)), bench.empty((1, 8), "uint16")
    bench.run("nc_match_replace8", dst, bench.tile(data), bench.tile(vals), -1.0, index)
    assert bench.read(dst).tolist() == [[-1, 1, -1, 2, 5, -1, -1, 0]]
    assert bench.read(index).tolist() == [[2, 0, 6, 5, 65535, 65535, 65535, 65535]]


def test_rounds_of_max8_and_match_replace8_sort(bench: Any) -> None:
    data = RNG.permutation(24).astype(np.float32).reshape(1, 24)
    work = bench.tile(data)
    found: list[float] = []
    for _ in range(3):
        top = bench.empty((1, 8))
        bench.run("max8", top, work)
        bench.run("nc_match_replace8", work, work, top, -100.0)
        found += bench.read(top)[0].tolist()
    assert found == sorted(data[0].tolist(), reverse=True)


def test_sequence_bounds(bench: Any) -> None:
    dst = bench.empty((1, 2, 6), "int32")
    bench.run("sequence_bounds", dst, bench.tile([[1, 1, 2, 2, 2, 0]], "int32"))
    assert bench.read(dst).tolist() == [[[0, 0, 2, 2, 2, 6], [2, 2, 5, 5, 5, -1]]]


def test_nonzero_with_count_works_on_every_sixteenth_partition(bench: Any) -> None:
    src = np.zeros((32, 4))
    src[0] = [0, 3, 0, 1]
    src[1] = [1, 1, 1, 1]
    src[16] = [1, 0, 0, 0]
    dst = bench.tile(np.full((32, 5), 77), "int32")
    bench.run("nonzero_with_count", dst, bench.tile(src), index_offset=10)
    found = bench.read(dst)
    assert found[0].tolist() == [11, 13, -1, -1, 2]
    assert found[16].tolist() == [10, -1, -1, -1, 1]
    assert found[1].tolist() == [77] * 5


@pytest.mark.parametrize("descending", [False, True])
def test_topk_in_snake_order(bench: Any, descending: bool) -> None:
    n, k = 42, 20
    elements = RNG.permutation(64).astype(np.float32)
    src = np.zeros((32, 3), dtype=np.float32)
    src[:16] = elements[:48].reshape(16, 3, order="F")
    src[16:] = -src[:16]
    values, positions = bench.empty((32, k), "bfloat16"), bench.empty((32, k), "uint32")
    bench.run("topk", values, positions, bench.tile(src, "bfloat16"), n, sorted=descending)
    for group, sign in ((0, 1), (1, -1)):
        snake = sign * elements[:n]
        order = sorted(range(n), key=lambda i: snake[i])[-k:]
        order = order[::-1] if descending else order
        for j, position in enumerate(order):
            place = (16 * group + j % 16, j // 16)
            assert bench.read(positions)[place] == position
            assert bench.read(values)[place] == snake[position]
