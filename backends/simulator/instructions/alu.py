"""Applying ALU operators and activation functions to arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.isa.operators import OPERATORS

Array = NDArray[Any]


def apply(operator: str, x: Any, y: Any) -> Array:
    """`x <operator> y`; a unary operator ignores `y`."""
    with np.errstate(all="ignore"):
        return OPERATORS[operator].meaning(x, y)


def stage(operator: str, value: Any, operand: Any, reverse: bool) -> Array:
    """One operator stage: `value op operand`, or `operand op value` when reversed."""
    return apply(operator, operand, value) if reverse else apply(operator, value, operand)


def fold(operator: str, values: Array) -> Array:
    """Reduce the last axis. `subtract` takes the later elements from the first.

    The order inside a row is numpy's for dense rows, whatever the layout and the number of rows.
    """
    with np.errstate(all="ignore"):
        return np.asarray(_FOLDS[operator](np.ascontiguousarray(values)))


def _subtract(values: Array) -> Array:
    return np.asarray(values[..., 0] - values[..., 1:].sum(axis=-1, dtype=values.dtype))


def _abs_extreme(pick: Any) -> Any:
    def reduce(values: Array) -> Array:
        index = pick(np.abs(values), axis=-1)[..., None]
        return np.take_along_axis(values, index, axis=-1)[..., 0]

    return reduce


_FOLDS: dict[str, Any] = {
    "add": lambda v: np.add.reduce(v, axis=-1, dtype=v.dtype),
    "average": lambda v: np.add.reduce(v, axis=-1, dtype=v.dtype) / v.dtype.type(v.shape[-1]),
    "subtract": _subtract,
    "multiply": lambda v: np.multiply.reduce(v, axis=-1, dtype=v.dtype),
    "maximum": lambda v: np.maximum.reduce(v, axis=-1),
    "minimum": lambda v: np.minimum.reduce(v, axis=-1),
    "logical_and": lambda v: np.logical_and.reduce(v != 0, axis=-1).astype(np.float32),
    "logical_or": lambda v: np.logical_or.reduce(v != 0, axis=-1).astype(np.float32),
    "logical_xor": lambda v: np.logical_xor.reduce(v != 0, axis=-1).astype(np.float32),
    "abs_max": _abs_extreme(np.argmax),
    "abs_min": _abs_extreme(np.argmin),
    "bitwise_and": lambda v: np.bitwise_and.reduce(v, axis=-1),
    "bitwise_or": lambda v: np.bitwise_or.reduce(v, axis=-1),
    "bitwise_xor": lambda v: np.bitwise_xor.reduce(v, axis=-1),
}
