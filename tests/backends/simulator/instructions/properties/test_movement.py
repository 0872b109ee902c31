"""Products, transposes, shuffles, gathers against the plain meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ANY = ("float32", "bfloat16", "float16", "float8_e5m2", "int32", "int16", "uint8")
quick = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@quick
@given(data=st.data(), kind=st.sampled_from(["float32", "bfloat16", "float8_e5m2"]))
def test_matmul(layouts_for: Any, data: Any, kind: str) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    k = layouts.partitions
    (a, x), (b, y) = (
        layouts.tile(layouts.numbers(low=-4, high=5), kind),
        layouts.tile(layouts.numbers(data.draw(st.integers(1, 40)), low=-4, high=5), kind),
    )
    dst = bench.empty((x.shape[1], y.shape[1]), memory="psum")
    for repeat in (1, 2):
        bench.run("nc_matmul", dst, a, b)
        expected = [
            [repeat * sum(x[p, m] * y[p, n] for p in range(k)) for n in range(y.shape[1])]
            for m in range(x.shape[1])
        ]
        layouts.expect(dst, np.array(expected), "float32")


@quick
@given(data=st.data(), kind=st.sampled_from(ANY))
def test_transposes(layouts_for: Any, data: Any, kind: str) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    tile, x = layouts.tile(layouts.numbers(), kind)
    dst = bench.empty((x.shape[1], x.shape[0]), kind, "psum")
    bench.run("nc_transpose", dst, tile)
    layouts.expect(dst, x.T, kind)
    by_dma = bench.empty((x.shape[1], x.shape[0]), kind)
    flat = bench.tile(x, kind, memory="hbm")
    bench.run("dma_transpose", by_dma, flat)
    layouts.expect(by_dma, x.T, kind)


@quick
@given(data=st.data(), mask=st.lists(st.integers(0, 31), min_size=32, max_size=32))
def test_shuffle(layouts_for: Any, data: Any, mask: list[int]) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    layouts.partitions = 64
    src, x = layouts.tile(layouts.numbers(), "bfloat16")
    keep = data.draw(st.sets(st.integers(0, 31)))
    mask = [255 if i in keep else m for i, m in enumerate(mask)]
    dst, old = layouts.tile(layouts.numbers(), "bfloat16")
    bench.run("nc_stream_shuffle", dst, src, mask)
    expected = old.copy()
    for row in range(64):
        if mask[row % 32] != 255:
            expected[row] = x[32 * (row // 32) + mask[row % 32]]
    layouts.expect(dst, expected, "bfloat16")


@quick
@given(data=st.data())
def test_n_gather(layouts_for: Any, data: Any) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    tile, x = layouts.tile(layouts.numbers())
    index = np.random.default_rng(data.draw(st.integers(0, 99))).integers(
        0, layouts.size, (layouts.partitions, 3)
    )
    dst = bench.empty((layouts.partitions, 3))
    bench.run("nc_n_gather", dst, tile, bench.tile(index, "uint32"))
    expected = [[x[p, i] for i in index[p]] for p in range(layouts.partitions)]
    layouts.expect(dst, np.array(expected), "float32")


@quick
@given(data=st.data(), rows=st.permutations(range(6)))
def test_gather_and_scatter_by_dma(layouts_for: Any, data: Any, rows: list[int]) -> None:
    bench = layouts_for(data.draw).bench
    width = data.draw(st.integers(1, 5))
    table = np.random.default_rng(width).integers(0, 99, (6, width)).astype(float)
    index = bench.tile(np.array(rows)[:, None], "int32")
    pattern = [[width, 6], [1, width]]
    gathered = bench.empty((6, width))
    source = bench.tile(table, memory="hbm").ap(pattern, vector_offset=index, indirect_dim=0)
    bench.run("dma_copy", gathered, source)
    assert gathered.load().tolist() == [table[row].tolist() for row in rows]
    target = bench.empty((6, width), memory="hbm")
    bench.run("dma_copy", target.ap(pattern, vector_offset=index, indirect_dim=0), gathered)
    assert target.load().tolist() == table.tolist()
