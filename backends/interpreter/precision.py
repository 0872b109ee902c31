"""The three number systems a kernel runs in.

`float64` and `float32` compute and return everything in that type and round nowhere else. In
`declared` all arithmetic is float32, as the language says; arguments have the dtypes of the text,
explicit casts round where they stand, and outputs and stored states round to their declared dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from gdsl.ir.dtypes import Dtype
from gdsl.runner import Precision

Array = NDArray[Any]


@frozen
class Arithmetic:
    """`compute` is the type of every computed value; `rounds`: declared dtypes have effect."""

    compute: np.dtype[Any]
    rounds: bool

    def computed(self, array: Array) -> Array:
        """Return the array in the computing type (booleans become 0 and 1)."""
        if array.dtype == self.compute:
            return array
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return array.astype(self.compute)

    def cast(self, array: Array, dtype: Dtype) -> Array:
        """Return the value of `bf16(x)` and the like, again in the computing type."""
        if not dtype.is_float:
            return array.astype(dtype.numpy)
        if not self.rounds:
            return self.computed(array)
        with np.errstate(over="ignore", under="ignore"):
            return self.computed(array.astype(dtype.numpy))

    def stored(self, array: Array, dtype: Dtype) -> Array:
        """Return the array as an output of that dtype."""
        if not dtype.is_float:
            return array.astype(dtype.numpy)
        with np.errstate(over="ignore", under="ignore"):
            return array.astype(dtype.numpy if self.rounds else self.compute)


ARITHMETIC: dict[Precision, Arithmetic] = {
    "float64": Arithmetic(np.dtype(np.float64), rounds=False),
    "float32": Arithmetic(np.dtype(np.float32), rounds=False),
    "declared": Arithmetic(np.dtype(np.float32), rounds=True),
}
