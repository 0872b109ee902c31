"""Attack on the range of every operator: random intervals, random values inside, no escape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdsl.ir import ranges
from gdsl.ir.dtypes import Dtype
from gdsl.ir.interval import contains, join, point, rounded, show, within
from gdsl.ir.operators import OPERATORS, REDUCTIONS
from gdsl.ir.types import ANY, Interval

INF = math.inf
F32_MAX = float(np.finfo(np.float32).max)
ENDS = [-INF, INF, 0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 3.0, 1e-30, 1e-46, 1e200, -1e200]
ends = st.one_of(st.sampled_from([*ENDS, 88.0, -88.0, F32_MAX]), st.floats(allow_nan=False))


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    lo, hi = sorted((draw(ends), draw(ends)))
    lo_open = draw(st.booleans()) and math.nextafter(lo, INF) < hi
    hi_open = draw(st.booleans()) and math.nextafter(hi, -INF) > lo
    return Interval(lo, hi, lo_open, hi_open, draw(st.booleans()))


@st.composite
def member(draw: st.DrawFn, interval: Interval) -> float:
    if interval.may_be_nan and draw(st.integers(0, 7)) == 0:
        return math.nan
    likely = [x for x in (*ENDS, interval.lo, interval.hi) if contains(interval, x)]
    inside = st.floats(
        interval.lo + 0.0,
        interval.hi + 0.0,
        exclude_min=interval.lo_open,
        exclude_max=interval.hi_open,
    )
    if interval.lo == interval.hi == 0:
        return draw(st.sampled_from([0.0, -0.0]))
    return draw(st.one_of(st.sampled_from(likely), inside) if likely else inside)


def evaluate(name: str, args: list[float], dtype: type[np.floating[Any]]) -> float:
    with np.errstate(over="ignore", under="ignore"):
        arrays = [np.asarray(a, np.float64).astype(dtype) for a in args]
    if name == "where":
        arrays[0] = arrays[0] != 0
    return float(OPERATORS[name].evaluate(*arrays))


def widened(interval: Interval, name: str) -> Interval:
    """Allow the rounding of arguments and result to float32, as the module's docstring says."""
    slack = 1e-4 if name == "pow" else 1e-5
    lo = interval.lo - abs(interval.lo) * slack if math.isfinite(interval.lo) else interval.lo
    hi = interval.hi + abs(interval.hi) * slack if math.isfinite(interval.hi) else interval.hi
    return Interval(lo - 1e-44, hi + 1e-44, may_be_nan=interval.may_be_nan)


@pytest.mark.parametrize("name", OPERATORS)
def test_no_value_escapes_in_float64(name: str) -> None:
    operator = OPERATORS[name]

    @settings(max_examples=80, deadline=None)
    @given(st.data())
    def attack(data: st.DataObject) -> None:
        boxes = [data.draw(intervals()) for _ in range(operator.arity)]
        if name == "where":
            boxes[0] = data.draw(st.sampled_from([Interval(0, 1), Interval(1, 1), Interval(0, 0)]))
        values = [data.draw(member(box)) for box in boxes]
        result = evaluate(name, values, np.float64)
        assert contains(operator.interval(*boxes), result), (boxes, values, result)

    attack()


def test_an_end_at_zero_has_no_sign() -> None:
    """(-0, inf) ** -1 has no value below 0."""
    above = Interval(-0.0, INF, lo_open=True)
    found = OPERATORS["pow"].interval(above, Interval(-1.0, 0.0))
    assert contains(found, 2.0)
    assert not contains(found, -1.0)


SMALL = st.floats(-50, 50, width=32)


@pytest.mark.parametrize("name", sorted(set(OPERATORS) - {"where", "eq", "ne", "lt", "le"}))
def test_no_value_escapes_in_float32(name: str) -> None:
    """Arguments of ordinary size: only the rounding of the operation itself may stick out."""
    operator = OPERATORS[name]
    if name in ("gt", "ge"):
        return

    @settings(max_examples=30, deadline=None)
    @given(st.data())
    def attack(data: st.DataObject) -> None:
        boxes = []
        for _ in range(operator.arity):
            lo, hi = sorted((data.draw(SMALL), data.draw(SMALL)))
            boxes.append(Interval(lo, hi))
        values = [data.draw(st.floats(box.lo + 0.0, box.hi + 0.0, width=32)) for box in boxes]
        result = evaluate(name, values, np.float32)
        assert contains(widened(operator.interval(*boxes), name), result), (boxes, values, result)

    attack()


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("known", [True, False])
def test_no_reduction_escapes(name: str, known: bool) -> None:
    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def attack(data: st.DataObject) -> None:
        box = data.draw(intervals())
        values = data.draw(st.lists(member(box), min_size=1, max_size=9))
        result = float(REDUCTIONS[name].evaluate(np.array(values), (0,)))
        bound = REDUCTIONS[name].interval(box, len(values) if known else None)
        assert contains(bound, result), (box, values, result, bound)

    attack()


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from([d for d in Dtype if d.is_float]))
def test_no_rounded_value_escapes(data: st.DataObject, dtype: Dtype) -> None:
    box = data.draw(intervals())
    value = data.draw(member(box))
    with np.errstate(over="ignore", under="ignore"):
        result = float(np.asarray(value, np.float32).astype(dtype.numpy))
    bound = rounded(box, dtype)
    if dtype is Dtype.F32:
        bound = widened(bound, "cast")
    assert contains(bound, result), (box, value, result, bound)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_square_of_one_value(data: st.DataObject) -> None:
    box = data.draw(intervals())
    value = data.draw(member(box))
    assert contains(ranges.square(box), evaluate("mul", [value, value], np.float64))


@pytest.mark.parametrize(
    ("got", "right"),
    [
        (ranges.exp(Interval(-INF, 0, lo_open=True)), Interval(0, 1)),
        (ranges.log(Interval(0, 1)), Interval(-INF, 0)),
        (ranges.mul(Interval(-16, 0), Interval(0, 5)), Interval(-80, 0)),
        (ranges.sum_of(ranges.square(ANY), None), Interval(0, INF)),
        (ranges.pow_(Interval(2, 2), Interval(-3, -1)), Interval(0.125, 0.5)),
        (ranges.div(Interval(1, 1), Interval(0, 1, lo_open=True)), Interval(1, INF)),
        (ranges.abs_(Interval(-2, 1, lo_open=True)), Interval(0, 2, hi_open=True)),
        (OPERATORS["sigmoid"].interval(ANY), Interval(0, 1)),
        (OPERATORS["softplus"].interval(ANY), Interval(0, INF)),
        (
            OPERATORS["where"].interval(Interval(0, 1), Interval(1, 2), Interval(5, 6)),
            Interval(1, 6),
        ),
    ],
)
def test_ranges_are_not_needlessly_wide(got: Interval, right: Interval) -> None:
    assert math.isclose(got.lo, right.lo, rel_tol=1e-12)
    assert math.isclose(got.hi, right.hi, rel_tol=1e-12)
    assert (got.lo_open, got.hi_open) == (right.lo_open, right.hi_open)
    assert got.may_be_nan is right.may_be_nan


@pytest.mark.parametrize(
    "got",
    [
        ranges.mul(Interval(0, 1), ANY),
        ranges.div(Interval(0, 1), Interval(0, 1)),
        ranges.add(ANY, ANY),
        ranges.log(Interval(-1, 1)),
        ranges.sqrt(Interval(-1, 1)),
        ranges.pow_(Interval(-1, 1), Interval(0.5, 0.5)),
        ranges.sum_of(ANY, 2),
        ranges.add(Interval(0, 1, may_be_nan=True), Interval(0, 1)),
    ],
)
def test_nan_is_announced(got: Interval) -> None:
    assert got.may_be_nan


def test_finite_arguments_multiply_without_nan() -> None:
    finite = Interval(lo_open=True, hi_open=True)
    assert not ranges.mul(Interval(0, 1), finite).may_be_nan


def test_within_and_join_respect_open_ends() -> None:
    half_open = Interval(0, 1, lo_open=True)
    assert within(half_open, Interval(0, 1))
    assert not within(Interval(0, 1), half_open)
    assert not within(Interval(0, 1, may_be_nan=True), Interval(0, 1))
    assert join(half_open, Interval(0, 0.5)) == Interval(0, 1)
    assert join(half_open, Interval(0.25, 0.5)) == half_open


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(-INF, 0, lo_open=True), "(-inf, 0]"),
        (Interval(0, 1), "[0, 1]"),
        (ANY, "(-inf, inf)"),
        (point(math.nan), "(-inf, inf) or NaN"),
    ],
)
def test_show(interval: Interval, text: str) -> None:
    assert show(interval) == text
