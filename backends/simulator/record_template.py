"""What is kept of an executed instruction: raw records, and templates that many share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from attrs import evolve, frozen

from backends.isa.trace import Attribute, Engine
from backends.simulator.layouts import Layout
from backends.simulator.location import Location


class RawAccess(NamedTuple):
    """One operand: which buffer of the trace, how it is laid out and where it begins."""

    operand: str
    buffer: int
    layout: Layout
    offset: int


class RawRecord(NamedTuple):
    """One executed instruction."""

    engine: Engine
    opcode: str
    reads: tuple[RawAccess, ...]
    writes: tuple[RawAccess, ...]
    place: Location
    name: str | None
    attributes: Mapping[str, Attribute]
    barrier: int | None


Slot = tuple[str, int]
"""An operand, and which of the instruction's tiles it is."""


@frozen(eq=False)
class Template:
    """What every record of one checked call has in common: all but where its tiles are."""

    engine: Engine
    opcode: str
    reads: tuple[Slot, ...]
    writes: tuple[Slot, ...]
    layouts: tuple[Layout, ...]
    """Of the tiles."""
    place: Location
    name: str | None = None
    attributes: Mapping[str, Attribute] = {}
    barrier: int | None = None
    adds: bool = False
    """Whether it is a matmul that was told to accumulate, on a machine where the location must
    have been written by a matmul before."""
    adding: Template | None = None
    """Of a matmul that was not told whether it accumulates: its template when it does."""

    def reading(self, indices: Sequence[Layout]) -> Template:
        """Return the same with further tiles that hold run-time indices."""
        first = len(self.layouts)
        more = tuple([("index", first + n) for n in range(len(indices))])
        return evolve(
            self,
            reads=self.reads + more,
            layouts=(*self.layouts, *indices),
            adding=None if self.adding is None else self.adding.reading(indices),
        )

    def filled(self, cells: Sequence[int]) -> RawRecord:
        """Return the record; `cells` has buffer number and offset of each tile in turn."""
        return RawRecord(
            self.engine,
            self.opcode,
            tuple([self._access(slot, cells) for slot in self.reads]),
            tuple([self._access(slot, cells) for slot in self.writes]),
            self.place,
            self.name,
            self.attributes,
            self.barrier,
        )

    def _access(self, slot: Slot, cells: Sequence[int]) -> RawAccess:
        operand, tile = slot
        number, offset = cells[2 * tile : 2 * tile + 2]
        return RawAccess(operand, number, self.layouts[tile], offset)
