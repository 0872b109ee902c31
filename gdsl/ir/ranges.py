"""The range of every operator's result: interval arithmetic, infinities and NaN included.

*Sound* means: if every argument lies in its interval, the float64 result lies in the returned one,
or is NaN and `may_be_nan` is set. In float32 the same holds up to the rounding of that operation.
Intervals know nothing of correlation between arguments, except `square`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from attrs import evolve

from gdsl.ir.interval import (
    BOOLEAN,
    any_nan,
    closed,
    contains,
    has_infinity,
    has_zero,
    hull,
    join,
    outward,
)
from gdsl.ir.types import Interval

# No axis is longer; bounds a sum whose length is not known.
LONGEST_AXIS = 2**48

# ---- arithmetic


def add(a: Interval, b: Interval) -> Interval:
    """a + b; inf + -inf is NaN."""
    nan = (contains(a, math.inf) and contains(b, -math.inf)) or (
        contains(a, -math.inf) and contains(b, math.inf)
    )
    return hull((a.lo + b.lo, a.hi + b.hi), nan or any_nan(a, b))


def neg(a: Interval) -> Interval:
    """-a, exact: open ends stay open."""
    return Interval(-a.hi, -a.lo, a.hi_open, a.lo_open, a.may_be_nan)


def sub(a: Interval, b: Interval) -> Interval:
    """a - b."""
    return add(a, neg(b))


def _times(x: float, y: float) -> float:
    """Corner product; 0 times an infinite end is the limit 0."""
    return 0.0 if x == 0 or y == 0 else x * y


def mul(a: Interval, b: Interval) -> Interval:
    """a * b; 0 * inf is NaN."""
    nan = (has_zero(a) and has_infinity(b)) or (has_zero(b) and has_infinity(a))
    corners = (_times(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi))
    return hull(corners, nan or any_nan(a, b))


def square(a: Interval) -> Interval:
    """a * a for one and the same value, which is never negative."""
    largest = max(abs(a.lo), abs(a.hi))
    least = 0.0 if a.lo <= 0 <= a.hi else min(abs(a.lo), abs(a.hi))
    return closed(_times(least, least), _times(largest, largest), a.may_be_nan)


def div(a: Interval, b: Interval) -> Interval:
    """a / b; 0 / 0 and inf / inf are NaN, and a zero of unknown sign divides to either infinity."""
    nan = any_nan(a, b) or (has_zero(a) and has_zero(b)) or (has_infinity(a) and has_infinity(b))
    if b.lo < 0 < b.hi or has_zero(b):
        return Interval(may_be_nan=nan)
    # `b` keeps one sign, so an end at 0 is an open one: the limit is an infinity of that sign.
    sign = 1.0 if b.lo >= 0 else -1.0
    inverses = [math.copysign(math.inf, sign) if y == 0 else 1 / y for y in (b.lo, b.hi)]
    corners = []
    for x in (a.lo, a.hi):
        for y, inverse in zip((b.lo, b.hi), inverses, strict=True):
            exact = y != 0 and not math.isinf(y)
            corners.append(x / y if exact else _times(x, inverse))
    return hull(corners, nan)


def _power(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.power(np.float64(x), np.float64(y)))


def pow_(a: Interval, b: Interval) -> Interval:
    """a ** b as numpy's `power`: a negative base with a fractional exponent is NaN."""
    nan = any_nan(a, b)
    if b.lo == b.hi and b.lo.is_integer() and b.lo >= 0:
        return _whole_power(a, int(b.lo), nan)
    if a.lo < 0 or (has_zero(a) and b.lo < 0):
        return Interval(may_be_nan=nan or a.lo < 0)
    ends = [_power(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    # 0 ** y and inf ** y jump to 1 at y = 0, and the base 1 separates rising from falling powers.
    if b.lo <= 0 <= b.hi or a.lo <= 1 <= a.hi:
        ends.append(1.0)
    return hull(outward(min(ends), max(ends)), nan)


def _whole_power(a: Interval, exponent: int, nan: bool) -> Interval:
    ends = [_power(a.lo, exponent), _power(a.hi, exponent)]
    if exponent % 2 == 0 and a.lo <= 0 <= a.hi:
        ends.append(0.0 if exponent else 1.0)
    lo, hi = min(ends), max(ends)
    if exponent > 2:
        wide_lo, wide_hi = outward(lo, hi)
        lo, hi = (0.0 if lo == 0 else wide_lo), (0.0 if hi == 0 else wide_hi)
    return hull((lo, hi), nan)


# ---- comparisons


def _decided(always: bool, never: bool, nan: bool) -> Interval:
    """A comparison with NaN is false, except `!=`, so NaN leaves it undecided."""
    if nan:
        return BOOLEAN
    return Interval(1.0, 1.0) if always else Interval(0.0, 0.0) if never else BOOLEAN


def _all_below(a: Interval, b: Interval) -> bool:
    return a.hi < b.lo or (a.hi == b.lo and (a.hi_open or b.lo_open))


def lt(a: Interval, b: Interval) -> Interval:
    """a < b."""
    return _decided(_all_below(a, b), a.lo >= b.hi, any_nan(a, b))


def le(a: Interval, b: Interval) -> Interval:
    """a <= b."""
    return _decided(a.hi <= b.lo, _all_below(b, a), any_nan(a, b))


def gt(a: Interval, b: Interval) -> Interval:
    """a > b."""
    return lt(b, a)


def ge(a: Interval, b: Interval) -> Interval:
    """a >= b."""
    return le(b, a)


def eq(a: Interval, b: Interval) -> Interval:
    """a == b."""
    same = a.lo == a.hi == b.lo == b.hi
    return _decided(same, _all_below(a, b) or _all_below(b, a), any_nan(a, b))


def ne(a: Interval, b: Interval) -> Interval:
    """a != b."""
    same = a.lo == a.hi == b.lo == b.hi
    return _decided(_all_below(a, b) or _all_below(b, a), same, any_nan(a, b))


def where(condition: Interval, a: Interval, b: Interval) -> Interval:
    """The value of `a` where the condition holds, else of `b`."""
    if condition.lo > 0 and not condition.may_be_nan:
        return a
    if condition.lo == condition.hi == 0 and not condition.may_be_nan:
        return b
    return join(a, b)


# ---- functions


def rising(
    function: Callable[[float], float], lowest: float = -math.inf, highest: float = math.inf
) -> Callable[[Interval], Interval]:
    """Return the interval meaning of a non-decreasing function with values in [lowest, highest]."""

    def interval(a: Interval) -> Interval:
        lo, hi = outward(function(a.lo), function(a.hi))
        return closed(max(lo, lowest), min(hi, highest), a.may_be_nan)

    return interval


def exp(a: Interval) -> Interval:
    """e ** a; of a non-positive argument exactly at most 1, of a non-negative one at least 1."""
    result = rising(_scalar_exp, lowest=1.0 if a.lo >= 0 else 0.0)(a)
    return evolve(result, hi=1.0) if a.hi <= 0 else result


def _scalar_exp(x: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.exp(np.float64(x)))


def log(a: Interval) -> Interval:
    """Natural logarithm; log(0) is -inf and a negative argument is NaN."""
    if a.hi < 0:
        return Interval(may_be_nan=True)
    result = rising(_scalar_log)(a)
    if a.hi <= 1:
        result = evolve(result, hi=min(result.hi, 0.0))
    if a.lo >= 1:
        result = evolve(result, lo=max(result.lo, 0.0))
    return evolve(result, may_be_nan=a.may_be_nan or a.lo < 0)


def _scalar_log(x: float) -> float:
    return -math.inf if x <= 0 else math.log(x)


def sqrt(a: Interval) -> Interval:
    """Square root; a negative argument is NaN."""
    if a.hi < 0:
        return Interval(may_be_nan=True)
    lo, hi = math.sqrt(max(a.lo, 0.0)), math.sqrt(a.hi)
    return closed(lo, hi, a.may_be_nan or a.lo < 0)


def rsqrt(a: Interval) -> Interval:
    """1 / sqrt(a); of 0 it is +inf, a negative argument is NaN."""
    root = sqrt(a)
    if a.hi < 0:
        return root
    lo = 0.0 if root.hi == math.inf else math.inf if root.hi == 0 else 1 / root.hi
    hi = math.inf if root.lo == 0 else 0.0 if root.lo == math.inf else 1 / root.lo
    return closed(*_outward_non_negative(lo, hi), root.may_be_nan)


def _outward_non_negative(lo: float, hi: float) -> tuple[float, float]:
    lo, hi = outward(lo, hi)
    return max(lo, 0.0), hi


def abs_(a: Interval) -> Interval:
    """|a|, exact: open ends stay open."""
    if a.lo >= 0:
        return a
    if a.hi <= 0:
        return neg(a)
    flipped = neg(a)
    top = join(Interval(0.0, a.hi, hi_open=a.hi_open), Interval(0.0, flipped.hi, hi_open=a.lo_open))
    return evolve(top, may_be_nan=a.may_be_nan)


def min_(a: Interval, b: Interval) -> Interval:
    """The smaller of two values; NaN if either is."""
    low = a if (a.lo, a.lo_open) <= (b.lo, b.lo_open) else b
    high = a if (a.hi, not a.hi_open) <= (b.hi, not b.hi_open) else b
    return Interval(low.lo, high.hi, low.lo_open, high.hi_open, any_nan(a, b))


def max_(a: Interval, b: Interval) -> Interval:
    """The larger of two values; NaN if either is."""
    return neg(min_(neg(a), neg(b)))


# ---- reductions: `size` is the number of elements, None when unknown (at least 1)


def sum_of(a: Interval, size: int | None) -> Interval:
    """Sum of `size` values of `a` in any order; opposite overflows meet in NaN."""
    least, most = (1, LONGEST_AXIS) if size is None else (size, size)
    total = hull(
        (_times(a.lo, least), _times(a.lo, most), _times(a.hi, least), _times(a.hi, most)),
        a.may_be_nan,
    )
    if size == 0:
        return Interval(0.0, 0.0)
    meets = total.lo == -math.inf and total.hi == math.inf
    lo, hi = _rounded_sum(total.lo, total.hi, most)
    return closed(lo, hi, total.may_be_nan or (meets and most > 1))


def _rounded_sum(lo: float, hi: float, terms: int) -> tuple[float, float]:
    """Widen by the rounding of `terms` additions (n * eps, Higham 2002, section 4.2)."""
    slack = 1 + terms * float(np.finfo(np.float64).eps)
    return (lo * slack if lo < 0 else lo / slack), (hi * slack if hi > 0 else hi / slack)


def mean_of(a: Interval, size: int | None) -> Interval:
    """Mean of `size` values of `a`; the sum before the division may overflow."""
    if size == 0:
        return Interval(may_be_nan=True)
    total = sum_of(a, size)
    lo, hi = _rounded_sum(a.lo, a.hi, LONGEST_AXIS if size is None else size)
    overflows_low, overflows_high = total.lo == -math.inf, total.hi == math.inf
    return closed(
        -math.inf if overflows_low else lo, math.inf if overflows_high else hi, total.may_be_nan
    )


def largest_of(a: Interval, size: int | None) -> Interval:
    """Largest of `size` values of `a`: one of them; -inf of none."""
    return Interval(-math.inf, -math.inf) if size == 0 else a


def smallest_of(a: Interval, size: int | None) -> Interval:
    """Smallest of `size` values of `a`: one of them; +inf of none."""
    return Interval(math.inf, math.inf) if size == 0 else a
