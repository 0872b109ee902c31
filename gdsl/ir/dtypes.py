"""Element types, and their numpy counterparts."""

from __future__ import annotations

from enum import Enum
from typing import Any

import ml_dtypes
import numpy as np


class Dtype(Enum):
    """An element type of the language; the value is its name in `.gdn` text."""

    F32 = "f32"
    BF16 = "bf16"
    F16 = "f16"
    F8E4M3 = "f8e4m3"
    """1 sign, 4 exponent, 3 mantissa bits, with infinities; at most 240. Of inputs only."""
    I32 = "i32"
    BOOL = "bool"

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype that stores it (bf16 and f8e4m3 through ml_dtypes)."""
        return _NUMPY[self]

    @property
    def is_float(self) -> bool:
        """Whether values are real numbers."""
        return self in (Dtype.F32, Dtype.BF16, Dtype.F16, Dtype.F8E4M3)

    @property
    def is_narrow(self) -> bool:
        """Whether values are real numbers with fewer digits than fp32."""
        return self.is_float and self is not Dtype.F32

    @property
    def fraction_bits(self) -> int:
        """Mantissa bits behind the leading one, of a float."""
        return _FRACTION_BITS[self]

    @property
    def only_read(self) -> bool:
        """Whether only inputs have it: eight bits are too few for what a kernel computes."""
        return self is Dtype.F8E4M3

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize


_NUMPY: dict[Dtype, np.dtype[Any]] = {
    Dtype.F32: np.dtype(np.float32),
    Dtype.BF16: np.dtype(ml_dtypes.bfloat16),
    Dtype.F16: np.dtype(np.float16),
    Dtype.F8E4M3: np.dtype(ml_dtypes.float8_e4m3),
    Dtype.I32: np.dtype(np.int32),
    Dtype.BOOL: np.dtype(np.bool_),
}
_FRACTION_BITS: dict[Dtype, int] = {
    Dtype.F32: 23,
    Dtype.BF16: 7,
    Dtype.F16: 10,
    Dtype.F8E4M3: 3,
}
