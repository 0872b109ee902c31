"""Durations of single instructions against published spacings and events (trn2 unless said)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from backends.cost.durations import Duration, duration
from backends.cost.workload import Product, Transfer, workload
from backends.isa.machine import MACHINES

Builder = Callable[..., Any]


def timed(builder: Any, target: str = "trn2") -> Duration:
    trace = builder.build()
    work = workload(trace.records[-1], {buffer.id: buffer for buffer in trace.buffers})
    assert not isinstance(work, Transfer)
    return duration(work, MACHINES[target])


def matmul(builder: Builder, dtype: str, m: int, n: int, **attributes: Any) -> Any:
    trace = builder()
    operands = (trace.tile("sbuf", (128, m), dtype), trace.tile("sbuf", (128, n), dtype))
    trace.matmul(trace.tile("psum", (m, n)), *operands, **attributes)
    return trace


@pytest.mark.parametrize(
    ("dtype", "n", "ns", "within"),
    [
        ("float32", 512, 2 * 429.2, 0.005),  # kernel-optimization tutorial: two MATMULs
        ("float32", 456, 2 * 384.5, 0.005),  # KDA transpose_matmul, raw counter
        ("bfloat16", 456, 193.3, 0.005),
    ],
)
def test_matmul_spacing(builder: Builder, dtype: str, n: int, ns: float, within: float) -> None:
    assert timed(matmul(builder, dtype, 128, n)).busy == pytest.approx(ns, rel=within)


def test_a_small_matmul_costs_the_floor(builder: Builder) -> None:
    small, tiny = (timed(matmul(builder, "bfloat16", 64, n)) for n in (64, 1))
    assert small.cycles == tiny.cycles == 64 + 8


def test_the_stationary_width_counts_below_the_floor_only(builder: Builder) -> None:
    wide, narrow = (timed(matmul(builder, "float32", m, 1)) for m in (128, 16))
    assert wide.cycles == 4 * 64 + 16
    assert narrow.cycles == 64 + 16


def test_zeros_and_ones_halve_an_fp32_matmul(builder: Builder) -> None:
    plain = timed(matmul(builder, "float32", 128, 512))
    flagged = timed(matmul(builder, "float32", 128, 512, is_stationary_onezero=True))
    assert flagged.cycles == 2 * 512 + 16
    assert flagged.busy == pytest.approx(420, rel=0.05)  # rmsnorm_quant profile
    assert plain.cycles == 4 * 512 + 16


def test_double_rows_count_columns_once(builder: Builder) -> None:
    trace = builder()
    tiles = [trace.tile("sbuf", (128, 2 * n), "float8_e4m3") for n in (128, 512)]
    trace.matmul(trace.tile("psum", (128, 512)), *tiles, perf_mode="double_row")
    assert timed(trace).cycles == 512 + 8


def test_fp32_transpose(builder: Builder) -> None:
    """KDA rmsnorm_matmul: 264 cycles for 128 by 128."""
    trace = builder()
    data, dst = trace.tile("sbuf", (128, 128)), trace.tile("psum", (128, 128))
    trace.add("tensor", "nc_transpose", {"dst": dst}, {"data": data})
    assert timed(trace).cycles == 2 * 128 + 8


def test_mx_is_timed_like_bf16(builder: Builder) -> None:
    work = Product(columns=512, stationary=128, fp32=False, onezero=False, transpose=False)
    assert duration(work, MACHINES["trn3"]).cycles == 520


@pytest.mark.parametrize(
    ("opcode", "inputs", "memory", "spacing", "event"),
    [
        ("tensor_tensor", 2, "psum", 605, 687),
        ("tensor_copy", 1, "sbuf", 343, 420),
    ],
)
def test_vector_events_of_the_matmul_tutorial(
    builder: Builder, opcode: str, inputs: int, memory: str, spacing: float, event: float
) -> None:
    trace = builder()
    tiles = {"data1": trace.tile(memory, (128, 512))}
    if inputs == 2:
        tiles["data2"] = trace.tile("sbuf", (128, 512))
    trace.vector(opcode, trace.tile("sbuf", (128, 512)), tiles, op="add")
    found = timed(trace)
    assert found.busy == pytest.approx(spacing, rel=0.05)
    assert found.latency == pytest.approx(event, rel=0.05)


def activation(builder: Builder, elements: int, **attributes: Any) -> Any:
    trace = builder()
    dst, data = (trace.tile("sbuf", (128, elements)) for _ in range(2))
    trace.scalar(dst, data, op="exp", **attributes)
    return trace


@pytest.mark.parametrize(
    ("elements", "ns", "within"),
    [(4096, 3710, 0.02), (128, 400, 0.10), (16_384, 13_902, 0.01)],
)
def test_activation_events(builder: Builder, elements: int, ns: float, within: float) -> None:
    """DMA overview examples 1 and 2, rmsnorm_quant."""
    assert timed(activation(builder, elements)).latency == pytest.approx(ns, rel=within)


def test_dependent_activations_on_trn1(builder: Builder) -> None:
    """Performance guide: one-element instructions, 189 ns apart."""
    assert timed(activation(builder, 1), "trn1").latency == pytest.approx(189, rel=0.01)


def test_reading_the_accumulator_is_extra(builder: Builder) -> None:
    plain = timed(activation(builder, 128))
    reduced = timed(activation(builder, 128, reduce=True))
    assert reduced.busy - plain.busy == pytest.approx(256)
    assert reduced.latency - plain.latency == pytest.approx(256)


def test_copies_need_no_table(builder: Builder) -> None:
    trace = activation(builder, 8)
    assert timed(trace).table == "exp"
    dst, data = (trace.tile("sbuf", (128, 8)) for _ in range(2))
    trace.scalar(dst, data, op="copy")
    assert timed(trace).table is None


def test_gpsimd(builder: Builder) -> None:
    trace = builder()
    trace.add("gpsimd", "iota", {"dst": trace.tile("sbuf", (128, 90), "int32")})
    assert timed(trace).busy == pytest.approx((150 + 90) / 1.2)


def test_control_costs_its_issue(builder: Builder) -> None:
    trace = builder()
    trace.add("sync", "register_move", {})
    assert timed(trace).busy == MACHINES["trn2"]["dma_issue"]
