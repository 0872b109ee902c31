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

    def operand(self, values: Array) -> Array:
        """Return the values rounded to the operand dtype, in the dtype of the arithmetic."""
        if self.operands is None or self.operands is Dtype.F32:
            return values.astype(self.arithmetic)
        return values.astype(self.operands.numpy).astype(self.arithmetic)


EXACT = Precision(np.dtype(np.float64), None)
