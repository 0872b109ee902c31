"""How much memory is alive at once: from the first access of a tensor to its last.

The check runs after a program, because only then is the last access known. Unpinned tensors count
from partition 0, as the most crowded partition does; pinned ones count where they were pinned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from attrs import frozen

from backends.isa.targets import PSUM_BANK_BYTES, PSUM_BANKS
from backends.simulator.faults import Fault
from backends.simulator.memory import Allocation
from backends.simulator.tokens import MemoryRegion

_LARGEST_SHOWN = 4


@frozen
class Peak:
    """The largest amount alive at once, where, and what was alive then."""

    amount: int
    alive: tuple[Allocation, ...]


_BIRTH, _DEATH = 0, 1


def _events(uses: Iterable[Allocation]) -> list[tuple[int, int, int, Allocation]]:
    """Return (record, birth or death, number, tensor) in order."""
    events = []
    for number, use in enumerate(uses):
        if use.last >= 0:
            events.append((use.born, _BIRTH, number, use))
            events.append((use.last, _DEATH, number, use))
    # A birth is before the record of its number, a death after it.
    events.sort()
    return events


def _pinned_union(pinned: Iterable[Allocation]) -> int:
    """Return the bytes covered by pinned tensors on any partition."""
    covered = end = 0
    spans = sorted(
        (use.address[1], use.form.bytes_per_partition) for use in pinned if use.address is not None
    )
    for start, size in spans:
        covered += max(0, start + size - max(start, end))
        end = max(end, start + size)
    return covered


def peak(uses: Sequence[Allocation], unit: int) -> Peak:
    """Return the peak of one memory, every tensor rounded up to whole `unit` bytes."""
    alive: dict[int, Allocation] = {}
    pinned: dict[int, Allocation] = {}
    loose = best = 0
    at_best: tuple[Allocation, ...] = ()
    for _, kind, _, use in _events(uses):
        group = alive if use.address is None else pinned
        units = -(-use.form.bytes_per_partition // unit) if use.address is None else 0
        if kind == _DEATH:
            del group[id(use)]
            loose -= units
            continue
        group[id(use)] = use
        loose += units
        total = loose + (-(-_pinned_union(pinned.values()) // unit) if pinned else 0)
        if total > best:
            best, at_best = total, (*alive.values(), *pinned.values())
    return Peak(best, at_best)


def sbuf_peak(uses: Sequence[Allocation]) -> Peak:
    """Return the peak of SBUF in bytes per partition."""
    return peak([use for use in uses if use.form.region is MemoryRegion.sbuf], 1)


def psum_peak(uses: Sequence[Allocation]) -> Peak:
    """Return the peak of PSUM in banks, each tensor taking whole banks."""
    return peak([use for use in uses if use.form.region is MemoryRegion.psum], PSUM_BANK_BYTES)


def psum_packed_peak(uses: Sequence[Allocation]) -> Peak:
    """Return the peak of PSUM in bytes per partition, small tensors sharing banks."""
    return peak([use for use in uses if use.form.region is MemoryRegion.psum], 1)


def _loose_peaks(uses: Sequence[Allocation]) -> tuple[int, int]:
    """Return the bytes of SBUF and of PSUM alive at once as if nothing were pinned: never too few.

    Sums over all records at once, where `peak` goes from event to event to name what was alive.
    """
    spans = [
        (use.born, use.last, use.form.bytes_per_partition, use.form.region is MemoryRegion.psum)
        for use in uses
        if use.last >= 0 and use.form.region.on_chip
    ]
    if not spans:
        return 0, 0
    numbers = np.fromiter(chain.from_iterable(spans), np.int64, 4 * len(spans))
    born, last, size, psum = numbers.reshape(-1, 4).T
    peaks = []
    for sizes in (size * (1 - psum), size * psum):
        change = np.bincount(born, sizes, last.max() + 2)
        change -= np.bincount(last + 1, sizes, last.max() + 2)
        peaks.append(int(change.cumsum().max()))
    return peaks[0], peaks[1]


def over_capacity(uses: Sequence[Allocation], sbuf_limit: int, target: str) -> Fault | None:
    """Return the fault of a program that does not fit, or None."""
    limit = PSUM_BANKS * PSUM_BANK_BYTES
    most_sbuf, most_psum = _loose_peaks(uses)
    if most_sbuf <= sbuf_limit and most_psum <= limit:
        return None
    sbuf = sbuf_peak(uses)
    if sbuf.amount > sbuf_limit:
        return _fault("S203", sbuf, f"{sbuf.amount} bytes per partition of SBUF alive at once; "
                      f"{target} has {sbuf_limit}")  # fmt: skip
    psum = psum_packed_peak(uses)
    if psum.amount > limit:
        return _fault(
            "S204",
            psum,
            f"{psum.amount} bytes per partition of PSUM alive at once; PSUM has {limit}",
        )
    return None


def _fault(code: str, at: Peak, message: str) -> Fault:
    """Return a fault at the allocation that crossed the line, naming the largest tensors."""
    by_size = sorted(at.alive, key=lambda use: -use.form.bytes_per_partition)
    values = {
        f"alive since line {use.location.line}": _describe(use) for use in by_size[:_LARGEST_SHOWN]
    }
    youngest = max(at.alive, key=lambda use: use.born)
    return Fault(code, message, values=values, location=youngest.location)


def _describe(use: Allocation) -> str:
    form = use.form
    size = form.bytes_per_partition
    return f"`{use.name or 'unnamed'}` {list(form.shape)} {form.dtype}, {size} bytes"


def pinned_overlap(uses: Sequence[Allocation]) -> Fault | None:
    """Return the fault of two pinned tensors that share bytes while both are alive, or None."""
    alive: list[Allocation] = []
    for _, kind, _, use in _events(use for use in uses if use.address is not None):
        if kind == _DEATH:
            alive.remove(use)
            continue
        for other in alive:
            if _share_bytes(use, other):
                mine, theirs = use, other
                return Fault(
                    "S206",
                    f"pinned at {mine.address}, `{mine.name or 'unnamed'}` overlaps "
                    f"`{theirs.name or 'unnamed'}` pinned at {theirs.address} on line "
                    f"{theirs.location.line}, which is still alive",
                    location=mine.location,
                )
        alive.append(use)
    return None


def _share_bytes(a: Allocation, b: Allocation) -> bool:
    if a.form.region is not b.form.region:
        return False
    pa, fa = a.address or (0, 0)
    pb, fb = b.address or (0, 0)
    partitions = pa < pb + b.form.partitions and pb < pa + a.form.partitions
    free = fa < fb + b.form.bytes_per_partition and fb < fa + a.form.bytes_per_partition
    return partitions and free
