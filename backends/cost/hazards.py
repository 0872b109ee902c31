"""Which instruction must wait for which: RAW, WAR, WAW on byte boxes, and stated orderings.

Boxes that a kernel uses repeat, so the distinct boxes of a memory object are listed first, with
the boxes each overlaps; then one pass over the instructions keeps, per box, its last writer and the
readers since. Strided boxes overlap when their runs may meet, which can order more than it must.

A tile pinned to an address shares its memory object with every tile pinned in the same memory; a
tile that took a dead tile's memory (`placement.py`) starts with the dead tile's users.

Two transfers whose addresses are known only when the kernel runs may or may not meet in HBM: that
order is an edge that is not certain, and a machine says whether it counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from math import gcd
from typing import NamedTuple

from attrs import define, field

from backends.cost.placement import Placement
from backends.isa.trace import Access, Buffer, Record, Trace


class Kind(IntEnum):
    """Why a later instruction waits for an earlier one."""

    RESULT = 0
    """It needs the result (RAW), overwrites it (WAW), or was told to come after it."""
    FREED = 1
    """It overwrites what the earlier one reads (WAR), or takes its memory."""
    ACCUMULATE = 2
    """It adds to what the earlier one wrote, in order on the same engine, without waiting."""


class Edge(NamedTuple):
    """One dependency, held by the later instruction."""

    producer: int
    kind: Kind
    certain: bool = True
    """False where both addresses are known only when the kernel runs."""


class Box(NamedTuple):
    """Partitions [p0, p1) and bytes [b0, b1) of each; with a period, only runs in it.

    The runs are `run` bytes long and start at `b0` plus multiples of `period`.
    """

    p0: int
    p1: int
    b0: int
    b1: int
    run: int
    period: int
    dynamic: int = 0
    """Of an access whose place is known only when the kernel runs: a number of its own. Else 0."""

    def overlaps(self, other: Box) -> bool:
        """Whether the two may share a byte."""
        return self._bounds_overlap(other) and self._runs_overlap(other)

    def _bounds_overlap(self, other: Box) -> bool:
        return (
            self.b0 < other.b1 and other.b0 < self.b1 and self.p0 < other.p1 and other.p0 < self.p1
        )

    def _runs_overlap(self, other: Box) -> bool:
        common = gcd(self.period, other.period)
        if not common:
            return True
        ahead = (other.b0 - self.b0) % common
        return ahead < self.run or common - ahead < other.run

    def covers(self, other: Box) -> bool:
        """Whether every byte of `other` is surely in this one."""
        if self.dynamic:
            return False
        if self.period:
            return self == other
        return (
            self.b0 <= other.b0
            and other.b1 <= self.b1
            and self.p0 <= other.p0
            and other.p1 <= self.p1
        )


_ONCHIP = ("sbuf", "psum")

Space = int | str
"""A memory object: a buffer's id, or the name of the memory that pinned tiles share."""


@define(eq=False)
class _Cell:
    """State of one distinct box."""

    box: Box
    overlapping: list[_Cell] = field(factory=list, repr=False)
    writer: int = -1
    readers: list[int] = field(factory=list)


@define(eq=False)
class _Object:
    """One memory object: its cells by box."""

    cells: dict[Box, _Cell] = field(factory=dict)
    inherited: set[int] = field(factory=set)
    """Users of the tiles whose memory this one took, for whom its first writer waited."""

    def users(self) -> set[int]:
        """Everybody who must be done before the memory goes to another tile.

        They come after the first writer, so after whoever used the memory before.
        """
        users: set[int] = set()
        for cell in self.cells.values():
            users.update(cell.readers)
            users.add(cell.writer)
        users.discard(-1)
        return users - self.inherited


def dependencies(trace: Trace, placement: Placement) -> tuple[tuple[Edge, ...], ...]:
    """Return what each record waits for, by position; producers come earlier in the trace."""
    objects, touched = _cells(trace)
    position = {record.index: at for at, record in enumerate(trace.records)}
    heirs: dict[int, list[int]] = {}
    for buffer in placement.replaces:
        heirs.setdefault(placement.lifetimes[buffer][0], []).append(buffer)
    edges: list[tuple[Edge, ...]] = []
    for at, record in enumerate(trace.records):
        unsure: dict[int, Kind] = {}
        found: dict[int, Kind] = {
            position[index]: Kind.RESULT for index in record.depends_on if index in position
        }
        for buffer in heirs.get(at, ()):
            _inherit(objects[buffer], [objects[dead] for dead in placement.replaces[buffer]])
        accumulates = record.opcode.startswith("nc_matmul") and bool(
            record.attributes.get("accumulate")
        )
        reads, writes = touched[at]
        for cell, operand in reads:
            # An accumulating matmul lists its destination as read; the write below orders it.
            if not (accumulates and operand == "dst"):
                _read(cell, at, found, unsure)
        for cell, _ in writes:
            _write(cell, at, found, unsure, accumulates, trace.records)
        found.pop(at, None)
        held = [Edge(producer, kind) for producer, kind in found.items()]
        for producer, kind in unsure.items():
            if producer != at and producer not in found:
                held.append(Edge(producer, kind, certain=False))
        edges.append(tuple(held))
    return tuple(edges)


_Touch = tuple[_Cell, str]
"""A cell and the operand that touches it."""


def _cells(
    trace: Trace,
) -> tuple[dict[Space, _Object], list[tuple[list[_Touch], list[_Touch]]]]:
    """List the boxes of every memory object with their overlaps, and the cells of each record.

    Memory that nobody writes orders nothing, so its cells are left out of the records.
    """
    buffers = {buffer.id: buffer for buffer in trace.buffers}
    spaces = {number: _space(buffer) for number, buffer in buffers.items()}
    written = {spaces[access.buffer] for record in trace.records for access in _written(record)}
    objects: dict[Space, _Object] = {space: _Object() for space in written}
    touched = []
    for at, record in enumerate(trace.records):
        reads = [
            (_cell(access, buffers[access.buffer], objects[space], at), access.operand)
            for access in record.reads
            if (space := spaces[access.buffer]) in written
        ]
        writes = [
            (
                _cell(access, buffers[access.buffer], objects[spaces[access.buffer]], at),
                access.operand,
            )
            for access in _written(record)
        ]
        touched.append((reads, writes))
    for held in objects.values():
        _find_overlaps(list(held.cells.values()))
    # A tile that is read but never written still passes its memory on.
    for number in buffers.keys() - objects.keys():
        objects[number] = _Object()
    return objects, touched


def _written(record: Record) -> tuple[Access, ...]:
    """What a record writes. A barrier stands for the partner's writes to its data."""
    return (*record.reads, *record.writes) if record.opcode == "core_barrier" else record.writes


def _space(buffer: Buffer) -> Space:
    pinned = buffer.address is not None and buffer.memory in _ONCHIP
    return buffer.memory if pinned else buffer.id


def _cell(access: Access, buffer: Buffer, held: _Object, at: int) -> _Cell:
    """Return the cell of an access of record `at`, new or known."""
    # A pinned tile's partitions are the machine's already, its bytes count from its address.
    pinned = buffer.address is not None and buffer.memory in _ONCHIP
    start = buffer.address[1] if buffer.address is not None and pinned else 0
    b0, b1 = access.b0 + start, access.b1 + start
    period = access.period_bytes
    run = access.run_bytes if period else b1 - b0
    own = at + 1 if access.dynamic and buffer.memory not in _ONCHIP else 0
    box = Box(access.p0, access.p1, b0, b1, run, period, own)
    cell = held.cells.get(box)
    if cell is None:
        cell = held.cells[box] = _Cell(box)
    return cell


def _find_overlaps(group: list[_Cell]) -> None:
    """Sweep over the byte axis; a cell overlaps itself."""
    group.sort(key=lambda cell: (cell.box.b0, -cell.box.b1))
    active: list[_Cell] = []
    for cell in group:
        active = [other for other in active if other.box.b1 > cell.box.b0]
        for other in active:
            if other.box.overlaps(cell.box):
                other.overlapping.append(cell)
                cell.overlapping.append(other)
        cell.overlapping.append(cell)
        active.append(cell)


def _inherit(heir: _Object, dead: Iterable[_Object]) -> None:
    """Let whoever first writes a part of the heir wait for the users of the dead."""
    heir.inherited = set().union(*(held.users() for held in dead))
    users = sorted(heir.inherited)
    for cell in heir.cells.values():
        cell.readers.extend(users)


def _read(cell: _Cell, at: int, found: dict[int, Kind], unsure: dict[int, Kind]) -> None:
    for other in cell.overlapping:
        if other.writer >= 0:
            _sure(cell, other, found, unsure)[other.writer] = Kind.RESULT
    cell.readers.append(at)


def _sure(
    cell: _Cell, other: _Cell, found: dict[int, Kind], unsure: dict[int, Kind]
) -> dict[int, Kind]:
    """Where an edge between the users of two cells belongs."""
    return unsure if cell.box.dynamic and other.box.dynamic else found


def _write(
    cell: _Cell,
    at: int,
    found: dict[int, Kind],
    unsure: dict[int, Kind],
    accumulates: bool,
    records: tuple[Record, ...],
) -> None:
    for other in cell.overlapping:
        into = _sure(cell, other, found, unsure)
        for reader in other.readers:
            into.setdefault(reader, Kind.FREED)
        if other.writer >= 0:
            if accumulates and records[other.writer].engine == "tensor":
                into.setdefault(other.writer, Kind.ACCUMULATE)
            else:
                into[other.writer] = Kind.RESULT
        if cell.box.covers(other.box):
            other.writer = -1
            other.readers.clear()
    cell.writer = at
