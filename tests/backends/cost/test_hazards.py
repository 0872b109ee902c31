"""Who waits for whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve

from backends.cost.hazards import Edge, Kind, dependencies
from backends.cost.placement import place
from backends.cost.program import prepare
from backends.cost.timeline import program_order
from backends.isa.machine import MACHINES

Builder = Callable[..., Any]


def edges(trace: Any) -> list[set[Edge]]:
    built = trace.build()
    return [set(found) for found in dependencies(built, place(built))]


def test_a_reader_waits_for_the_writer(builder: Builder) -> None:
    trace = builder()
    a, b, c = (trace.tile("sbuf", (128, 64)) for _ in range(3))
    trace.vector("tensor_copy", b, {"src": a})
    trace.scalar(c, b, op="exp")
    assert edges(trace)[1] == {Edge(0, Kind.RESULT)}


def test_a_writer_waits_for_readers_since_the_last_write(builder: Builder) -> None:
    trace = builder()
    a, b, c = (trace.tile("sbuf", (128, 64)) for _ in range(3))
    trace.vector("tensor_copy", b, {"src": a})
    trace.scalar(c, b, op="exp")
    trace.vector("tensor_copy", b, {"src": a})
    trace.vector("tensor_copy", b, {"src": a})
    assert edges(trace)[2] == {Edge(0, Kind.RESULT), Edge(1, Kind.FREED)}
    assert edges(trace)[3] == {Edge(2, Kind.RESULT)}


def test_disjoint_columns_and_partitions_are_independent(builder: Builder) -> None:
    trace = builder()
    a = trace.tile("sbuf", (128, 64))
    for part in (a.cut(0, 32), a.cut(32, 64, p1=64), a.cut(32, 64, p0=64)):
        trace.add("vector", "memset", {"dst": part})
    assert edges(trace) == [set(), set(), set()]


def test_overlapping_parts_depend(builder: Builder) -> None:
    trace = builder()
    a, b = (trace.tile("sbuf", (128, 64)) for _ in range(2))
    trace.add("vector", "memset", {"dst": a.cut(0, 40)})
    trace.add("gpsimd", "memset", {"dst": a.cut(40, 64)})
    trace.vector("tensor_copy", b.cut(0, 16), {"src": a.cut(32, 48)})
    assert edges(trace)[2] == {Edge(0, Kind.RESULT), Edge(1, Kind.RESULT)}


def test_interleaved_columns_are_independent(builder: Builder) -> None:
    trace = builder()
    a = trace.tile("sbuf", (128, 64))
    even, odd = a.cut(0, 63, stride=2), a.cut(1, 64, stride=2)
    trace.add("vector", "memset", {"dst": even})
    trace.add("gpsimd", "memset", {"dst": odd})
    trace.add("scalar", "activation", {"dst": a.cut(5, 6)}, attributes={"op": "copy"})
    trace.add("vector", "memset", {"dst": a})
    found = edges(trace)
    assert found[1] == set()
    assert found[2] == {Edge(1, Kind.RESULT)}
    assert found[3] == {Edge(0, Kind.RESULT), Edge(1, Kind.RESULT), Edge(2, Kind.RESULT)}


def test_a_partial_write_keeps_the_rest_of_the_history(builder: Builder) -> None:
    trace = builder()
    a, b = (trace.tile("sbuf", (128, 64)) for _ in range(2))
    trace.add("vector", "memset", {"dst": a})
    trace.add("gpsimd", "memset", {"dst": a.cut(0, 32)})
    trace.scalar(b, a, op="copy")
    assert edges(trace)[2] == {Edge(0, Kind.RESULT), Edge(1, Kind.RESULT)}


def test_accumulating_matmuls_follow_without_waiting(builder: Builder) -> None:
    trace = builder()
    weights, data, out = (trace.tile("sbuf", (128, 128)) for _ in range(3))
    bank = trace.tile("psum", (128, 128))
    trace.matmul(bank, weights, data, accumulate=False)
    trace.matmul(bank, weights, data, accumulate=True)
    trace.vector("tensor_copy", out, {"src": bank})
    trace.matmul(bank, weights, data, accumulate=True)
    found = edges(trace)
    assert found[1] == {Edge(0, Kind.ACCUMULATE)}
    assert found[2] == {Edge(1, Kind.RESULT)}
    assert found[3] == {Edge(1, Kind.ACCUMULATE), Edge(2, Kind.FREED)}


def test_accumulating_onto_a_memset_waits_for_it(builder: Builder) -> None:
    trace = builder()
    weights, data = (trace.tile("sbuf", (128, 128)) for _ in range(2))
    bank = trace.tile("psum", (128, 128))
    trace.add("vector", "memset", {"dst": bank})
    trace.matmul(bank, weights, data, accumulate=True)
    assert edges(trace)[1] == {Edge(0, Kind.RESULT)}


def test_tiles_pinned_to_one_address_share_memory(builder: Builder) -> None:
    trace = builder()
    source = trace.tile("sbuf", (128, 64), address=(0, 4096))
    first = trace.tile("sbuf", (128, 64), address=(0, 0))
    second = trace.tile("sbuf", (64, 64), address=(64, 128))  # rows 64 to 128, columns 32 on
    apart = trace.tile("sbuf", (128, 64), address=(0, 384))
    for dst in (first, second, apart):
        trace.vector("tensor_copy", dst, {"src": source})
    assert edges(trace) == [set(), {Edge(0, Kind.RESULT)}, set()]


def test_the_ninth_psum_tile_waits_for_the_first(builder: Builder) -> None:
    trace = builder()
    weights = trace.tile("sbuf", (128, 128))
    out = trace.tile("sbuf", (128, 9 * 128))
    for n in range(9):
        bank = trace.tile("psum", (128, 128))
        trace.matmul(bank, weights, weights, accumulate=False)
        trace.vector("tensor_copy", out.cut(128 * n, 128 * n + 128), {"src": bank})
    found = edges(trace)
    assert found[14] == set()
    # The tile's writer and its reader: the new one takes its memory.
    assert found[16] == {Edge(0, Kind.FREED), Edge(1, Kind.FREED)}


def test_the_third_tile_of_a_bank_waits_for_the_second_alone(builder: Builder) -> None:
    """Whoever wrote the second waited for the first; no list of users grows along a bank."""
    trace = builder()
    weights, out = (trace.tile("sbuf", (128, 128)) for _ in range(2))
    for _ in range(17):
        bank = trace.tile("psum", (128, 128))
        trace.matmul(bank.cut(0, 64), weights, weights.cut(0, 64), accumulate=False)
        trace.vector("tensor_copy", out, {"src": bank})
    found = edges(trace)
    assert found[16] == {Edge(0, Kind.FREED), Edge(1, Kind.FREED)}
    assert found[32] == {Edge(16, Kind.FREED), Edge(17, Kind.FREED)}


def test_sbuf_is_reused_only_when_it_is_full(builder: Builder) -> None:
    trace = builder()
    hbm = trace.tile("hbm", (128, 20_000))
    out = trace.tile("sbuf", (128, 1))
    for _ in range(4):  # 80,000 bytes per partition each; two fit beside `out`
        tile = trace.tile("sbuf", (128, 20_000))
        trace.dma(tile, hbm)
        trace.vector("tensor_copy", out, {"src": tile.cut(0, 1)})
    found = edges(trace)
    assert found[2] == set()
    assert {edge.producer for edge in found[4]} == {0, 1}
    # The third took the first's memory and some of the second's; the fourth the rest and more.
    assert {edge.producer for edge in found[6]} <= {0, 1, 2, 3}


def test_stated_dependencies(builder: Builder) -> None:
    trace = builder()
    a, b = (trace.tile("sbuf", (128, 64)) for _ in range(2))
    trace.add("vector", "memset", {"dst": a})
    trace.add("gpsimd", "memset", {"dst": b}, depends_on=(0,))
    assert edges(trace)[1] == {Edge(0, Kind.RESULT)}


def test_a_barrier_stands_for_the_partners_writes(builder: Builder) -> None:
    trace = builder(lnc=2)
    shared, tile = trace.tile("shared_hbm", (128, 64)), trace.tile("sbuf", (128, 64))
    trace.dma(shared, tile)
    trace.add("gpsimd", "core_barrier", {}, {"data": shared}, barrier=1)
    trace.dma(tile, shared)
    found = edges(trace)
    assert found[1] == {Edge(0, Kind.RESULT)}
    assert Edge(1, Kind.RESULT) in found[2]


def test_places_known_at_run_time_may_or_may_not_meet(builder: Builder) -> None:
    """Slots of a pool: an order that is not certain among them, a certain one with the rest."""
    trace = builder()
    pool = trace.tile("hbm", (1, 512))
    slot = evolve(pool, dynamic=True)
    old, new, other = (trace.tile("sbuf", (128, 4)) for _ in range(3))
    trace.dma(old, slot)
    trace.dma(slot, new)
    trace.dma(slot, new)
    trace.dma(other, pool.cut(0, 8))
    assert edges(trace) == [
        set(),
        {Edge(0, Kind.FREED, certain=False)},
        {Edge(0, Kind.FREED, certain=False), Edge(1, Kind.RESULT, certain=False)},
        {Edge(1, Kind.RESULT), Edge(2, Kind.RESULT)},
    ]


def test_a_machine_says_whether_the_uncertain_order_counts(builder: Builder) -> None:
    trace = builder()
    slot = evolve(trace.tile("hbm", (1, 1 << 11)), dynamic=True)
    tiles = [trace.tile("sbuf", (128, 16)) for _ in range(2)]
    trace.dma(slot, tiles[0])
    trace.dma(tiles[1], slot)
    program = prepare(trace.build())
    free, ordered = (
        program_order([program], MACHINES["trn2"].replaced({"dma_unknown_ordered": flag})).end
        for flag in (0, 1)
    )
    assert ordered > 1.5 * free
