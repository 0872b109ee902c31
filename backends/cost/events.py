"""A core's timeline as plain data for reports: events, critical path, memory in use over time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from backends.cost.core import Placed
from backends.cost.critical_path import critical_path
from backends.cost.durations import Duration
from backends.cost.program import Program
from backends.cost.timeline import MICROSECOND, Timeline
from backends.cost.workload import Transfer
from backends.isa.targets import PSUM_BANKS
from gdsl.profiler import Event, MemoryPoint, Step


def events(
    program: Program, timeline: Timeline, core: int, origins: Mapping[tuple[str, int], str]
) -> tuple[Event, ...]:
    """Return one event per instruction; `origins` give `.gdn` places by NKI file and line."""
    costs = timeline.costs[core]
    found = []
    for at, placed in enumerate(timeline.cores[core]):
        record = program.trace.records[at]
        number = program.work_of[at]
        work, time = program.works[number], costs.times[number]
        ring = costs.rings.get(at)
        start, end = placed.occupied
        found.append(
            Event(
                index=at,
                row=record.engine if ring is None else f"dma {ring.name}",
                opcode=record.opcode,
                name=record.name,
                start=start / MICROSECOND,
                end=end / MICROSECOND,
                visible=placed.visible / MICROSECOND,
                waits_for=placed.cause,
                waited=placed.reason,
                bytes=work.bytes if isinstance(work, Transfer) else 0,
                cycles=time.cycles if isinstance(time, Duration) else 0.0,
                file=record.file,
                line=record.line,
                origin=origins.get((record.file, record.line), ""),
            )
        )
    return tuple(found)


def path(placed: tuple[Placed, ...]) -> tuple[Step, ...]:
    """Return the critical path in microseconds."""
    return tuple(
        Step(event=link.at, microseconds=link.nanoseconds / MICROSECOND, reason=link.reason)
        for link in critical_path(placed)
    )


def memory(program: Program, placed: tuple[Placed, ...]) -> tuple[MemoryPoint, ...]:
    """Return the on-chip memory in use, from each time at which it changes.

    A buffer is in use from the start of its first instruction to the end of its last.
    """
    sizes = {buffer.id: buffer for buffer in program.trace.buffers}
    changes: list[tuple[float, int, tuple[int, ...], int]] = []
    for number, (first, last) in program.placement.lifetimes.items():
        buffer = sizes[number]
        sbuf = buffer.bytes_per_partition if buffer.memory == "sbuf" else 0
        banks = program.placement.banks.get(number, ())
        if sbuf or banks:
            changes.append((placed[first].start, sbuf, banks, 1))
            end = max(placed[last].release, placed[first].start)
            changes.append((end, -sbuf, banks, -1))
    changes.sort(key=lambda change: (change[0], change[3]))
    points = []
    in_use, users = 0, dict.fromkeys(range(PSUM_BANKS), 0)
    for time, group in groupby(changes, key=lambda change: change[0]):
        for _, sbuf, banks, sign in group:
            in_use += sbuf
            for bank in banks:
                users[bank] += sign
        points.append(
            MemoryPoint(time / MICROSECOND, in_use, sum(1 for held in users.values() if held))
        )
    return tuple(points)
