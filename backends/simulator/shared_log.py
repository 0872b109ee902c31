"""Accesses of one program to memory the other program can reach, and the races between two logs."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from backends.simulator.dynamic import flat_indices
from backends.simulator.faults import Fault
from backends.simulator.location import Location, here
from backends.simulator.memory import Storage
from backends.simulator.tokens import MemoryRegion

if TYPE_CHECKING:
    from backends.simulator.recorder import Operand
    from backends.simulator.tensor import NkiTensor


@define(eq=False)
class Touch:
    """One access; `indices` holds the elements of a run-time addressed view, where known."""

    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    indices: NDArray[np.int64] | None
    writes: bool
    location: Location
    content: int | None = None
    """Checksum of what was written, once the instruction has run."""


@define(eq=False)
class SharedLog:
    """Accesses by (storage, number of fences that went before)."""

    touches: dict[tuple[int, int], list[Touch]] = field(factory=lambda: defaultdict(list))
    storages: dict[int, Storage] = field(factory=dict)
    _fences: dict[int, int] = field(factory=lambda: defaultdict(int))
    _all: int = 0
    _written: list[tuple[NkiTensor, Touch]] = field(factory=list)

    def add(self, reads: Sequence[Operand], writes: Sequence[Operand], data: bool) -> None:
        """Log the operands that live in memory both programs reach, before they are written."""
        self.settle()
        for writing, operands in ((False, reads), (True, writes)):
            for _, view in operands:
                storage = view.storage
                if storage.form.region is not MemoryRegion.shared_hbm:
                    continue
                self.storages[storage.id] = storage
                indices = None
                if view.dynamic is not None and data:
                    indices, legal = flat_indices(view, skip=True)
                    if legal is not None:
                        indices = indices[legal]
                layout = (view.dtype.bytes, view.shape, view.strides, view.offset)
                touch = Touch(*layout, indices, writing, here())
                self.touches[storage.id, self._epoch(storage.id)].append(touch)
                if writing and data:
                    self._written.append((view, touch))

    def settle(self) -> None:
        """Take the checksums of what the last instruction wrote, before the other program runs."""
        for view, touch in self._written:
            values = view.gather(skip=True)[0]
            touch.content = zlib.crc32(values.tobytes())
        self._written.clear()

    def fence(self, storage: int | None) -> None:
        """Begin a new epoch for one storage, or for all."""
        self.settle()
        if storage is None:
            self._all += 1
        else:
            self._fences[storage] += 1

    def _epoch(self, storage: int) -> int:
        return self._all + self._fences[storage]


@frozen(eq=False)
class Race:
    """Two unordered accesses to the same bytes.

    `benign`: both programs write the same values to the same places, as a kernel does that takes no
    notice of being launched on two cores.
    """

    storage: Storage
    first: Touch
    second: Touch
    benign: bool

    def fault(self) -> Fault:
        """Return the race as a fault at the second access."""
        kinds = ["writes" if touch.writes else "reads" for touch in (self.first, self.second)]
        return Fault(
            "S501",
            f"program 1 {kinds[1]} bytes of `{self.storage.name or 'shared tensor'}` that program "
            f"0 {kinds[0]} at line {self.first.location.line}, with no barrier between"
            + (" (the values are the same)" if self.benign else ""),
            location=self.second.location,
            help="split the work by `nl.program_id(0)`, or put "
            "`nisa.core_barrier(data=tensor, cores=(0, 1))` between the two",
        )


def find_race(a: SharedLog, b: SharedLog) -> Race | None:
    """Return a pair of unordered conflicting accesses of two programs, a harmful one if any."""
    harmless: Race | None = None
    for key in sorted(a.touches.keys() & b.touches.keys()):
        mine, theirs = a.touches[key], b.touches[key]
        if any(touch.writes for touch in (*mine, *theirs)):
            race = _race_in(a.storages[key[0]], mine, theirs)
            if race is not None and not race.benign:
                return race
            harmless = harmless or race
    return harmless


def _race_in(storage: Storage, mine: Sequence[Touch], theirs: Sequence[Touch]) -> Race | None:
    """Return a race on one storage between two fences.

    Every map has one entry per unit of bytes: 0 untouched, n + 1 touched by touch n.
    """
    unit = gcd(*(touch.itemsize for touch in (*mine, *theirs)))
    size = storage.form.size * storage.form.itemsize // unit
    my_reads, my_writes, their_writes = (np.zeros(size, dtype=np.int32) for _ in range(3))
    for n, touch in enumerate(mine):
        _mark(my_writes if touch.writes else my_reads, touch, unit, n + 1)
    for n, touch in enumerate(theirs):
        if touch.writes:
            _mark(their_writes, touch, unit, n + 1)
    same = _same_writes(mine, theirs, my_writes, their_writes)
    harmless: Race | None = None
    for touch in theirs:
        for owners in (my_writes, my_reads) if touch.writes else (my_writes,):
            seen = _entries(owners, touch, unit)
            conflict = seen != 0
            if not conflict.any():
                continue
            bad = conflict & ~_entries(same, touch, unit)
            place = int(np.flatnonzero(bad if bad.any() else conflict)[0])
            race = Race(storage, mine[int(seen[place]) - 1], touch, benign=not bad.any())
            if not race.benign:
                return race
            harmless = harmless or race
    return harmless


def _same_writes(
    mine: Sequence[Touch],
    theirs: Sequence[Touch],
    my_writes: NDArray[np.int32],
    their_writes: NDArray[np.int32],
) -> NDArray[np.bool_]:
    """Return where both programs wrote last, with equal layouts and equal contents."""
    numbers: dict[tuple[object, ...], int] = {}

    def identity(touches: Sequence[Touch]) -> NDArray[np.int32]:
        found = [0]
        for touch in touches:
            where = touch.indices.tobytes() if touch.indices is not None else None
            key = (touch.itemsize, touch.shape, touch.strides, touch.offset, where, touch.content)
            found.append(numbers.setdefault(key, len(numbers) + 1) if touch.writes else 0)
        return np.array(found, dtype=np.int32)

    left, right = identity(mine)[my_writes], identity(theirs)[their_writes]
    same: NDArray[np.bool_] = (left == right) & (left != 0)
    return same


def _positions(touch: Touch, unit: int) -> NDArray[np.int64] | None:
    """Return the entries of a run-time addressed access, None for a strided one."""
    if touch.indices is None:
        return None
    per_element = touch.itemsize // unit
    return touch.indices.reshape(-1, 1) * per_element + np.arange(per_element)


def _window(entries: NDArray[Any], touch: Touch, unit: int) -> NDArray[Any]:
    """Return the entries of a strided access as a numpy view."""
    per_element = touch.itemsize // unit
    step = per_element * entries.itemsize
    strides = (*(s * step for s in touch.strides), entries.itemsize)
    shape = (*touch.shape, per_element)
    return np.ndarray(shape, entries.dtype, entries, touch.offset * step, strides)


def _mark(entries: NDArray[np.int32], touch: Touch, unit: int, value: int) -> None:
    positions = _positions(touch, unit)
    if positions is None:
        _window(entries, touch, unit)[...] = value
    else:
        entries[positions] = value


def _entries(entries: NDArray[Any], touch: Touch, unit: int) -> NDArray[Any]:
    positions = _positions(touch, unit)
    found = _window(entries, touch, unit) if positions is None else entries[positions]
    return found.reshape(-1)
