"""The two dtypes of a chunked computation: of its arithmetic and of its matmul operands."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from gdsl.ir.dtypes import Dtype

Array = NDArray[Any]


@frozen
class Precision:
    """`arithmetic` holds everything; an operand of a matmul is first rounded to `operands`."""

    arithmetic: np.dtype[Any]
    operands: Dtype | None
    """None: operands are not rounded."""
    errors: np.random.Generator | None = None
    """Rounds up or down at random, so that the mean is kept; None: rounds to nearest."""

    def operand(self, values: Array) -> Array:
        """Return the values rounded to the operand dtype, in the dtype of the arithmetic."""
        if self.operands is None or self.operands is Dtype.F32:
            return values.astype(self.arithmetic)
        nearest = values.astype(self.operands.numpy).astype(self.arithmetic)
        if self.errors is None:
            return nearest
        _, exponents = np.frexp(values)
        ulp = np.ldexp(1.0, exponents - 1 - self.operands.fraction_bits)
        moved = values + ulp * self.errors.uniform(-0.5, 0.5, values.shape)
        drawn = moved.astype(self.operands.numpy).astype(self.arithmetic)
        return np.where(nearest == values, nearest, drawn)


EXACT = Precision(np.dtype(np.float64), None)
