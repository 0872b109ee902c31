"""Small programs whose time can be computed by hand (trn2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from backends.cost.list_schedule import list_scheduled
from backends.cost.program import prepare
from backends.cost.timeline import Timeline, program_order
from backends.isa.machine import MACHINES

TRN2 = MACHINES["trn2"]
Builder = Callable[..., Any]


def run(*traces: Any, throttle: bool = False, **numbers: float) -> Timeline:
    programs = [prepare(trace.build()) for trace in traces]
    return program_order(programs, TRN2.replaced(numbers), throttle=throttle)


def starts(timeline: Timeline, core: int = 0) -> list[float]:
    return [placed.start for placed in timeline.cores[core]]


def test_a_result_reaches_another_engine_after_latency_and_hop(builder: Builder) -> None:
    trace = builder()
    a, b, c = (trace.tile("sbuf", (128, 512)) for _ in range(3))
    trace.vector("tensor_copy", b, {"src": a})
    trace.scalar(c, b, op="copy")
    vector = 256 / 0.96 + 165
    assert starts(run(trace)) == pytest.approx([0, vector + 30])
    assert run(trace).end == pytest.approx(vector + 30 + 512 / 1.2 + 270)


def test_independent_instructions_of_one_engine_follow_at_its_spacing(builder: Builder) -> None:
    trace = builder()
    for _ in range(3):
        dst, src = (trace.tile("sbuf", (128, 512)) for _ in range(2))
        trace.vector("tensor_copy", dst, {"src": src})
    spacing = (256 + 70) / 0.96
    assert starts(run(trace)) == pytest.approx([0, spacing, 2 * spacing])


def test_a_table_is_loaded_when_the_group_changes(builder: Builder) -> None:
    trace = builder()
    for op in ("exp", "exp", "copy", "silu", "exp"):
        dst, src = (trace.tile("sbuf", (128, 1)) for _ in range(2))
        trace.scalar(dst, src, op=op)
    timeline = run(trace)
    assert timeline.table_loads == (3,)
    one = 91 / 1.2
    assert starts(timeline) == pytest.approx(
        [0, 1280 + one, 1280 + 2 * one, 1280 + 3 * one, 2 * 1280 + 4 * one]
    )


def two_on_psum(builder: Builder, second_bank: int) -> list[float]:
    trace = builder()
    banks = [trace.tile("psum", (128, 512), address=(0, 2048 * n)) for n in range(2)]
    trace.vector("tensor_copy", trace.tile("sbuf", (128, 256)), {"src": banks[0].cut(0, 256)})
    trace.scalar(trace.tile("sbuf", (128, 256)), banks[second_bank].cut(256, 512), op="copy")
    return starts(run(trace))


def test_vector_and_scalar_share_a_bank_one_after_the_other(builder: Builder) -> None:
    assert two_on_psum(builder, 0) == pytest.approx([0, (256 + 90) / 0.96])
    assert two_on_psum(builder, 1) == [0, 0]


def test_the_clock_gate_doubles_sparse_matmuls_and_lets_dense_ones_run(builder: Builder) -> None:
    trace = builder()
    weights, data = (trace.tile("sbuf", (128, 512), "bfloat16") for _ in range(2))
    for n in range(40):
        bank = trace.tile("psum", (128, 512))
        trace.matmul(bank, weights.cut(0, 128), data, accumulate=bool(n % 2))
    placed = run(trace, throttle=True).cores[0]
    assert placed[0].busy == pytest.approx(2 * 520 / 2.4 + 32 / 2.4)
    assert placed[-1].busy == pytest.approx(520 / 2.4)


def test_loads_overtake_a_store_that_waits(builder: Builder) -> None:
    trace = builder()
    out, inp = trace.tile("hbm", (128, 512)), trace.tile("hbm", (128, 512))
    slow, tile = trace.tile("sbuf", (128, 4096)), trace.tile("sbuf", (128, 512))
    trace.vector("reciprocal", slow, {"data": slow})
    trace.dma(out, slow.cut(0, 512))
    trace.dma(tile, inp)
    placed = run(trace).cores[0]
    assert placed[2].start == 0
    assert placed[2].visible < placed[1].start


def test_one_ring_keeps_program_order(builder: Builder) -> None:
    trace = builder()
    out, inp = trace.tile("hbm", (128, 512)), trace.tile("hbm", (128, 512))
    slow, tile = trace.tile("sbuf", (128, 4096)), trace.tile("sbuf", (128, 512))
    trace.vector("reciprocal", slow, {"data": slow})
    trace.dma(out, slow.cut(0, 512))
    trace.dma(tile, inp)
    placed = run(trace, dma_rings=1).cores[0]
    assert placed[2].start >= placed[1].start


def test_reordering_hides_a_wait(builder: Builder) -> None:
    """VectorE waits for ScalarE in program order; the second copy could run meanwhile."""
    trace = builder()
    tiles = [trace.tile("sbuf", (128, 512)) for _ in range(6)]
    trace.scalar(tiles[1], tiles[0], op="copy")
    trace.vector("tensor_copy", tiles[2], {"src": tiles[1]})
    trace.vector("tensor_copy", tiles[4], {"src": tiles[3]})
    programs = [prepare(trace.build())]
    in_order, listed = program_order(programs, TRN2), list_scheduled(programs, TRN2)
    assert listed.end < in_order.end
    assert listed.cores[0][2].start == 0


def pair(builder: Builder, work: int) -> list[Any]:
    """Two cores that meet once; core 1 has more to do before."""
    traces = []
    for core in range(2):
        trace = builder(lnc=2, program=core)
        shared, tile = trace.tile("shared_hbm", (128, 64)), trace.tile("sbuf", (128, 512))
        for _ in range(1 + core * work):
            trace.add("gpsimd", "memset", {"dst": tile})
        trace.add("gpsimd", "core_barrier", {}, {"data": shared}, barrier=7)
        trace.dma(tile.cut(0, 64), shared)
        traces.append(trace)
    return traces


@pytest.mark.parametrize("scheduler", [program_order, list_scheduled])
def test_cores_meet_at_a_barrier(builder: Builder, scheduler: Callable[..., Timeline]) -> None:
    timeline = scheduler([prepare(trace.build()) for trace in pair(builder, 20)], TRN2)
    first, second = timeline.cores
    assert first[1].visible == second[-2].visible == second[-2].start + 1000
    assert first[2].start == pytest.approx(first[1].visible + 30)


def test_a_barrier_without_a_partner_is_an_error(builder: Builder) -> None:
    one, other = builder(lnc=2), builder(lnc=2, program=1)
    one.add("gpsimd", "core_barrier", {}, {}, barrier=1)
    other.add("gpsimd", "memset", {"dst": other.tile("sbuf", (128, 4))})
    with pytest.raises(ValueError, match="no partner"):
        run(one, other)


def test_an_exchange_takes_the_slower_core_and_the_transfer(builder: Builder) -> None:
    traces = []
    for core in range(2):
        trace = builder(lnc=2, program=core)
        src, dst = (trace.tile("sbuf", (128, 512)) for _ in range(2))
        for _ in range(1 + 4 * core):
            trace.add("gpsimd", "memset", {"dst": src})
        reads = {"src": src}
        trace.add("dma", "sendrecv", {"dst": dst}, reads, barrier=3, attributes={"queue": "sync"})
        traces.append(trace)
    first, second = run(*traces).cores
    assert first[-1].start == second[-1].start
    took = 60 + 800 + 128 * 2048 / 368 + 300
    assert first[-1].visible == pytest.approx(second[-1].start + took)
