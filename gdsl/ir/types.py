"""The type of an expression: its axes, its dtype, the interval its values lie in."""

from __future__ import annotations

import math

from attrs import field, frozen

from gdsl.ir.dtypes import Dtype


def _end(value: float) -> float:
    """An end. Zero has one sign: 1 / -0.0 is an infinity that no value of an interval reaches."""
    return float(value) + 0.0


@frozen
class Interval:
    """A closed interval of the extended reals; `lo_open`/`hi_open` exclude an end.

    `may_be_nan` is set when an operation such as 0 * inf can occur for values inside the interval.
    """

    lo: float = field(default=-math.inf, converter=_end)
    hi: float = field(default=math.inf, converter=_end)
    lo_open: bool = False
    hi_open: bool = False
    may_be_nan: bool = False


ANY = Interval()


@frozen
class DtypeVar:
    """A dtype fixed by the caller: `dtypes X in bf16, f32`."""

    name: str
    choices: tuple[Dtype, ...]


@frozen
class Type:
    """Axes in the kernel's declaration order, element type, range of the values.

    Computed values are F32; only inputs and explicit casts have another dtype.
    """

    axes: tuple[str, ...] = ()
    dtype: Dtype | DtypeVar = Dtype.F32
    range: Interval = field(default=ANY)
