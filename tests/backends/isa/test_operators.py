"""Operators of the ALUs: every row of the documented table, and what each computes."""

from __future__ import annotations

import numpy as np
import pytest

from backends.isa.operators import (
    BITVEC,
    COMPARISONS,
    OPERATORS,
    REDUCTIONS,
    UNARY,
    engine_operators,
)

X = np.array([-2.0, -0.5, 0.0, 0.5, 3.0], dtype=np.float32)
Y = np.array([1.0, -0.5, 2.0, -4.0, 3.0], dtype=np.float32)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", [-1, -1, 2, -3.5, 6]),
        ("subtract", [-3, 0, -2, 4.5, 0]),
        ("multiply", [-2, 0.25, 0, -2, 9]),
        ("maximum", [1, -0.5, 2, 0.5, 3]),
        ("minimum", [-2, -0.5, 0, -4, 3]),
        ("equal", [0, 1, 0, 0, 1]),
        ("not_equal", [1, 0, 1, 1, 0]),
        ("less", [1, 0, 1, 0, 0]),
        ("less_equal", [1, 1, 1, 0, 1]),
        ("greater", [0, 0, 0, 1, 0]),
        ("greater_equal", [0, 1, 0, 1, 1]),
        ("logical_and", [1, 1, 0, 1, 1]),
        ("logical_or", [1, 1, 1, 1, 1]),
        ("logical_xor", [0, 0, 1, 0, 0]),
        ("abs_max", [-2, -0.5, 2, -4, 3]),
        ("abs_min", [1, -0.5, 0, 0.5, 3]),
        ("logical_not", [0, 0, 1, 0, 0]),
        ("abs", [2, 0.5, 0, 0.5, 3]),
        ("square", [4, 0.25, 0, 0.25, 9]),
        ("relu", [0, 0, 0, 0.5, 3]),
    ],
)
def test_arithmetic(name: str, expected: list[float]) -> None:
    result = OPERATORS[name].meaning(X, Y)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, np.array(expected, dtype=np.float32))


@pytest.mark.parametrize(
    ("name", "x", "y", "expected"),
    [
        ("power", 2.0, 3.0, 8.0),
        ("power", 2.0, -1.0, 0.5),
        ("rsqrt", 4.0, 0.0, 0.5),
        ("reciprocal", 4.0, 0.0, 0.25),
    ],
)
def test_functions(name: str, x: float, y: float, expected: float) -> None:
    result = OPERATORS[name].meaning(np.array([x], np.float32), np.array([y], np.float32))
    assert result.dtype == np.float32
    assert result[0] == expected


@pytest.mark.parametrize(
    ("name", "x", "y", "expected"),
    [
        ("bitwise_and", 0b1100, 0b1010, 0b1000),
        ("bitwise_or", 0b1100, 0b1010, 0b1110),
        ("bitwise_xor", 0b1100, 0b1010, 0b0110),
        ("invert", 5, 0, -6),
        ("left_shift", 3, 4, 48),
        ("right_shift", -1, 28, 15),
        ("right_shift", 48, 4, 3),
    ],
)
def test_bits(name: str, x: int, y: int, expected: int) -> None:
    result = OPERATORS[name].meaning(np.array([x], np.int32), np.array([y], np.int32))
    assert result.dtype == np.int32
    assert result[0] == expected


def test_reductions_have_what_they_start_from_or_start_from_the_first_element() -> None:
    assert OPERATORS["add"].identity == 0
    assert OPERATORS["multiply"].identity == 1
    assert OPERATORS["maximum"].identity == -np.inf
    assert OPERATORS["minimum"].identity == np.inf
    assert {"logical_and", "bitwise_xor", "subtract"} <= REDUCTIONS
    assert not REDUCTIONS & (COMPARISONS | UNARY | {"power", "left_shift", "abs_max"})


def test_engines() -> None:
    assert engine_operators("scalar") == {"add", "multiply", "abs", "rsqrt", "reciprocal"}
    assert engine_operators("gpsimd") == {"add", "multiply", "power", "rsqrt"}
    assert "power" not in engine_operators("vector")
    assert engine_operators("vector") >= BITVEC


def test_operators_of_trn3_only() -> None:
    later = {name for name, op in OPERATORS.items() if op.generation == 4}
    assert later == {"abs_max", "abs_min", "square", "relu"}
