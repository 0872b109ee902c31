"""Constants, selections by range, searches, gathers and folds over partitions against the plain
meaning; and that every simulated instruction has a property.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.isa.instructions import INSTRUCTIONS

KINDS = st.sampled_from(["float32", "bfloat16", "float16", "int16"])
FLOATS = st.sampled_from(["float32", "bfloat16", "float16"])
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "equal": lambda x, y: x == y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
}
LOWEST = float(np.finfo(np.float32).min)
quick = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@quick
@given(data=st.data(), kind=KINDS, value=st.integers(-30, 30))
def test_memset(layouts_for: Any, data: Any, kind: str, value: int) -> None:
    layouts = layouts_for(data.draw)
    dst = layouts.empty(layouts.size, kind)
    layouts.bench.run("memset", dst, value)
    layouts.expect(dst, np.full((layouts.partitions, layouts.size), float(value)), kind)


@quick
@given(data=st.data(), kind=FLOATS)
def test_reciprocal(layouts_for: Any, data: Any, kind: str) -> None:
    layouts = layouts_for(data.draw)
    tile, x = layouts.tile(2.0 ** np.round(layouts.numbers() / 2), kind)
    dst = layouts.empty(layouts.size, kind)
    layouts.bench.run("reciprocal", dst, tile)
    layouts.expect(dst, layouts.elementwise(lambda v: 1 / v, x), kind)


@quick
@given(data=st.data(), kind=KINDS)
def test_dropout_of_all_or_nothing(layouts_for: Any, data: Any, kind: str) -> None:
    layouts = layouts_for(data.draw)
    tile, x = layouts.tile(layouts.numbers(), kind)
    dropped = (layouts.numbers(1) > 0).astype(float)
    dst = layouts.empty(layouts.size, kind)
    layouts.bench.run("dropout", dst, tile, layouts.bench.tile(dropped))
    layouts.expect(dst, layouts.elementwise(lambda v, p: 0.0 if p else v, x, dropped), kind)


@quick
@given(data=st.data(), kind=KINDS, name=st.sampled_from(["add", "maximum"]))
def test_partition_reduce(layouts_for: Any, data: Any, kind: str, name: str) -> None:
    layouts = layouts_for(data.draw)
    tile, x = layouts.tile(layouts.numbers(), kind)
    dst = layouts.bench.empty((1, layouts.size))
    layouts.bench.run("tensor_partition_reduce", dst, layouts.bench.op(name), tile)
    folded = [[layouts.fold(name, column) for column in x.T.tolist()]]
    layouts.expect(dst, np.array(folded), "float32")


@quick
@given(
    data=st.data(),
    kind=FLOATS,
    comparisons=st.tuples(*[st.sampled_from(sorted(COMPARISONS))] * 2),
    start=st.integers(-4, 4),
)
def test_range_select(
    layouts_for: Any, data: Any, kind: str, comparisons: tuple[str, str], start: int
) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    tile, x = layouts.tile(layouts.numbers(), kind)
    bounds = [np.round(layouts.numbers(1)) for _ in range(2)]
    dst, most = layouts.empty(layouts.size), bench.empty((layouts.partitions, 1))
    ops = [bench.op(name) for name in comparisons]
    tiles = [bench.tile(bound) for bound in bounds]
    bench.run("range_select", dst, tile, *ops, *tiles, reduce_res=most, range_start=start)
    first, second = (COMPARISONS[name] for name in comparisons)
    index = np.arange(start, start + layouts.size, dtype=float)[None]
    expected = layouts.elementwise(
        lambda v, i, a, b: v if first(i, a) and second(i, b) else LOWEST, x, index, *bounds
    )
    layouts.expect(dst, expected, "float32")
    layouts.expect(most, expected.max(axis=1, keepdims=True), "float32")


@quick
@given(data=st.data(), op=st.sampled_from(["copy", "square", "relu"]), kind=FLOATS)
def test_activation_reduce(layouts_for: Any, data: Any, op: str, kind: str) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    tile, x = layouts.tile(layouts.numbers(low=-8, high=8), kind)
    bias, shift = bench.tile(column := layouts.numbers(1, -8, 8)), column
    dst, total = layouts.empty(layouts.size, kind), bench.empty((layouts.partitions, 1))
    bench.run("activation_reduce", dst, bench.op(op), tile, bench.op("add"), total, bias, 2.0)
    functions: dict[str, Callable[[float], float]] = {
        "copy": lambda v: v,
        "square": lambda v: v * v,
        "relu": lambda v: max(v, 0.0),
    }
    function = functions[op]
    expected = layouts.elementwise(lambda v, b: function(2 * v + b), x, shift)
    layouts.expect(dst, expected, kind)
    layouts.expect(total, expected.sum(axis=1, keepdims=True), "float32")


STAGES: dict[str, Callable[[float, float], float]] = {
    "multiply": lambda x, y: x * y,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "bypass": lambda x, y: x,
}


@quick
@given(
    data=st.data(),
    ops=st.sampled_from([("multiply", "add"), ("multiply", "subtract"), ("add", "bypass")]),
    kind=FLOATS,
)
def test_activate2(trn3_layouts_for: Any, data: Any, ops: tuple[str, str], kind: str) -> None:
    layouts = trn3_layouts_for(data.draw)
    bench = layouts.bench
    tile, x = layouts.tile(layouts.numbers(low=-8, high=8), kind)
    (first, a), (second, b) = layouts.column_or_number(), layouts.column_or_number()
    dst = layouts.empty(layouts.size, kind)
    tokens = [bench.op(op) for op in ops]
    bench.run("activate2", dst, bench.op("relu"), tile, first, second, *tokens)
    stages = [STAGES[op] for op in ops]
    expected = layouts.elementwise(lambda v, p, q: max(stages[1](stages[0](v, p), q), 0.0), x, a, b)
    layouts.expect(dst, expected, kind)


@quick
@given(data=st.data())
def test_exponential(trn3_layouts_for: Any, data: Any) -> None:
    layouts = trn3_layouts_for(data.draw)
    bench = layouts.bench
    tile, x = layouts.tile(layouts.numbers())
    most, total = bench.tile(x.max(axis=1, keepdims=True)), bench.empty((layouts.partitions, 1))
    dst = layouts.empty(layouts.size)
    command = bench.member("reduce_cmd", "reset_reduce")
    bench.run("exponential", dst, tile, most, total, command)
    expected = np.exp(x - x.max(axis=1, keepdims=True))
    found = dst.load().reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(total.load(), expected.sum(axis=1, keepdims=True), rtol=1e-6)


@quick
@given(data=st.data(), kind=FLOATS)
def test_match_replace(layouts_for: Any, data: Any, kind: str) -> None:
    layouts = layouts_for(data.draw)
    layouts.rows, layouts.columns = 3, 4
    bench = layouts.bench
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    tile, x = layouts.tile(
        np.array([rng.permutation(12) for _ in range(layouts.partitions)], float), kind
    )
    wanted = np.array([rng.permutation(row)[:8] for row in x])
    dst, where = layouts.empty(12), bench.empty((layouts.partitions, 8), "uint32")
    bench.run("nc_match_replace8", dst, tile, bench.tile(wanted, kind), -1.0, where)
    for p, row in enumerate(x.tolist()):
        replaced = [-1.0 if value in wanted[p] else value for value in row]
        assert dst.load()[p].reshape(-1).tolist() == replaced
        assert where.load()[p].tolist() == [row.index(value) for value in wanted[p]]


@quick
@given(
    ids=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    kind=st.sampled_from(["float32", "int32"]),
)
def test_sequence_bounds(bench: Any, ids: list[int], kind: str) -> None:
    n = len(ids)
    dst = bench.empty((1, 2, n), kind)
    bench.run("sequence_bounds", dst, bench.tile([ids], kind))
    starts, ends = [], []
    for i, own in enumerate(ids):
        start = end = i
        while start > 0 and ids[start - 1] == own:
            start -= 1
        while end < n and ids[end] == own:
            end += 1
        starts.append(start if own else n)
        ends.append(end if own else -1)
    assert bench.read(dst).tolist() == [[starts, ends]]


@quick
@given(
    rows=st.lists(st.lists(st.integers(-1, 1), min_size=5, max_size=5), min_size=2, max_size=2),
    kind=st.sampled_from(["float32", "int32"]),
    offset=st.integers(0, 9),
)
def test_nonzero_with_count(bench: Any, rows: list[list[int]], kind: str, offset: int) -> None:
    src = np.ones((32, 5))
    src[[0, 16]] = rows
    dst = bench.tile(np.full((32, 6), 77), "int32")
    bench.run("nonzero_with_count", dst, bench.tile(src, kind), index_offset=offset)
    for partition, row in zip((0, 16), rows, strict=True):
        found = [i + offset for i, value in enumerate(row) if value]
        expected = [*found, *[-1] * (5 - len(found)), len(found)]
        assert bench.read(dst)[partition].tolist() == expected
    assert bench.read(dst)[1].tolist() == [77] * 6


@quick
@given(data=st.data(), n=st.integers(8, 40))
def test_topk(bench: Any, data: Any, n: int) -> None:
    k = data.draw(st.integers(1, n))
    elements = np.random.default_rng(n * 64 + k).permutation(48).astype(float)
    src = elements.reshape(16, 3, order="F")
    values, places = bench.empty((16, k), "bfloat16"), bench.empty((16, k), "uint32")
    bench.run("topk", values, places, bench.tile(src, "bfloat16"), n)
    order = sorted(range(n), key=lambda i: elements[i])[-k:]
    for j, place in enumerate(order):
        assert bench.read(places)[j % 16, j // 16] == place
        assert bench.read(values)[j % 16, j // 16] == elements[place]


@quick
@given(data=st.data(), width=st.sampled_from([1, 2, 4]), kind=KINDS, count=st.integers(1, 20))
def test_local_gather(bench: Any, data: Any, width: int, kind: str, count: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    src = rng.integers(0, 99, (32, 24)).astype(float)
    index = rng.integers(0, 24 // width, (32, 2)) * width
    dst = bench.empty((32, count * width), kind)
    bench.run("local_gather", dst, bench.tile(src, kind), bench.tile(index, "uint16"), width, count)
    for p in range(32):
        group = index[p // 16 * 16 : p // 16 * 16 + 16]
        listed = [int(group[i % 16, i // 16]) for i in range(count)]
        expected = [src[p, first + i] for first in listed for i in range(width)]
        assert bench.read(dst)[p].tolist() == expected


@quick
@given(data=st.data(), kinds=st.lists(KINDS, min_size=1, max_size=4), kind=KINDS)
def test_dma_compute(layouts_for: Any, data: Any, kinds: list[str], kind: str) -> None:
    layouts = layouts_for(data.draw)
    made = [layouts.tile(layouts.numbers(low=-8, high=8), name) for name in kinds]
    dst = layouts.empty(layouts.size, kind)
    layouts.bench.run("dma_compute", dst, [tile for tile, _ in made], layouts.bench.op("add"))
    layouts.expect(dst, sum(table for _, table in made), kind)


ELSEWHERE = {
    "sendrecv": "two programs: test_two_cores.py",
    "core_barrier": "two programs: test_two_cores.py",
    "register_alloc": "one number: test_register_cross_core.py",
    "register_move": "one number: test_register_cross_core.py",
    "register_load": "one number: test_register_cross_core.py",
    "register_store": "one number: test_register_cross_core.py",
}


def test_every_simulated_instruction_is_compared() -> None:
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    simulated = {name for name, row in INSTRUCTIONS.items() if row.not_simulated is None}
    assert {name for name in simulated if f'"{name}"' not in text} == set()
    assert set(ELSEWHERE) <= simulated


@pytest.fixture
def trn3_layouts_for(layouts_for: Any, make_bench: Callable[..., Any]) -> Callable[[Any], Any]:
    """Random layouts on a fresh program of trn3."""

    def make(draw: Any) -> Any:
        layouts = layouts_for(draw)
        layouts.bench = make_bench(target="trn3")
        return layouts

    return make
