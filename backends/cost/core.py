"""The state of one core while instructions are placed on its engines, one after the other.

`place` takes the time at which an instruction's dependencies are met and finds when it starts: not
before its queue is free, nor before the other engine left its PSUM bank. Every resource is a time
from which it is free, and placing takes maxima and sums only; so in a fixed order a later start
never makes anything earlier.

Shared DMA bandwidth is served in placement order: a transfer ends no earlier than all data placed
before it, counted from when each transfer reached the head of its queue. (Counting from its actual
start would let a transfer that waits for its data hold up those that overtake it on another ring.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from attrs import define, field, frozen

from backends.cost.dma import DataTime, data_time
from backends.cost.durations import Duration, duration
from backends.cost.hazards import Edge
from backends.cost.program import Program
from backends.cost.rings import Ring, Rings
from backends.cost.workload import Transfer
from backends.isa.machine import Machine


@frozen
class Costs:
    """Times of a program's distinct workloads on one machine, and the ring of each transfer."""

    machine: Machine
    times: tuple[Duration | DataTime, ...]
    rings: dict[int, Ring]
    """By position of the instruction."""

    def issue(self, at: int) -> float:
        """Return what triggering a transfer occupies its queue for."""
        return self.machine["dma_software_issue" if self.rings[at].software else "dma_issue"]


def cost_of(program: Program, machine: Machine, cores: int) -> Costs:
    """Time every distinct workload of a program; `cores` share one HBM stack."""
    rings = Rings(int(machine["dma_rings"]), bool(machine["dma_software_unnamed"]))
    by_position = {}
    for at, number in enumerate(program.work_of):
        work = program.works[number]
        if isinstance(work, Transfer):
            by_position[at] = rings.ring(work)
    times = tuple(
        data_time(work, machine, cores) if isinstance(work, Transfer) else duration(work, machine)
        for work in program.works
    )
    return Costs(machine, times, by_position)


@define
class Placed:
    """Where an instruction ended up. Nanoseconds."""

    queue: str
    start: float
    release: float
    """From when its engine and its inputs are free."""
    visible: float
    """From when its result can be used (on its own engine; others add a hop)."""
    entered: float
    """When what it waited for let it go."""
    cause: int | None
    """The instruction it waited for, if any."""
    reason: str
    busy: float
    occupied: tuple[float, float]
    """Where it stands on its engine, or its data on its ring."""


_NEVER = (0.0, None, "")


@define
class Core:
    """Engines, rings and exclusive resources of one core."""

    program: Program
    edges: tuple[tuple[Edge, ...], ...] = field(repr=False)
    """What each instruction waits for; from here on as far as this machine orders it."""
    costs: Costs
    throttle: bool = False
    placed: list[Placed | None] = field(init=False)
    _free: dict[str, tuple[float, int | None]] = field(init=False, factory=dict)
    _ring_free: dict[str, tuple[float, int | None]] = field(init=False, factory=dict)
    _moved: float = field(init=False, default=0.0)
    _table: str | None = field(init=False, default=None)
    table_loads: int = field(init=False, default=0)
    _held: dict[str, dict[str, tuple[float, int]]] = field(init=False, factory=dict)
    _pe_recent: deque[tuple[float, float]] = field(init=False, factory=deque)

    def __attrs_post_init__(self) -> None:
        self.placed = [None] * self.program.size
        if not self.costs.machine["dma_unknown_ordered"]:
            self.edges = tuple(
                held if all(edge.certain for edge in held) else tuple(e for e in held if e.certain)
                for held in self.edges
            )

    def queue(self, at: int) -> str:
        """Return the in-order queue that starts an instruction."""
        ring = self.costs.rings.get(at)
        return self.program.trace.records[at].engine if ring is None else ring.queue

    def queue_free(self, queue: str) -> float:
        """Return when a queue can start its next instruction."""
        return self._free.get(queue, (0.0, None))[0]

    def place(self, at: int, ready: float, cause: int | None, reason: str) -> None:
        """Put an instruction on its engine, not before `ready`, which `cause` determined."""
        time = self.costs.times[self.program.work_of[at]]
        if isinstance(time, DataTime):
            self._place_transfer(at, time, ready, cause, reason)
        else:
            self._place_instruction(at, time, ready, cause, reason)

    def arrival(self, at: int, ready: float) -> float:
        """Return when an instruction that meets the other core could start."""
        return max(ready, self.queue_free(self.queue(at)))

    def meet(self, at: int, arrived: float, cause: int | None) -> None:
        """Place a cross-core barrier or exchange whose last participant arrived at a time."""
        queue = self.queue(at)
        time = self.costs.times[self.program.work_of[at]]
        took = self.costs.machine["barrier"]
        if isinstance(time, DataTime):
            took = self.costs.issue(at) + time.lead + time.alone + time.tail
        start = max(arrived, self.queue_free(queue))
        done = start + took
        self._free[queue] = (done, at)
        self.placed[at] = Placed(
            queue, start, done, done, start, cause, "barrier", took, (start, done)
        )

    # ---- engines

    def _place_instruction(
        self, at: int, time: Duration, ready: float, cause: int | None, reason: str
    ) -> None:
        queue = self.queue(at)
        start, cause, reason = _latest(
            (ready, cause, reason),
            (*self._free.get(queue, (0.0, None)), "engine"),
            self._exclusion(at, queue),
        )
        extra = self._table_load(time)
        busy = time.busy
        if queue == "tensor":
            busy, extra = self._tensor(start, time)
        release = start + busy + extra
        self._free[queue] = (release, at)
        for resource in self._resources(at, queue):
            self._held.setdefault(resource, {})[queue] = (release, at)
        visible = start + max(time.latency, time.busy) + extra + (busy - time.busy)
        self.placed[at] = Placed(
            queue, start, release, visible, start, cause, reason, busy + extra, (start, release)
        )

    def _table_load(self, time: Duration) -> float:
        if time.table is None or time.table == self._table:
            return 0.0
        self._table = time.table
        self.table_loads += 1
        return self.costs.machine["scalar_table_load"]

    def _tensor(self, start: float, time: Duration) -> tuple[float, float]:
        """Return busy time under the clock gate, and what the first operand load adds to it."""
        machine = self.costs.machine
        nothing_before = "tensor" not in self._free
        load = machine["pe_load_cycles"] / machine["pe_clock"] if nothing_before else 0.0
        if not self.throttle or "pe_throttle_window" not in machine:
            return time.busy, load
        since = start - machine["pe_throttle_window"]
        recent = self._pe_recent
        while recent and recent[0][1] < since:
            recent.popleft()
        used = sum(end - max(begin, since) for begin, end in recent)
        gated = used < machine["pe_throttle_threshold"] * machine["pe_throttle_window"]
        busy = time.busy * (machine["pe_throttle_slowdown"] if gated else 1.0)
        recent.append((start, start + busy))
        return busy, load

    def _resources(self, at: int, queue: str) -> list[str]:
        """Name what the instruction holds alone against other engines."""
        machine = self.costs.machine
        held = []
        banks = self.program.banks[at]
        if banks and machine["excludes_vector_scalar_psum"]:
            held.append("psum")
        elif banks and machine["excludes_vector_scalar_bank"]:
            held.extend(f"bank {bank}" for bank in banks)
        if queue in ("vector", "gpsimd") and machine["excludes_vector_gpsimd"]:
            held.append("sbuf port")
        return held

    def _exclusion(self, at: int, queue: str) -> tuple[float, int | None, str]:
        latest: tuple[float, int | None, str] = _NEVER
        for resource in self._resources(at, queue):
            for other, (until, holder) in self._held.get(resource, {}).items():
                if other != queue and until > latest[0]:
                    latest = (until, holder, "bank")
        return latest

    # ---- transfers

    def _place_transfer(
        self, at: int, time: DataTime, ready: float, cause: int | None, reason: str
    ) -> None:
        machine = self.costs.machine
        ring = self.costs.rings[at]
        head, previous = self._free.get(ring.queue, (0.0, None))
        start, cause, reason = _latest((ready, cause, reason), (head, previous, "engine"))
        busy = self.costs.issue(at)
        delay = machine["dma_software_delay"] if ring.software else busy
        self._free[ring.queue] = (start + busy, at)
        lead = delay + time.lead
        ring_free, on_ring = self._ring_free.get(ring.name, (0.0, None))
        entered, data_start = start, start + lead
        if ring_free > data_start:
            entered = data_start = ring_free
            cause, reason = on_ring, "ring"
        # What the engines are still busy with makes this transfer longer, not later.
        self._moved = max(self._moved, head + lead) + time.share
        data_end = max(data_start + time.alone, self._moved)
        self._ring_free[ring.name] = (max(data_start + machine["dma_interval"], data_end), at)
        visible = data_end + time.tail
        occupied = (data_start, data_end)
        self.placed[at] = Placed(
            ring.queue, start, visible, visible, entered, cause, reason, busy, occupied
        )


def _latest(
    *bounds: tuple[float, int | None, str],
) -> tuple[float, int | None, str]:
    """Return the bound that decides, the first of equals."""
    return max(bounds, key=lambda bound: bound[0])


def finished(cores: Sequence[Core]) -> float:
    """Return when the last instruction's result is there. Nanoseconds."""
    return max(
        (
            max(placed.visible, placed.release)
            for core in cores
            for placed in core.placed
            if placed is not None
        ),
        default=0.0,
    )
