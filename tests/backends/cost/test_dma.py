"""Data time of transfers, and of one isolated transfer from trigger to use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from backends.cost.dma import data_time
from backends.cost.program import prepare
from backends.cost.timeline import program_order
from backends.cost.workload import Transfer, TransferKind
from backends.isa.machine import MACHINES

TRN2 = MACHINES["trn2"]
Builder = Callable[..., Any]


def load(partitions: int | None, per_partition: int, run: int | None = None) -> Transfer:
    size = (partitions or 1) * per_partition
    return Transfer(
        kind="copy",
        bytes=size,
        hbm_bytes=size if partitions else 2 * size,
        run_bytes=run or per_partition,
        partitions=partitions,
        queue=None,
        mode="unknown",
    )


def test_a_full_tile_uses_every_engine() -> None:
    assert data_time(load(128, 2048), TRN2, 1).alone == pytest.approx(128 * 2048 / 368)


def test_one_engine_moves_23_bytes_per_ns() -> None:
    """DMA overview, example 1: 32 KiB on 4 partitions in 1,416 ns."""
    found = data_time(load(4, 8192), TRN2, 1)
    assert found.alone == pytest.approx(1416, rel=0.01)
    assert found.share == pytest.approx(found.alone / 16)


def test_eight_runs_of_256_bytes() -> None:
    """DMA overview, example 2: 97 ns per engine."""
    assert data_time(load(128, 256), TRN2, 1).alone == pytest.approx(97, rel=0.1)


def test_tiny_runs_cost_a_floor_each() -> None:
    """Performance guide: a 4-byte element takes about 7 ns."""
    assert data_time(load(128, 128, run=4), TRN2, 1).alone == 8 * 32 * 7


def test_the_number_of_a_slot_is_not_part_of_the_transfer(builder: Builder) -> None:
    """It lies beside the data as 4 bytes; runs are those of the data."""
    trace = builder()
    pool, tile = trace.tile("hbm", (1, 1 << 16)), trace.tile("sbuf", (128, 512))
    slots = trace.tile("sbuf", (1, 1), dtype="int32")
    trace.add("dma", "dma_copy", {"dst": tile}, {"src": pool, "index": slots})
    (work,) = prepare(trace.build()).transfers()
    assert work.run_bytes == 2048


def test_transposes_and_sums_are_slower() -> None:
    plain = data_time(load(128, 512), TRN2, 1).alone
    fractions: dict[TransferKind, float] = {
        "transpose_hbm": 0.9,
        "transpose_sbuf": 0.5,
        "compute": 0.5,
    }
    for kind, fraction in fractions.items():
        work = evolve(load(128, 512), kind=kind)
        assert data_time(work, TRN2, 1).alone == pytest.approx(plain / fraction)


def test_between_two_hbm_places_the_packet_is_the_run() -> None:
    assert data_time(load(None, 1 << 20), TRN2, 1).alone == pytest.approx((1 << 20) / 368)
    assert data_time(load(None, 64), TRN2, 1).alone == 7


def test_two_cores_share_the_stack() -> None:
    alone, shared = (data_time(load(128, 4096), TRN2, cores).share for cores in (1, 2))
    assert alone == pytest.approx(128 * 4096 / 368)
    assert shared == pytest.approx(2 * 128 * 4096 / 725)


def test_gpsimd_has_its_own_engine() -> None:
    found = data_time(evolve(load(128, 512), kind="gpsimd"), TRN2, 2)
    assert found.lead + found.alone == pytest.approx(500 + 65536 / 153)
    assert found.share == 0


def end(trace: Any) -> float:
    return program_order([prepare(trace.build())], TRN2).end


def tile_load(trace: Any, columns: int, **attributes: Any) -> None:
    """A load of whole rows, as the simulator would record it: runs of one row."""
    hbm, sbuf = trace.tile("hbm", (128, columns)), trace.tile("sbuf", (128, columns))
    index = trace.dma(sbuf, hbm, **attributes)
    record = trace.records[index]
    source = evolve(record.reads[0], run_bytes=columns * 4)
    trace.records[index] = evolve(record, reads=(source,))


def test_an_isolated_load(builder: Builder) -> None:
    """Issue 60, start 800, 2 KiB per partition, 300 until a consumer may start: 1.87 us."""
    trace = builder()
    tile_load(trace, 512)
    assert end(trace) == pytest.approx(60 + 800 + 128 * 2048 / 368 + 300)


@pytest.mark.parametrize(
    ("columns", "fraction"),
    [(32, 0.05), (64, 0.103), (128, 0.206), (256, 0.423), (512, 0.813), (1024, 0.966)],
)
def test_a_ring_reaches_the_measured_share_of_bandwidth(
    builder: Builder, columns: int, fraction: float
) -> None:
    """DMA overview, figure 1, by bytes per partition; the model may be 45 percent optimistic.

    The figure's floor is about 870 ns per transfer, the vendor's own profiles show 500.
    """
    trace = builder()
    count = 200
    for _ in range(count):
        tile_load(trace, columns, queue="sync")
    reached = count * 128 * columns * 4 / end(trace) / 368
    assert fraction * 0.95 <= reached <= fraction * 1.8


def test_one_element_a_row_takes_half_a_microsecond(builder: Builder) -> None:
    """CS149: 25,600 iterations of three one-row transfers in 37.3 ms, 486 ns each on one ring."""
    trace = builder()
    hbm, sbuf = trace.tile("hbm", (1, 4096)), trace.tile("sbuf", (1, 4096))
    count = 1000
    for n in range(count):
        trace.dma(sbuf.cut(n, n + 1), hbm.cut(n, n + 1), queue="sync")
    assert end(trace) / count == pytest.approx(486, rel=0.05)


def test_software_descriptors_hold_gpsimd(builder: Builder) -> None:
    """Kernel optimisation tutorial, v2: a trigger every 0.6 us."""
    trace = builder()
    for _ in range(100):
        tile_load(trace, 128, dge_mode="swdge")
    assert end(trace) / 100 == pytest.approx(600, rel=0.05)


def test_engines_named_by_the_kernel_feed_their_own_rings(builder: Builder) -> None:
    one, two = builder(), builder()
    for n in range(100):
        tile_load(one, 64, queue="sync")
        tile_load(two, 64, queue=("sync", "scalar")[n % 2])
    assert end(two) == pytest.approx(end(one) / 2, rel=0.05)


def test_rings_share_the_engines(builder: Builder) -> None:
    one, two = builder(), builder()
    for n in range(100):
        tile_load(one, 4096, queue="sync")
        tile_load(two, 4096, queue=("sync", "scalar")[n % 2])
    assert end(two) == pytest.approx(end(one), rel=0.02)
