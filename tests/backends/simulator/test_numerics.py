"""Rounding on write, integers, tf32, products: exhaustive where the type is small."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.isa.dtypes import DTYPES
from backends.simulator.numerics import (
    cast,
    product,
    round_tf32,
    round_to,
    sin_with_extrapolation,
)

BF16 = DTYPES["bfloat16"]


def _nearest_even_bf16(value: np.float32) -> np.uint16:
    """Round to nearest even by integer arithmetic on the bit pattern."""
    bits = int(np.asarray(value).view(np.uint32))
    low, high = bits & 0xFFFF, bits >> 16
    if low > 0x8000 or (low == 0x8000 and high & 1):
        high += 1
    return np.uint16(high)


def test_bf16_is_exact_on_every_bf16_value_and_every_midpoint() -> None:
    """All finite bf16 numbers, each midpoint to the next, and the fp32 neighbours of midpoints."""
    high = np.arange(1 << 16, dtype=np.uint32)
    for low in (0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        bits = (high << np.uint32(16)) | np.uint32(low)
        values = bits.view(np.float32)
        finite = np.isfinite(values)
        found = cast(values[finite], BF16).view(np.uint16)
        kept = high[finite]
        up = (np.uint32(low) > 0x8000) | ((low == 0x8000) & ((kept & 1) == 1))
        np.testing.assert_array_equal(found, (kept + up).astype(np.uint16))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_bf16_against_integer_rounding(value: float) -> None:
    single = np.float32(value)
    assert cast(np.array([single]), BF16).view(np.uint16)[0] == _nearest_even_bf16(single)


@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e4m3fn", "float8_e5m2"])
def test_every_fp8_value_survives_and_midpoints_go_to_even(name: str) -> None:
    dtype = DTYPES[name]
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(dtype.numpy).astype(np.float32)
    finite = np.isfinite(values)
    np.testing.assert_array_equal(cast(values[finite], dtype).view(np.uint8), codes[finite])
    positive = np.sort(values[finite & (values > 0)])
    middle = (positive[:-1] + positive[1:]) / 2
    rounded = cast(middle, dtype).view(np.uint8)
    assert (rounded % 2 == 0).all()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bfloat16", -np.inf),
        ("float16", -np.inf),
        ("float8_e4m3", -np.inf),
        ("float8_e5m2", -np.inf),
    ],
)
def test_the_most_negative_fp32_overflows_to_minus_infinity(name: str, expected: float) -> None:
    lowest = np.array([np.finfo(np.float32).min], dtype=np.float32)
    assert cast(lowest, DTYPES[name]).astype(np.float32)[0] == expected


def test_e4m3fn_has_no_infinity() -> None:
    found = cast(np.array([448.0, 1e6], dtype=np.float32), DTYPES["float8_e4m3fn"])
    assert found.astype(np.float32)[0] == 448
    assert np.isnan(found.astype(np.float32)[1])


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("int32", [0.5, 1.5, 2.5, -0.5, -1.5], [0, 2, 2, 0, -2]),
        (
            "int32",
            [3e9, -3e9, np.inf, -np.inf, np.nan],
            [2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0],
        ),
        ("uint32", [-1.0, 5e9, 4294967040.0], [0, 2**32 - 1, 4294967040]),
        ("int8", [127.5, -129.0, 126.5], [127, -128, 126]),
        ("uint8", [255.4, 256.0, -0.6, 2.5], [255, 255, 0, 2]),
        ("int16", [40000.0, -40000.0], [32767, -32768]),
        ("bool_", [0.0, 1.0, 7.0], [0, 1, 1]),
    ],
)
def test_integers_round_to_even_and_saturate(
    name: str, values: list[float], expected: list[int]
) -> None:
    found = cast(np.array(values, dtype=np.float32), DTYPES[name])
    assert found.dtype == DTYPES[name].numpy
    assert found.tolist() == expected


def test_integers_of_different_width_go_through_fp32() -> None:
    found = cast(np.array([16777217, 300], dtype=np.int32), DTYPES["int16"])
    assert found.tolist() == [32767, 300]
    as_fp32 = cast(np.array([16777217], dtype=np.int32), DTYPES["float32"])
    assert as_fp32[0] == 16777216


def test_equal_types_copy_bits() -> None:
    quiet = np.array([0x7FC1], dtype=np.uint16).view(ml_dtypes.bfloat16)
    assert cast(quiet, BF16).view(np.uint16)[0] == 0x7FC1


def test_widened_cells_keep_fp32() -> None:
    third = np.array([1 / 3], dtype=np.float32)
    assert round_to(third, BF16, np.dtype(np.float32))[0] == third[0]
    assert round_to(third, BF16, BF16.numpy).astype(np.float32)[0] != third[0]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_tf32_is_the_nearest_number_with_ten_mantissa_bits(value: float) -> None:
    single = np.array([value], dtype=np.float32)
    found = float(round_tf32(single)[0])
    bits = int(single.view(np.uint32)[0])
    below = np.array([bits & ~0x1FFF], dtype=np.uint32).view(np.float32)
    above = np.array([(bits & ~0x1FFF) + 0x2000], dtype=np.uint32).view(np.float32)
    options = sorted(
        (abs(float(c[0]) - value), int(c.view(np.uint32)[0]) >> 13 & 1, float(c[0]))
        for c in (below, above)
        if np.isfinite(c[0])
    )
    assert found == options[0][2] or not np.isfinite(found)


def test_tf32_leaves_nan_and_infinity() -> None:
    found = round_tf32(np.array([np.nan, np.inf, -np.inf], dtype=np.float32))
    assert np.isnan(found[0])
    assert found[1:].tolist() == [np.inf, -np.inf]


def test_product_contracts_the_partitions() -> None:
    stationary = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)
    moving = np.array([[1], [10], [100]], dtype=np.float32)
    assert product(stationary, moving).tolist() == [[531.0], [642.0]]


@given(k=st.integers(1, 128), m=st.integers(1, 40), n=st.integers(1, 600), seed=st.integers(0, 99))
def test_an_element_of_a_product_does_not_depend_on_its_neighbours(
    k: int, m: int, n: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    stationary = rng.standard_normal((k, m)).astype(np.float32)
    moving = rng.standard_normal((k, n)).astype(np.float32)
    whole = product(stationary, moving)
    i, j = int(rng.integers(m)), int(rng.integers(n))
    alone = product(stationary[:, i : i + 1], moving[:, j : j + 1])
    assert alone[0, 0] == whole[i, j]


def test_sine_beyond_pi_is_the_documented_number() -> None:
    found = sin_with_extrapolation(np.array([9.0, -9.0, 1.0, np.pi], dtype=np.float32))
    np.testing.assert_allclose(found[:3], [27.65, -27.65, np.sin(1.0)], rtol=2e-4)
    assert abs(found[3]) < 1e-6
