"""The timeline in program order: every engine executes its instructions as the kernel wrote them.

This is the headline figure. The cores of a logical core run side by side and meet at barriers and
exchanges.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from backends.cost.core import Core, Costs, Placed, cost_of, finished
from backends.cost.hazards import Kind
from backends.cost.program import Program
from backends.isa.machine import Machine

MICROSECOND = 1000.0
"""In nanoseconds, the unit of every time in this package until it enters a report."""

_REASONS = {Kind.RESULT: "data", Kind.FREED: "buffer", Kind.ACCUMULATE: "engine"}


@frozen
class Timeline:
    """When everything happened, by core and position. Nanoseconds."""

    end: float
    cores: tuple[tuple[Placed, ...], ...] = field(repr=False)
    table_loads: tuple[int, ...]
    costs: tuple[Costs, ...] = field(repr=False)


def ready_time(core: Core, at: int) -> tuple[float, int | None, str]:
    """Return when the dependencies of an instruction are met, the last one, and why it counts.

    All producers must be placed.
    """
    queue = core.queue(at)
    hop = core.costs.machine["hop"]
    latest: tuple[float, int | None, str] = (0.0, None, "")
    for edge in core.edges[at]:
        producer = core.placed[edge.producer]
        assert producer is not None
        met = producer.visible if edge.kind is Kind.RESULT else producer.release
        if edge.kind is not Kind.ACCUMULATE and producer.queue != queue:
            met += hop
        if met > latest[0]:
            latest = (met, edge.producer, _REASONS[edge.kind])
    return latest


def program_order(
    programs: Sequence[Program], machine: Machine, *, throttle: bool = False
) -> Timeline:
    """Run the programs of one launch, one per core."""
    cores = [
        Core(program, program.deciding, cost_of(program, machine, len(programs)), throttle)
        for program in programs
    ]
    nexts = [0] * len(cores)
    waiting: dict[int, dict[int, tuple[int, float, int | None]]] = {}
    runnable = list(range(len(cores)))
    while runnable:
        number = runnable.pop()
        core = cores[number]
        records = core.program.trace.records
        while nexts[number] < core.program.size:
            at = nexts[number]
            nexts[number] += 1
            ready, cause, reason = ready_time(core, at)
            meeting = records[at].barrier
            if meeting is None or len(cores) == 1:
                core.place(at, ready, cause, reason)
                continue
            there = waiting.setdefault(meeting, {})
            there[number] = (at, core.arrival(at, ready), cause)
            if len(there) < len(cores):
                break
            _meet(cores, there)
            runnable.extend(other for other in there if other != number)
    return timeline_of(cores)


def _meet(cores: Sequence[Core], there: dict[int, tuple[int, float, int | None]]) -> None:
    last = max(arrived for _, arrived, _ in there.values())
    for number, (at, _, cause) in there.items():
        cores[number].meet(at, last, cause)


def timeline_of(cores: Sequence[Core]) -> Timeline:
    """Collect what the cores did. An instruction nobody let run (a barrier alone) is an error."""
    placed = []
    for core in cores:
        done = tuple(item for item in core.placed if item is not None)
        if len(done) < core.program.size:
            raise ValueError("a cross-core barrier has no partner on the other core")
        placed.append(done)
    return Timeline(
        end=finished(cores),
        cores=tuple(placed),
        table_loads=tuple(core.table_loads for core in cores),
        costs=tuple(core.costs for core in cores),
    )
