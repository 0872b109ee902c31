"""Names of `nki.language` that kernels hand to instructions as values: operators and memories.

A token such as `nl.add` is passed as `op=` and may also be called as a function; what the call does
is in `language_math.py`, which registers it here so that this module needs nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Literal

from attrs import define, field

MemoryName = Literal["sbuf", "psum", "hbm", "shared_hbm"]


class MemoryRegion(Enum):
    """`nl.sbuf`, `nl.psum`, `nl.private_hbm` (also `nl.hbm`) and `nl.shared_hbm`."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "hbm"
    shared_hbm = "shared_hbm"

    on_chip: bool
    """Whether dimension 0 is the partition dimension."""

    __hash__ = object.__hash__  # members are single objects; Python's own hash goes by the name

    def __init__(self, name: str) -> None:
        self.on_chip = name in ("sbuf", "psum")


@define(eq=False, slots=True)
class OpToken:
    """An ALU operator or activation function by its `nki.language` name."""

    token: str
    wrapper: Callable[..., Any] | None = field(default=None, repr=False)
    """What calling the token does; None for pure tokens such as `nl.bypass`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.wrapper is None:
            raise TypeError(f"`nl.{self.token}` is an operator token and cannot be called")
        return self.wrapper(*args, **kwargs)
