"""The simulator's choices as one typed object; `README.md` has a row per field.

Where the public NKI documents contradict one another or are silent, the default takes the stricter
reading unless shipped AWS kernels rely on the other one.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Literal

from attrs import field, frozen
from attrs.validators import in_

Severity = Literal["fault", "warn"]


def _choice(default: str, *others: str) -> str:
    """Declare a field that takes one of a few words, the first being the default."""
    return field(default=default, validator=in_((default, *others)))  # type: ignore[no-any-return]


@frozen(kw_only=True)
class SimOptions:
    """What a run does. Two fields say how (`shape_only`, `widen_to_fp32`), the rest what is legal."""

    shape_only: bool = False
    """Run the kernel's Python and check every rule that needs no data; memory holds nothing."""
    widen_to_fp32: bool = False
    """Store every float dtype as float32: the algorithm's error without the dtypes' rounding."""
    uninitialized: Literal["nan", "fault"] = _choice("nan", "fault")  # type: ignore[assignment]
    """Unwritten memory reads as NaN (4 for integers), or reading it is a fault."""
    capacity: Severity = _choice("fault", "warn")  # type: ignore[assignment]
    """Live bytes beyond SBUF or PSUM: the compiler would spill or fail."""
    races: Severity = _choice("fault", "warn")  # type: ignore[assignment]
    """Unordered accesses of the two programs of an LNC pair to the same HBM bytes."""
    barrier_scope: Literal["tensor", "all"] = _choice("tensor", "all")  # type: ignore[assignment]
    """What `core_barrier(data=...)` orders: accesses to `data` only, or all shared HBM."""
    partition_step: Literal["fault", "allow"] = _choice("fault", "allow")  # type: ignore[assignment]
    """On-chip views that step over partitions (`t[::2]`)."""
    ap_offset: Literal["add", "absolute"] = _choice("add", "absolute")  # type: ignore[assignment]
    """Whether `.ap(offset=)` counts from the view's own offset or from the start of the storage."""
    address_unit: Literal["bytes", "elements"] = _choice("bytes", "elements")  # type: ignore[assignment]
    """Unit of the free part of `nl.ndarray(address=(partition, free))`."""


_ACTIVE: ContextVar[SimOptions] = ContextVar("simulator options", default=SimOptions())


def active_options() -> SimOptions:
    """Return the options of the run in progress."""
    return _ACTIVE.get()


def activate(options: SimOptions) -> None:
    """Make `options` those of the run in this context."""
    _ACTIVE.set(options)
