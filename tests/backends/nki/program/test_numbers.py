"""Numbers of the trace: folding keeps the value, and the text is Python of the same value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.nki.program.numbers import (
    ONE,
    ZERO,
    Choice,
    Largest,
    Name,
    Number,
    Numeric,
    binary,
    evaluate,
    number,
    product,
    smallest,
)

NAMES = {"a": 3, "b": 7, "c": 128}
A, B, C = Name("a"), Name("b"), Name("c")
LEAVES = st.one_of(st.sampled_from(sorted(NAMES)), st.integers(-3, 9))
OPERATORS = st.sampled_from(["+", "-", "*", "//", "%", "min", "max"])
TREES: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: st.tuples(OPERATORS, inner, inner), max_leaves=12
)


def _plain(tree: Any) -> int:
    """The value by Python alone. Raises ZeroDivisionError."""
    if isinstance(tree, tuple):
        op, left, right = tree[0], _plain(tree[1]), _plain(tree[2])
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "//":
                return left // right
            case "%":
                return left % right
            case _:
                return min(left, right) if op == "min" else max(left, right)
    return NAMES[tree] if isinstance(tree, str) else int(tree)


def _built(tree: Any) -> Number:
    if isinstance(tree, tuple):
        left, right = _built(tree[1]), _built(tree[2])
        match tree[0]:
            case "min":
                return smallest(left, right)
            case "max":
                return Largest(left, right)
            case op:
                return binary(op, left, right)
    return Name(tree) if isinstance(tree, str) else number(tree)


@given(TREES)
def test_value_and_text_are_those_of_python(tree: Any) -> None:
    try:
        expected = _plain(tree)
    except ZeroDivisionError:
        return
    try:
        built = _built(tree)
    except ZeroDivisionError:
        # Folded apart from a factor 0 that Python would have multiplied with first.
        return
    assert evaluate(built, NAMES) == expected
    assert eval(str(built), {}, NAMES) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (A + 0, "a"),
        (0 + A, "a"),
        (A * 1, "a"),
        (A * 0, "0"),
        (A - A, "0"),
        (A * 2, "2 * a"),
        (A + A, "2 * a"),
        (2 * A + A, "3 * a"),
        (A + 1 + 2, "a + 3"),
        (A + (B + C), "a + b + c"),
        (A - (B - C), "a - (b - c)"),
        (A * (B + C), "a * (b + c)"),
        (-A, "-a"),
        (A // B % C, "a // b % c"),
        (binary("**", -A, 2), "(-a) ** 2"),
        (binary("and", A, True), "a"),
        (smallest(smallest(A, B), C), "min(a, b, c)"),
        (Choice(binary("<", A, B), A, ZERO) + 1, "(a if a < b else 0) + 1"),
        (product((A, 2, B)), "2 * a * b"),
    ],
)
def test_formulas_read_as_a_person_would_type_them(value: Numeric, text: str) -> None:
    assert str(value) == text


def test_a_product_of_nothing_is_one() -> None:
    assert product(()) == ONE
