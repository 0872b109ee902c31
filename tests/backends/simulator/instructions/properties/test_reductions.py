"""Reductions, scans and statistics against the plain meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.isa.operators import ARITHMETIC, BINARY, OPERATORS

BINARY_OPERATORS = st.sampled_from(
    sorted(
        name for name in ARITHMETIC & BINARY if OPERATORS[name].generation == 2 and name != "power"
    )
)
FOLDS = ["add", "maximum", "minimum", "multiply"]
quick = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@quick
@given(
    data=st.data(),
    name=st.sampled_from(FOLDS),
    negate=st.booleans(),
)
def test_tensor_reduce(layouts_for: Any, data: Any, name: str, negate: bool) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    x = layouts.numbers(low=-2, high=3) * 4
    cube = x.reshape(layouts.partitions, layouts.rows, layouts.columns)
    tile = bench.tile(cube, "bfloat16")
    dst = layouts.empty(layouts.rows)
    bench.run("tensor_reduce", dst, bench.op(name), tile, 2, negate)
    sign = -1 if negate else 1
    expected = [[sign * layouts.fold(name, row.tolist()) for row in part] for part in cube]
    layouts.expect(dst, np.array(expected), "float32")


@quick
@given(data=st.data(), op=BINARY_OPERATORS, fold=st.sampled_from(FOLDS))
def test_scalar_reduce(layouts_for: Any, data: Any, op: str, fold: str) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    layouts.rows = min(layouts.rows, 2)
    tile, x = layouts.tile(layouts.numbers(low=-1, high=2) * 4)
    operand, y = layouts.column_or_number()
    dst, res = layouts.empty(layouts.size), bench.empty((layouts.partitions, 1))
    bench.run("tensor_scalar_reduce", dst, tile, bench.op(op), operand, bench.op(fold), res)
    values = layouts.elementwise(lambda u, v: layouts.apply(op, u, v), x, y)
    layouts.expect(dst, values, "float32")
    found = res.load().astype(np.float64).reshape(-1)
    expected = [layouts.fold(fold, row.tolist()) for row in values]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@quick
@given(
    data=st.data(),
    ops=st.tuples(BINARY_OPERATORS, BINARY_OPERATORS),
    flags=st.tuples(*[st.booleans()] * 2),
)
def test_scan(layouts_for: Any, data: Any, ops: tuple[str, str], flags: tuple[bool, bool]) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    (a, x), (b, y) = (
        layouts.tile(layouts.numbers(low=-4, high=5)),
        layouts.tile(layouts.numbers(low=-4, high=5)),
    )
    initial, start = layouts.column_or_number()
    dst = layouts.empty(layouts.size)
    bench.run("tensor_tensor_scan", dst, a, b, initial, bench.op(ops[0]), bench.op(ops[1]), *flags)
    expected = np.empty_like(x)
    for p in range(len(x)):
        state = float(start[p, 0])
        for i in range(x.shape[1]):
            t = (
                layouts.apply(ops[0], state, x[p, i])
                if flags[0]
                else layouts.apply(ops[0], x[p, i], state)
            )
            state = (
                layouts.apply(ops[1], y[p, i], t) if flags[1] else layouts.apply(ops[1], t, y[p, i])
            )
            expected[p, i] = state
    layouts.expect(dst, expected, "float32")


@quick
@given(data=st.data(), op0=BINARY_OPERATORS, op1=st.sampled_from([*FOLDS, "subtract"]))
def test_cumulative(layouts_for: Any, data: Any, op0: str, op1: str) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    tile, x = layouts.tile(layouts.numbers(low=-4, high=5), "bfloat16")
    operand, y = layouts.column_or_number()
    load, start = layouts.column_or_number()
    dst = layouts.empty(layouts.size)
    bench.run(
        "tensor_scalar_cumulative",
        dst,
        tile,
        bench.op(op0),
        bench.op(op1),
        operand,
        load,
        bench.member("reduce_cmd", "load_reduce"),
    )
    expected = np.empty_like(x)
    for p in range(len(x)):
        state = float(start[p, 0])
        for i in range(x.shape[1]):
            state = layouts.apply(op1, layouts.apply(op0, x[p, i], y[p, 0]), state)
            expected[p, i] = state
    layouts.expect(dst, expected, "float32")


@quick
@given(data=st.data())
def test_statistics(layouts_for: Any, data: Any) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    tile, x = layouts.tile(layouts.numbers())
    stats, dst = bench.empty((layouts.partitions, 6)), bench.empty((layouts.partitions, 2))
    bench.run("bn_stats", stats, tile)
    bench.run("bn_aggr", dst, stats)
    expected = np.stack([x.mean(axis=1), x.var(axis=1)], axis=1)
    np.testing.assert_allclose(dst.load(), expected, rtol=1e-5, atol=1e-5)


@quick
@given(data=st.data())
def test_search(layouts_for: Any, data: Any) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    layouts.rows, layouts.columns = 4, 5
    tile, x = layouts.tile(layouts.numbers())
    top, where = (
        bench.empty((layouts.partitions, 8)),
        bench.empty((layouts.partitions, 8), "uint16"),
    )
    bench.run("max8", top, tile)
    bench.run("nc_find_index8", where, tile, top)
    for p, row in enumerate(x.tolist()):
        assert top.load()[p].tolist() == sorted(row, reverse=True)[:8]
        order = sorted(range(20), key=lambda i: (-row[i], i))[:8]
        assert where.load()[p].tolist() == order
