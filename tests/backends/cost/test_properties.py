"""What must hold for every trace: bounds, order, monotonicity. Random traces, small."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from backends.cost.bounds import instruction_bounds
from backends.cost.list_schedule import list_scheduled
from backends.cost.program import Program, prepare
from backends.cost.roofline import roofline
from backends.cost.timeline import Timeline, program_order
from backends.cost.workload import Transfer
from backends.isa.machine import MACHINES
from backends.isa.trace import Access, Record, Trace
from gdsl.ir.work import Contract

STEPS = st.lists(
    st.tuples(*(st.integers(0, 8) for _ in range(5))),
    min_size=1,
    max_size=40,
)
SCHEDULERS = {"program order": program_order, "list-scheduled": list_scheduled}
TARGETS = ("trn1", "trn2", "trn3")
ROUNDING = 1e-6
"""Nanoseconds that sums of floats in another order may differ by."""


@settings(deadline=None)
@given(steps=STEPS, target=st.sampled_from(TARGETS), scheduler=st.sampled_from(tuple(SCHEDULERS)))
def test_never_below_an_instruction_bound(
    random_trace: Callable[..., Trace], steps: Any, target: str, scheduler: str
) -> None:
    program = prepare(random_trace(steps, target=target))
    timeline = SCHEDULERS[scheduler]([program], MACHINES[target])
    for engine, bound in instruction_bounds(program, timeline.costs[0]).items():
        assert timeline.end >= bound - ROUNDING, engine


@settings(deadline=None)
@given(steps=STEPS, target=st.sampled_from(TARGETS), scheduler=st.sampled_from(tuple(SCHEDULERS)))
def test_never_below_a_roofline(
    random_trace: Callable[..., Trace], steps: Any, target: str, scheduler: str
) -> None:
    trace = random_trace(steps, target=target)
    program = prepare(trace)
    works = [program.works[number] for number in program.work_of]
    moved = sum(work.hbm_bytes for work in works if isinstance(work, Transfer))
    flops = sum(_flops(record) for record in trace.records)
    timeline = SCHEDULERS[scheduler]([program], MACHINES[target])
    # Every product counts as bf16, the faster type: a lower bound for a mix.
    roof = roofline(Contract(moved, flops, "bf16"), MACHINES[target], 1)
    assert timeline.end >= max(roof.hbm, roof.pe) - ROUNDING


def _flops(record: Record) -> float:
    operands = {access.operand: access for access in record.reads}
    if "moving" not in operands:
        return 0.0
    moving, stationary = operands["moving"], operands["stationary"]
    return 2.0 * (moving.p1 - moving.p0) * stationary.elements * moving.elements


@settings(deadline=None)
@given(
    steps=STEPS,
    ends=st.tuples(st.integers(0, 39), st.integers(0, 39)),
    target=st.sampled_from(TARGETS),
)
def test_a_further_dependency_never_shortens_program_order(
    random_trace: Callable[..., Trace], steps: Any, ends: tuple[int, int], target: str
) -> None:
    trace = random_trace(steps, target=target)
    assume(len(trace.records) > 1)
    later = 1 + ends[0] % (len(trace.records) - 1)
    earlier = ends[1] % later
    records = list(trace.records)
    records[later] = evolve(records[later], depends_on=(earlier,))
    more = evolve(trace, records=tuple(records))
    before = program_order([prepare(trace)], MACHINES[target]).end
    assert program_order([prepare(more)], MACHINES[target]).end >= before - ROUNDING


@settings(deadline=None)
@given(steps=STEPS)
def test_dependencies_that_do_not_decide_change_nothing(
    random_trace: Callable[..., Trace], steps: Any
) -> None:
    program = prepare(random_trace(steps))
    machine = MACHINES["trn2"]
    every = evolve(program, deciding=program.edges)
    assert program_order([program], machine).cores == program_order([every], machine).cores


@settings(max_examples=50, deadline=None)
@given(steps=STEPS, scheduler=st.sampled_from(tuple(SCHEDULERS)))
def test_every_dependency_is_respected(
    random_trace: Callable[..., Trace], steps: Any, scheduler: str
) -> None:
    """Compare every pair of instructions, without the hazard analysis under test."""
    trace = random_trace(steps)
    timeline = SCHEDULERS[scheduler]([prepare(trace)], MACHINES["trn2"])
    placed = timeline.cores[0]
    for j, later in enumerate(trace.records):
        for i, earlier in enumerate(trace.records[:j]):
            if _overlap(earlier.writes, later.reads):
                assert placed[j].start >= placed[i].visible - ROUNDING, (i, j, "result")
            if _overlap(earlier.reads, later.writes):
                assert placed[j].start >= placed[i].release - ROUNDING, (i, j, "overwrites")
            if _overlap(earlier.writes, later.writes) and not _accumulates(earlier, later):
                assert placed[j].start >= placed[i].release - ROUNDING, (i, j, "rewrites")


def _overlap(some: tuple[Access, ...], others: tuple[Access, ...]) -> bool:
    return any(
        a.buffer == b.buffer and a.b0 < b.b1 and b.b0 < a.b1 and a.p0 < b.p1 and b.p0 < a.p1
        for a in some
        for b in others
    )


def _accumulates(earlier: Record, later: Record) -> bool:
    return earlier.engine == later.engine == "tensor"


@settings(deadline=None)
@given(steps=STEPS, scheduler=st.sampled_from(tuple(SCHEDULERS)))
def test_engines_and_rings_do_one_thing_at_a_time(
    random_trace: Callable[..., Trace], steps: Any, scheduler: str
) -> None:
    program = prepare(random_trace(steps))
    timeline = SCHEDULERS[scheduler]([program], MACHINES["trn2"])
    rows: dict[str, list[tuple[float, float]]] = {}
    for at, placed in enumerate(timeline.cores[0]):
        ring = timeline.costs[0].rings.get(at)
        row = placed.queue if ring is None else f"dma {ring.name}"
        rows.setdefault(row, []).append(placed.occupied)
    for row, spans in rows.items():
        spans.sort()
        for (_, end), (start, _) in pairwise(spans):
            assert start >= end - ROUNDING, row


@settings(deadline=None)
@given(steps=STEPS)
def test_two_copies_take_at_most_twice_as_long(
    random_trace: Callable[..., Trace], steps: Any
) -> None:
    once = _end(prepare(random_trace(steps)))
    twice = _end(prepare(random_trace(steps, copies=2)))
    # The second copy may have to load a function table that the first had left by then.
    machine = MACHINES["trn2"]
    constants = machine["scalar_table_load"] + machine["dma_interval"]
    assert once - ROUNDING <= twice <= 2 * once + constants + ROUNDING


def _end(program: Program) -> float:
    return program_order([program], MACHINES["trn2"]).end


@settings(deadline=None)
@given(steps=STEPS)
def test_throttling_only_slows(random_trace: Callable[..., Trace], steps: Any) -> None:
    program = prepare(random_trace(steps))
    free: Timeline = program_order([program], MACHINES["trn2"])
    gated = program_order([program], MACHINES["trn2"], throttle=True)
    assert gated.end >= free.end - ROUNDING
