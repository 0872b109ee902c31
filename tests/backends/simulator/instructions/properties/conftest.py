"""Random tiles in random layouts, and the plain meaning that instructions are compared with.

The meaning works on Python floats, element by element, and knows nothing of views. Values are small
multiples of 1/4, so that sums are exact in any order; where an operation rounds, it rounds once to
fp32 and once to the destination type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

Table = NDArray[np.float64]
Draw = Callable[[Any], Any]

_NUMPY: dict[str, Any] = {
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "int32": np.int32,
    "int16": np.int16,
    "uint8": np.uint8,
    "int8": np.int8,
}
_LAYOUTS = ("dense", "stepped", "offset", "split", "permuted")
_BINARY: dict[str, Callable[[float, float], float]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "maximum": max,
    "minimum": min,
    "equal": lambda x, y: float(x == y),
    "not_equal": lambda x, y: float(x != y),
    "less": lambda x, y: float(x < y),
    "less_equal": lambda x, y: float(x <= y),
    "greater": lambda x, y: float(x > y),
    "greater_equal": lambda x, y: float(x >= y),
    "logical_and": lambda x, y: float(x != 0 and y != 0),
    "logical_or": lambda x, y: float(x != 0 or y != 0),
    "logical_xor": lambda x, y: float((x != 0) != (y != 0)),
}


def _rounded(value: float, dtype: str) -> float:
    """`value` as a tile of `dtype` holds it after an fp32 computation."""
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(_NUMPY[dtype])
        return float(min(max(round(float(np.float32(value))), limits.min), limits.max))
    with np.errstate(over="ignore"):
        return float(np.array(np.float32(value)).astype(_NUMPY[dtype]))


class Layouts:
    """Random tables of numbers and the tiles that hold them in random layouts."""

    def __init__(self, bench: Any, draw: Draw) -> None:
        self.bench = bench
        self.draw = draw
        self.partitions = draw(st.sampled_from([1, 2, 5, 32, 33]))
        self.rows, self.columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))

    @property
    def size(self) -> int:
        """Elements per partition."""
        return int(self.rows * self.columns)

    def numbers(self, size: int | None = None, low: int = -24, high: int = 24) -> Table:
        """Multiples of 1/4, `[partitions, size]`."""
        seed = self.draw(st.integers(0, 2**32 - 1))
        shape = (self.partitions, self.size if size is None else size)
        return np.random.default_rng(seed).integers(low, high, shape) / 4

    def tile(
        self, values: Table, dtype: str = "float32", memory: str = "sbuf"
    ) -> tuple[Any, Table]:
        """A tile in a random layout, and the numbers it really holds."""
        held = np.vectorize(_rounded, otypes=[float])(values, dtype)
        view = self.empty(values.shape[1], dtype, memory)
        view.store(held.astype(_NUMPY[dtype]))
        return view, held

    def empty(self, size: int, dtype: str = "float32", memory: str = "sbuf") -> Any:
        """An unwritten tile of `size` elements per partition in a random layout."""
        kind = self.draw(st.sampled_from(_LAYOUTS))
        p = self.partitions
        rows = self.rows if size == self.size else 1
        columns = size // rows
        if kind == "dense":
            return self.bench.empty((p, size), dtype, memory)
        if kind == "stepped":
            return self.bench.empty((p, 3 * size), dtype, memory)[:, 1::3]
        if kind == "offset":
            return self.bench.empty((p, size + 5), dtype, memory)[:, 3 : 3 + size]
        if kind == "split":
            return self.bench.empty((p, rows, columns), dtype, memory)
        return self.bench.empty((p, columns, rows), dtype, memory).permute((0, 2, 1))

    def column_or_number(self) -> tuple[Any, Table]:
        """An operand: a number, or a (P, 1) tile; and its value in each partition."""
        if self.draw(st.booleans()):
            number = float(self.draw(st.integers(-12, 12))) / 4
            return number, np.full((self.partitions, 1), number)
        values = self.numbers(1)
        return self.bench.tile(values), values

    @staticmethod
    def expect(tile: Any, expected: Table, dtype: str) -> None:
        """The tile holds `expected`, rounded to its type."""
        wanted = np.vectorize(_rounded, otypes=[float])(expected, dtype)
        found = tile.load().astype(np.float64).reshape(wanted.shape)
        np.testing.assert_array_equal(found, wanted)

    @staticmethod
    def apply(name: str, x: float, y: float) -> float:
        """One operator, rounded to fp32."""
        return float(np.float32(_BINARY[name](x, y)))

    @staticmethod
    def fold(name: str, values: list[float]) -> float:
        """All values folded from the first to the last."""
        result = values[0]
        for value in values[1:]:
            result = _BINARY[name](result, value)
        return result

    @staticmethod
    def elementwise(function: Callable[..., float], *tables: Table) -> Table:
        """`function` element by element, columns broadcast along their partition."""
        wide = np.broadcast_arrays(*tables)
        partitions, size = wide[0].shape
        return np.array(
            [
                [function(*(float(table[p, i]) for table in wide)) for i in range(size)]
                for p in range(partitions)
            ]
        )


@pytest.fixture
def layouts_for(make_bench: Callable[..., Any]) -> Callable[[Draw], Layouts]:
    """A function from hypothesis' `draw` to random layouts on a fresh program."""
    return lambda draw: Layouts(make_bench(), draw)
