"""Arithmetic, copies, selection, functions against the plain meaning."""

from __future__ import annotations

import math
from collections.abc import Callable
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

FLOATS = ("float32", "bfloat16", "float16")
ANY = (*FLOATS, "float8_e4m3", "float8_e5m2", "int32", "int16", "uint8", "int8")
quick = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


ACTIVATIONS: dict[str, Callable[[float], float]] = {
    "copy": lambda x: x,
    "square": lambda x: x * x,
    "relu": lambda x: max(x, 0.0),
    "abs": abs,
    "sign": lambda x: float(x > 0) - float(x < 0),
}
SMOOTH: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "erf": math.erf,
}


@quick
@given(data=st.data(), name=BINARY_OPERATORS, kinds=st.tuples(*[st.sampled_from(ANY)] * 3))
def test_tensor_tensor(layouts_for: Any, data: Any, name: str, kinds: tuple[str, str, str]) -> None:
    if all(kind == "int32" for kind in kinds):
        kinds = ("int32", "int16", "int32")
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    memory = data.draw(st.sampled_from(["sbuf", "psum"]))
    (a, x), (b, y) = (
        layouts.tile(layouts.numbers(), kinds[0], memory),
        layouts.tile(layouts.numbers(), kinds[1]),
    )
    dst = layouts.empty(layouts.size, kinds[2])
    bench.run("tensor_tensor", dst, a, b, bench.op(name))
    layouts.expect(dst, layouts.elementwise(lambda u, v: layouts.apply(name, u, v), x, y), kinds[2])


@quick
@given(
    data=st.data(),
    op0=BINARY_OPERATORS,
    op1=st.none() | BINARY_OPERATORS,
    kind=st.sampled_from(ANY),
)
def test_tensor_scalar(layouts_for: Any, data: Any, op0: str, op1: str | None, kind: str) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    (tile, x), (first, y) = layouts.tile(layouts.numbers(), kind), layouts.column_or_number()
    second, z = layouts.column_or_number()
    reverse0, reverse1 = data.draw(st.booleans()), data.draw(st.booleans())
    dst_kind = data.draw(st.sampled_from(FLOATS))
    dst = layouts.empty(layouts.size, dst_kind)

    def meaning(u: float, v: float, w: float) -> Any:
        t = layouts.apply(op0, v, u) if reverse0 else layouts.apply(op0, u, v)
        if op1 is None:
            return t
        return layouts.apply(op1, w, t) if reverse1 else layouts.apply(op1, t, w)

    bench.run(
        "tensor_scalar",
        dst=dst,
        data=tile,
        op0=bench.op(op0),
        operand0=first,
        reverse0=reverse0,
        op1=None if op1 is None else bench.op(op1),
        operand1=None if op1 is None else second,
        reverse1=reverse1,
    )
    layouts.expect(dst, layouts.elementwise(meaning, x, y, z), dst_kind)


@quick
@given(data=st.data(), op0=BINARY_OPERATORS, op1=BINARY_OPERATORS, kind=st.sampled_from(FLOATS))
def test_scalar_tensor_tensor(layouts_for: Any, data: Any, op0: str, op1: str, kind: str) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    (tile, x), (other, z) = (
        layouts.tile(layouts.numbers(), kind),
        layouts.tile(layouts.numbers(), kind, data.draw(st.sampled_from(["sbuf", "psum"]))),
    )
    operand, y = layouts.column_or_number()
    reverse0, reverse1 = data.draw(st.booleans()), data.draw(st.booleans())
    dst = layouts.empty(layouts.size, kind)

    def meaning(u: float, v: float, w: float) -> Any:
        t = layouts.apply(op0, v, u) if reverse0 else layouts.apply(op0, u, v)
        return layouts.apply(op1, w, t) if reverse1 else layouts.apply(op1, t, w)

    bench.run(
        "scalar_tensor_tensor",
        dst,
        tile,
        bench.op(op0),
        operand,
        bench.op(op1),
        other,
        reverse0,
        reverse1,
    )
    layouts.expect(dst, layouts.elementwise(meaning, x, y, z), kind)


@quick
@given(data=st.data(), kinds=st.tuples(*[st.sampled_from(ANY)] * 2))
def test_copies_convert(layouts_for: Any, data: Any, kinds: tuple[str, str]) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    src, x = layouts.tile(layouts.numbers(), kinds[0])
    for name in ("tensor_copy", "dma_copy"):
        dst = layouts.empty(layouts.size, kinds[1])
        bench.run(name, dst, src)
        layouts.expect(dst, x, kinds[1])


@quick
@given(data=st.data(), reverse=st.booleans(), kind=st.sampled_from(FLOATS))
def test_predicated_and_select(layouts_for: Any, data: Any, reverse: bool, kind: str) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    (src, x), (dst, old) = (
        layouts.tile(layouts.numbers(), kind),
        layouts.tile(layouts.numbers(), kind),
    )
    predicate, p = layouts.tile(layouts.numbers(low=0, high=9), "uint8")
    bench.run("tensor_copy_predicated", dst, src, predicate, reverse)
    layouts.expect(
        dst, layouts.elementwise(lambda u, v, c: u if (c != 0) != reverse else v, x, old, p), kind
    )
    otherwise, y = layouts.column_or_number()
    result, res = layouts.empty(layouts.size, kind), bench.empty((layouts.partitions, 1))
    bench.run(
        "select_reduce",
        result,
        predicate,
        src,
        otherwise,
        res,
        bench.member("reduce_cmd", "reset_reduce"),
        reverse_pred=reverse,
    )
    chosen = layouts.elementwise(lambda u, v, c: u if (c != 0) != reverse else v, x, y, p)
    layouts.expect(result, chosen, kind)
    layouts.expect(res, chosen.max(axis=1, keepdims=True), "float32")


@quick
@given(data=st.data(), comparison=st.sampled_from(["equal", "less", "greater_equal"]))
def test_ramps(layouts_for: Any, data: Any, comparison: str) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    steps = data.draw(st.tuples(st.integers(-5, 5), st.integers(-5, 5)))
    offset, channel = data.draw(st.integers(-9, 9)), data.draw(st.integers(-3, 3))
    pattern = [[steps[0], layouts.rows], [steps[1], layouts.columns]]
    ramp = np.array(
        [
            [
                float(offset + c * channel + i * steps[0] + j * steps[1])
                for i in range(layouts.rows)
                for j in range(layouts.columns)
            ]
            for c in range(layouts.partitions)
        ]
    )
    dst = layouts.empty(layouts.size, "int32")
    bench.run("iota", dst, pattern, offset, channel)
    layouts.expect(dst, ramp, "int32")
    on_true, x = layouts.tile(layouts.numbers(), "bfloat16")
    selected = layouts.empty(layouts.size)
    bench.run(
        "affine_select",
        selected,
        pattern,
        channel,
        on_true,
        -3.0,
        bench.op(comparison),
        offset,
    )
    layouts.expect(
        selected,
        layouts.elementwise(lambda a, u: u if layouts.apply(comparison, a, 0) else -3.0, ramp, x),
        "float32",
    )


@quick
@given(data=st.data(), name=st.sampled_from(sorted(ACTIVATIONS)), kind=st.sampled_from(FLOATS))
def test_activation(layouts_for: Any, data: Any, name: str, kind: str) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    tile, x = layouts.tile(layouts.numbers(), kind)
    (scale, y), (bias, z) = layouts.column_or_number(), layouts.column_or_number()
    dst, res = layouts.empty(layouts.size, kind), bench.empty((layouts.partitions, 1))
    bench.run(
        "activation",
        dst,
        bench.op(name),
        tile,
        bias,
        scale,
        bench.op("add"),
        res,
        bench.member("reduce_cmd", "reset_reduce"),
    )
    values = layouts.elementwise(lambda u, s, b: ACTIVATIONS[name](u * s + b), x, y, z)
    layouts.expect(dst, values, kind)
    layouts.expect(res, values.sum(axis=1, keepdims=True), "float32")


@quick
@given(data=st.data(), name=st.sampled_from(sorted(SMOOTH)))
def test_smooth_activation(layouts_for: Any, data: Any, name: str) -> None:
    layouts = layouts_for(data.draw)
    bench = layouts.bench
    tile, x = layouts.tile(layouts.numbers())
    dst = layouts.empty(layouts.size)
    bench.run("activation", dst, bench.op(name), tile, scale=0.5)
    found = dst.load().reshape(x.shape)
    np.testing.assert_allclose(
        found, layouts.elementwise(lambda u: SMOOTH[name](u / 2), x), rtol=1e-6, atol=1e-7
    )
