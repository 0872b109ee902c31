"""The timeline when independent instructions may overtake each other on their engine.

List scheduling: whenever a queue can start something, it starts, among the instructions whose
dependencies are met by then, the one with the longest way to the end of the kernel. A compiler that
reorders does about this; one that does not leaves program order, so the better of the two counts.
Memory stays as handed out in program order, so every order found fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from attrs import define, field

from backends.cost.core import Core, cost_of
from backends.cost.dma import DataTime
from backends.cost.hazards import Kind
from backends.cost.program import Program
from backends.cost.timeline import Timeline, ready_time, timeline_of
from backends.isa.machine import Machine


def list_scheduled(programs: Sequence[Program], machine: Machine) -> Timeline:
    """Run the programs of one launch with reordering, one per core."""
    cores = [
        Core(program, program.edges, cost_of(program, machine, len(programs)))
        for program in programs
    ]
    lanes = [_Lane(core, _priorities(core)) for core in cores]
    waiting: dict[int, dict[int, tuple[int, float, int | None]]] = {}
    while True:
        choices = [(lane.next_start(), number) for number, lane in enumerate(lanes)]
        time, number = min(choices)
        if time == _NOTHING:
            return timeline_of(cores)
        lane = lanes[number]
        at = lane.pick()
        ready, cause, reason = lane.ready[at]
        meeting = lane.core.program.trace.records[at].barrier
        if meeting is None or len(cores) == 1:
            lane.core.place(at, ready, cause, reason)
            lane.done(at)
            continue
        there = waiting.setdefault(meeting, {})
        there[number] = (at, lane.core.arrival(at, ready), cause)
        if len(there) == len(cores):
            last = max(arrived for _, arrived, _ in there.values())
            for other, (met, _, why) in there.items():
                lanes[other].core.meet(met, last, why)
                lanes[other].done(met)


_NOTHING = float("inf")


def _priorities(core: Core) -> list[float]:
    """Return the longest way from each instruction's start to the end, dependencies only."""
    ways = [0.0] * core.program.size
    for at in range(core.program.size - 1, -1, -1):
        # By now every consumer has added its way to what this one must get through first.
        ways[at] = max(ways[at], _step(core, at, Kind.RESULT))
        for edge in core.edges[at]:
            way = ways[at] + _step(core, edge.producer, edge.kind)
            ways[edge.producer] = max(ways[edge.producer], way)
    return ways


def _step(core: Core, at: int, kind: Kind) -> float:
    """Return how long after its start an instruction lets its consumers go."""
    time = core.costs.times[core.program.work_of[at]]
    if isinstance(time, DataTime):
        return core.costs.issue(at) + time.lead + time.alone + time.tail
    return time.latency if kind is Kind.RESULT else time.busy


@define
class _Queue:
    """Instructions of one in-order queue whose producers are all placed."""

    soon: list[tuple[float, int]] = field(factory=list)
    """By the time their dependencies are met."""
    now: list[tuple[float, int]] = field(factory=list)
    """Met already, by priority."""


@define
class _Lane:
    """One core's instructions on their way to the engines."""

    core: Core
    priority: list[float]
    ready: dict[int, tuple[float, int | None, str]] = field(init=False, factory=dict)
    """When the dependencies of an admitted instruction are met, and by what."""
    _queues: dict[str, _Queue] = field(init=False, factory=dict)
    _missing: list[int] = field(init=False)
    _consumers: list[list[int]] = field(init=False)
    _chosen: str = field(init=False, default="")

    def __attrs_post_init__(self) -> None:
        edges = self.core.edges
        self._missing = [len(held) for held in edges]
        self._consumers = [[] for _ in edges]
        for at, held in enumerate(edges):
            for edge in held:
                self._consumers[edge.producer].append(at)
        for at, missing in enumerate(self._missing):
            if not missing:
                self._admit(at)

    def _admit(self, at: int) -> None:
        queue = self._queues.setdefault(self.core.queue(at), _Queue())
        self.ready[at] = ready_time(self.core, at)
        heappush(queue.soon, (self.ready[at][0], at))

    def next_start(self) -> float:
        """Return the earliest time at which some queue can start something."""
        best = _NOTHING
        for name, queue in self._queues.items():
            if not queue.soon and not queue.now:
                continue
            free = self.core.queue_free(name)
            start = free if queue.now else max(free, queue.soon[0][0])
            if start < best:
                best, self._chosen = start, name
        return best

    def pick(self) -> int:
        """Take the most urgent instruction of the queue that `next_start` found."""
        queue = self._queues[self._chosen]
        start = self.core.queue_free(self._chosen)
        if not queue.now:
            start = max(start, queue.soon[0][0])
        while queue.soon and queue.soon[0][0] <= start:
            _, at = heappop(queue.soon)
            heappush(queue.now, (-self.priority[at], at))
        return heappop(queue.now)[1]

    def done(self, at: int) -> None:
        """Tell that an instruction was placed."""
        for consumer in self._consumers[at]:
            self._missing[consumer] -= 1
            if not self._missing[consumer]:
                self._admit(consumer)
