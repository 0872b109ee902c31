"""Intervals: reading, comparing, building and printing them.

A computed end is always closed, since rounding reaches the ends that real numbers only approach
(`sigmoid(40.0) == 1.0`), and an end beyond the range of float32 becomes infinite or 0. What each
operator does to intervals is in `gdsl.ir.ranges`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from attrs import evolve

from gdsl.ir.dtypes import Dtype
from gdsl.ir.types import ANY, Interval

F32_MAX = float(np.finfo(np.float32).max)
F32_TINY = float(np.finfo(np.float32).smallest_subnormal)
# numpy's float64 exp, log, pow and tanh err by less than this many units in the last place.
_ULPS = 8

BOOLEAN = Interval(0.0, 1.0)


def point(value: float) -> Interval:
    """Return the interval of one number (NaN gives an unbounded interval that may be NaN)."""
    return evolve(ANY, may_be_nan=True) if math.isnan(value) else Interval(value, value)


def contains(interval: Interval, value: float) -> bool:
    """Return whether `value` can occur: inside the ends, or NaN where NaN may be."""
    if math.isnan(value):
        return interval.may_be_nan
    above = value > interval.lo if interval.lo_open else value >= interval.lo
    below = value < interval.hi if interval.hi_open else value <= interval.hi
    return above and below


def within(inner: Interval, outer: Interval) -> bool:
    """Return whether every value of `inner` (NaN included) is one of `outer`."""
    if inner.may_be_nan and not outer.may_be_nan:
        return False
    low = inner.lo > outer.lo or (inner.lo == outer.lo and (inner.lo_open or not outer.lo_open))
    high = inner.hi < outer.hi or (inner.hi == outer.hi and (inner.hi_open or not outer.hi_open))
    return low and high


def join(*intervals: Interval) -> Interval:
    """Return the smallest interval that holds all of them."""
    lo = min(i.lo for i in intervals)
    hi = max(i.hi for i in intervals)
    return Interval(
        lo,
        hi,
        all(i.lo_open for i in intervals if i.lo == lo),
        all(i.hi_open for i in intervals if i.hi == hi),
        any(i.may_be_nan for i in intervals),
    )


def show(interval: Interval) -> str:
    """Return the interval as the language writes it: `(-inf, 0]`, with `or NaN` where it may be."""
    left = "(" if interval.lo_open or interval.lo == -math.inf else "["
    right = ")" if interval.hi_open or interval.hi == math.inf else "]"
    text = f"{left}{interval.lo:g}, {interval.hi:g}{right}"
    return f"{text} or NaN" if interval.may_be_nan else text


def rounded(interval: Interval, dtype: Dtype) -> Interval:
    """Return the range after a cast to `dtype` (rounding moves the ends to neighbours)."""
    match dtype:
        case Dtype.F32:
            return closed(interval.lo, interval.hi, interval.may_be_nan)
        case Dtype.BF16 | Dtype.F16 | Dtype.F8E4M3:
            with np.errstate(over="ignore"):
                lo, hi = (
                    float(np.asarray(end, np.float32).astype(dtype.numpy))
                    for end in (interval.lo, interval.hi)
                )
            return Interval(lo, hi, may_be_nan=interval.may_be_nan)
        case Dtype.BOOL:
            return BOOLEAN
        case Dtype.I32:
            limits = np.iinfo(np.int32)
            lo = float(limits.min) if interval.lo < limits.min else float(math.trunc(interval.lo))
            hi = float(limits.max) if interval.hi > limits.max else float(math.trunc(interval.hi))
            return Interval(min(lo, limits.max), max(hi, limits.min))


# ---- reading an interval


def has_zero(a: Interval) -> bool:
    """Return whether 0 (of either sign) can occur."""
    return contains(a, 0.0)


def has_infinity(a: Interval) -> bool:
    """Return whether an infinity can occur."""
    return contains(a, math.inf) or contains(a, -math.inf)


def any_nan(*args: Interval) -> bool:
    """Return whether any of them may be NaN."""
    return any(a.may_be_nan for a in args)


# ---- building one


def closed(lo: float, hi: float, nan: bool) -> Interval:
    """Close the ends and push them past the range of float32 where they leave it."""
    if lo < -F32_MAX:
        lo = -math.inf
    elif lo > F32_MAX:
        lo = F32_MAX
    elif 0 < lo < F32_TINY:
        lo = 0.0
    if hi > F32_MAX:
        hi = math.inf
    elif hi < -F32_MAX:
        hi = -F32_MAX
    elif -F32_TINY < hi < 0:
        hi = 0.0
    return Interval(lo, hi, may_be_nan=nan)


def outward(lo: float, hi: float) -> tuple[float, float]:
    """Move both ends outward by the error of numpy's elementary functions."""
    for _ in range(_ULPS):
        lo = math.nextafter(lo, -math.inf)
        hi = math.nextafter(hi, math.inf)
    return lo, hi


def hull(values: Iterable[float], nan: bool) -> Interval:
    """Hull of the corner values; a NaN corner is an undefined limit and bounds nothing."""
    known = list(values)
    if any(math.isnan(v) for v in known):
        return Interval(may_be_nan=nan)
    return closed(min(known), max(known), nan)
