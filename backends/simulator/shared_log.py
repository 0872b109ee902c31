"""Accesses of one program to memory the other program can reach, and the races between two logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from backends.simulator.dynamic import flat_indices
from backends.simulator.faults import Fault
from backends.simulator.location import Location, here
from backends.simulator.memory import Storage
from backends.simulator.tokens import MemoryRegion

if TYPE_CHECKING:
    from backends.simulator.recorder import Operand


class Touch(NamedTuple):
    """One access; `indices` holds the elements of a run-time addressed view, where known."""

    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    indices: NDArray[np.int64] | None
    writes: bool
    location: Location


@define(eq=False)
class SharedLog:
    """Accesses by (storage, number of fences that went before)."""

    touches: dict[tuple[int, int], list[Touch]] = field(factory=lambda: defaultdict(list))
    storages: dict[int, Storage] = field(factory=dict)
    _fences: dict[int, int] = field(factory=lambda: defaultdict(int))
    _all: int = 0

    def add(self, reads: Sequence[Operand], writes: Sequence[Operand], data: bool) -> None:
        """Log the operands that live in memory both programs reach."""
        for writing, operands in ((False, reads), (True, writes)):
            for _, view in operands:
                storage = view.storage
                if storage.region is not MemoryRegion.shared_hbm:
                    continue
                self.storages[storage.id] = storage
                indices = None
                if view.dynamic is not None and data:
                    indices, legal = flat_indices(view, skip=True)
                    if legal is not None:
                        indices = indices[legal]
                touch = Touch(
                    view.dtype.bytes,
                    view.shape,
                    view.strides,
                    view.offset,
                    indices,
                    writing,
                    here(),
                )
                self.touches[storage.id, self._epoch(storage.id)].append(touch)

    def fence(self, storage: int | None) -> None:
        """Begin a new epoch for one storage, or for all."""
        if storage is None:
            self._all += 1
        else:
            self._fences[storage] += 1

    def _epoch(self, storage: int) -> int:
        return self._all + self._fences[storage]


class Race(NamedTuple):
    """Two unordered accesses to the same bytes."""

    storage: Storage
    first: Touch
    second: Touch

    def fault(self) -> Fault:
        """Return the race as a fault at the second access."""
        kinds = ["writes" if touch.writes else "reads" for touch in (self.first, self.second)]
        return Fault(
            "S501",
            f"program 1 {kinds[1]} bytes of `{self.storage.name or 'shared tensor'}` that program "
            f"0 {kinds[0]} at line {self.first.location.line}, with no barrier between",
            location=self.second.location,
            help="`nisa.core_barrier(data=tensor, cores=(0, 1))` between the two",
        )


def find_race(a: SharedLog, b: SharedLog) -> Race | None:
    """Return one pair of unordered conflicting accesses of two programs, or None."""
    for key in a.touches.keys() & b.touches.keys():
        mine, theirs = a.touches[key], b.touches[key]
        if not any(touch.writes for touch in (*mine, *theirs)):
            continue
        storage = a.storages[key[0]]
        size = storage.size * storage.itemsize
        # 0 untouched, 2 n + 1 read by touch n, 2 n + 2 written by touch n (writes prevail).
        owner = np.zeros(size, dtype=np.int64)
        for writing in (False, True):
            for n, touch in enumerate(mine):
                if touch.writes == writing:
                    _mark(owner, touch, 2 * n + 1 + writing)
        for touch in theirs:
            seen = _bytes_of(owner, touch)
            clash = seen[seen != 0] if touch.writes else seen[(seen != 0) & (seen % 2 == 0)]
            if clash.size:
                return Race(storage, mine[(int(clash[0]) - 1) // 2], touch)
    return None


def _window(owner: NDArray[np.int64], touch: Touch) -> NDArray[np.int64]:
    """Return the touched bytes of a map with one entry per byte, as a numpy view."""
    step = touch.itemsize
    shape = (*touch.shape, step)
    strides = tuple(s * step * owner.itemsize for s in touch.strides)
    return np.ndarray(
        shape, owner.dtype, owner, touch.offset * step * owner.itemsize, (*strides, owner.itemsize)
    )


def _positions(touch: Touch) -> NDArray[np.int64]:
    """Return the byte numbers of a run-time addressed access."""
    assert touch.indices is not None
    base: NDArray[np.int64] = touch.indices.reshape(-1, 1) * touch.itemsize
    return base + np.arange(touch.itemsize)


def _mark(owner: NDArray[np.int64], touch: Touch, value: int) -> None:
    if touch.indices is None:
        _window(owner, touch)[...] = value
    else:
        owner[_positions(touch)] = value


def _bytes_of(owner: NDArray[np.int64], touch: Touch) -> NDArray[np.int64]:
    found = _window(owner, touch) if touch.indices is None else owner[_positions(touch)]
    return found.reshape(-1)
