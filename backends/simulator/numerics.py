"""Arithmetic of the engines: conversion to and from fp32, rounding on write, matmul products.

Every engine computes in fp32 and converts on read and on write (bit operations and 32-bit integer
arithmetic aside). Conversions are those of the NKI documentation: round to nearest even, saturation
to integers, infinity on overflow of a narrow float. Two cases the documentation leaves open are
decided here: NaN becomes integer 0, and `float8_e4m3fn`, which has no infinity, overflows to NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from backends.isa.dtypes import Dtype

Array = npt.NDArray[Any]
Array32 = npt.NDArray[np.float32]

_TF32_DROPPED_BITS = 13
"""fp32 has 23 mantissa bits, tf32 keeps 10."""
_BLAS_BLOCK = 16
"""Columns in whole blocks are computed by one BLAS routine whatever their number."""


def to_fp32(values: Array) -> Array32:
    """`values` as the engines see them: float32; integers above 2^24 lose bits, as documented."""
    return values.astype(np.float32, copy=False)


def cast(values: Array, dtype: Dtype) -> Array:
    """`values` as stored in `dtype`, in its storage type.

    Equal storage types copy bits; everything else goes through fp32.
    """
    if values.dtype == dtype.numpy:
        return values
    if dtype.is_float:
        with np.errstate(over="ignore", invalid="ignore"):
            return to_fp32(values).astype(dtype.numpy)
    return _to_integer(to_fp32(values), dtype)


def _to_integer(values: Array32, dtype: Dtype) -> Array:
    # float64 holds the bounds of every integer type exactly; float32 does not.
    rounded = np.nan_to_num(
        np.rint(values.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf
    )
    bounded: Array = np.clip(rounded, dtype.minimum, dtype.maximum)
    return bounded.astype(np.int64).astype(dtype.numpy)


def round_tf32(values: Array32) -> Array32:
    """`values` with 10 mantissa bits, rounded to nearest even; NaN and infinity unchanged."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    half = np.uint32((1 << (_TF32_DROPPED_BITS - 1)) - 1)
    last_kept = (bits >> np.uint32(_TF32_DROPPED_BITS)) & np.uint32(1)
    mask = np.uint32(0xFFFFFFFF ^ ((1 << _TF32_DROPPED_BITS) - 1))
    with np.errstate(over="ignore"):
        rounded = ((bits + half + last_kept) & mask).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)


def matmul_operand(values: Array, dtype: Dtype) -> Array32:
    """A matmul operand as TensorE multiplies it."""
    as_fp32 = to_fp32(values)
    return round_tf32(as_fp32) if dtype.name == "tfloat32" else as_fp32


def product(stationary: Array32, moving: Array32) -> Array32:
    """`stationary.T @ moving` of (K, M) and (K, N), accumulated in fp32.

    The order of accumulation inside a column is not documented; here it is that of numpy's BLAS. An
    element does not depend on how many neighbours it has: column counts are padded to whole blocks,
    because a BLAS computes thin products with other code and in another order.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        whole: Array32 = np.matmul(_in_blocks(stationary).T, _in_blocks(moving))
    return whole[: stationary.shape[1], : moving.shape[1]]


def _in_blocks(values: Array32) -> Array32:
    """`values` dense, with zero columns up to a multiple of the block."""
    rows, columns = values.shape
    padded = -(-columns // _BLAS_BLOCK) * _BLAS_BLOCK
    if padded == columns and values.flags.c_contiguous:
        return values
    result = np.zeros((rows, padded), dtype=np.float32)
    result[:, :columns] = values
    return result


def sin_with_extrapolation(x: Array32) -> Array32:
    """Sine as ScalarE evaluates it: no range reduction beyond pi.

    Outside [-pi, pi] the cubic of the last segment goes on: -d + d^3 / 6 with d = |x| - pi, odd in
    x, which gives the documented 27.65 at 9.0.
    """
    beyond = np.abs(x) - np.float32(np.pi)
    cubic = np.sign(x) * (beyond * beyond * beyond / np.float32(6) - beyond)
    return np.where(beyond > 0, cubic, np.sin(x)).astype(np.float32, copy=False)


def round_to(values: Array, dtype: Dtype, cell: np.dtype[Any]) -> Array:
    """`values` as stored in a cell of `dtype`; a widened cell keeps float32."""
    if cell != dtype.numpy:
        return values.astype(cell, copy=False)
    return cast(values, dtype)
