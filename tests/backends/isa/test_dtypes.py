"""Element types and their lookup."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from backends.isa.dtypes import DTYPES, PACKED, find_dtype


@pytest.mark.parametrize(
    ("name", "size", "largest"),
    [
        ("bool_", 1, 1),
        ("uint8", 1, 255),
        ("int8", 1, 127),
        ("uint16", 2, 65535),
        ("int16", 2, 32767),
        ("uint32", 4, 4294967295),
        ("int32", 4, 2147483647),
        ("float8_e4m3", 1, 240),
        ("float8_e4m3fn", 1, 448),
        ("float8_e5m2", 1, 57344),
        ("float16", 2, 65504),
        ("bfloat16", 2, 3.3895313892515355e38),
        ("tfloat32", 4, 3.4028234663852886e38),
        ("float32", 4, 3.4028234663852886e38),
    ],
)
def test_sizes_and_ranges(name: str, size: int, largest: float) -> None:
    dtype = DTYPES[name]
    assert (dtype.bytes, dtype.numpy.itemsize, dtype.maximum) == (size, size, largest)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("bf16", "bfloat16"),
        ("float32", "float32"),
        (np.float32, "float32"),
        (np.dtype(np.int16), "int16"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (ml_dtypes.float8_e4m3, "float8_e4m3"),
        (bool, "bool_"),
        (DTYPES["uint8"], "uint8"),
    ],
)
def test_find(value: object, name: str) -> None:
    assert find_dtype(value) is DTYPES[name]


@pytest.mark.parametrize("value", ["float64", np.float64, np.int64, "no such", 3, None])
def test_types_the_machine_does_not_have(value: object) -> None:
    with pytest.raises(ValueError, match="no NKI element type"):
        find_dtype(value)


def test_equality_is_by_name() -> None:
    assert DTYPES["tfloat32"] != DTYPES["float32"]
    assert len(set(DTYPES.values())) == len(DTYPES)
    assert {name for name, dtype in DTYPES.items() if dtype.kind == "packed"} == PACKED
