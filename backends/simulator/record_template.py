"""A record but for what changes from call to call: the buffers, and where in them the views begin.

Shape-only runs record most instructions as a template and a few numbers, which become a `RawRecord`
when somebody asks for the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from attrs import frozen

from backends.isa.dtypes import Dtype
from backends.isa.trace import Attribute, Engine
from backends.simulator.layouts import Layout
from backends.simulator.location import Location


class RawAccess(NamedTuple):
    """One operand's layout; offsets and strides in elements."""

    operand: str
    buffer: int
    dtype: Dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    moving: bool
    """Whether a run-time index moves it."""


class RawRecord(NamedTuple):
    """One executed instruction."""

    engine: Engine
    opcode: str
    reads: tuple[RawAccess, ...]
    writes: tuple[RawAccess, ...]
    place: Location
    name: str | None
    attributes: Mapping[str, Attribute]
    depends_on: list[int]
    barrier: int | None
    loop: tuple[int, ...]
    """The device-loop iterations around it, outermost first."""


Slot = tuple[str, int]
"""An operand, and which of the call's tiles it is."""


@frozen(eq=False)
class Template:
    """What every record of one checked call has in common."""

    engine: Engine
    opcode: str
    reads: tuple[Slot, ...]
    writes: tuple[Slot, ...]
    layouts: tuple[Layout, ...]
    """Of the call's tiles."""
    place: Location
    name: str | None
    attributes: Mapping[str, Attribute]

    def filled(self, ends: Sequence[int], loop: tuple[int, ...]) -> RawRecord:
        """Return the record; `ends` has buffer number and offset of each tile in turn."""
        return RawRecord(
            self.engine,
            self.opcode,
            tuple([self._access(slot, ends) for slot in self.reads]),
            tuple([self._access(slot, ends) for slot in self.writes]),
            self.place,
            self.name,
            self.attributes,
            [],
            None,
            loop,
        )

    def _access(self, slot: Slot, ends: Sequence[int]) -> RawAccess:
        operand, tile = slot
        layout = self.layouts[tile]
        number, offset = ends[2 * tile : 2 * tile + 2]
        return RawAccess(
            operand, number, layout.dtype, layout.shape, layout.strides, offset, moving=False
        )
