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
    I32 = "i32"
    BOOL = "bool"

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype that stores it (bf16 through ml_dtypes)."""
        return _NUMPY[self]

    @property
    def is_float(self) -> bool:
        """Whether values are real numbers."""
        return self in (Dtype.F32, Dtype.BF16, Dtype.F16)

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize


_NUMPY: dict[Dtype, np.dtype[Any]] = {
    Dtype.F32: np.dtype(np.float32),
    Dtype.BF16: np.dtype(ml_dtypes.bfloat16),
    Dtype.F16: np.dtype(np.float16),
    Dtype.I32: np.dtype(np.int32),
    Dtype.BOOL: np.dtype(np.bool_),
}
