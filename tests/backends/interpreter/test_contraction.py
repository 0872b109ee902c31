"""A contraction is the sum of a product, whatever axes the operands share."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.interpreter.axes import Value, aligned
from backends.interpreter.contraction import contract

SIZES = {"A": 2, "B": 3, "C": 4, "D": 1, "E": 2}


@st.composite
def operands(draw: st.DrawFn) -> tuple[Value, Value, tuple[str, ...]]:
    names = st.sampled_from(sorted(SIZES))
    over = tuple(draw(st.lists(names, min_size=1, max_size=2, unique=True)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = []
    for _ in range(2):
        own = draw(st.lists(names, max_size=3, unique=True))
        axes = tuple(draw(st.permutations([*over, *(a for a in own if a not in over)])))
        values.append(Value(axes, rng.standard_normal([SIZES[a] for a in axes])))
    return values[0], values[1], over


@settings(max_examples=200, deadline=None)
@given(operands())
def test_contract_is_the_sum_of_the_product(case: tuple[Value, Value, tuple[str, ...]]) -> None:
    a, b, over = case
    result = contract(a, b, over)
    every = tuple(dict.fromkeys(a.axes + b.axes))
    product = aligned(a, every) * aligned(b, every)
    if result is None:
        assert set(a.axes) == set(b.axes) or set(a.axes) < set(b.axes) or set(b.axes) < set(a.axes)
        return
    kept = tuple(axis for axis in every if axis not in over)
    assert set(result.axes) == set(kept)
    right = product.sum(tuple(every.index(axis) for axis in over))
    np.testing.assert_allclose(aligned(result, kept), right, atol=1e-12)


def test_contract_needs_the_axis_on_both_sides() -> None:
    a, b = Value(("A", "K"), np.ones((2, 3))), Value(("B",), np.ones(4))
    assert contract(a, b, ("K",)) is None


def test_empty_axes() -> None:
    a, b = Value(("T", "K"), np.ones((0, 3))), Value(("K", "V"), np.ones((3, 2)))
    result = contract(a, b, ("K",))
    assert result is not None
    assert result.array.shape == (0, 2)
