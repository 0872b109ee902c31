"""How long one instruction occupies its engine, and when its result can be used.

The formulas are those of an engine that starts an instruction, streams its elements and lets the
result through a pipeline: `busy = (streaming + adder) / clock`, `latency = streaming / clock +
result latency`. Transfers are timed in `dma.py`; what depends on the instruction before (function
tables, the clock gate) in `core.py`. Not modelled: matmuls on different row or column tiles of the
array, which can run at once, and transposes that trn3 overlaps with matmuls.
"""

from __future__ import annotations

from typing import assert_never

from attrs import frozen

from backends.cost.widths import streaming_cycles
from backends.cost.workload import Control, Product, Stream
from backends.isa.machine import Machine
from backends.isa.machine_engines import TABLE_GROUPS


@frozen
class Duration:
    """Nanoseconds from the start of an instruction, and cycles of its engine while it streams."""

    busy: float
    """Until the engine takes its next instruction."""
    latency: float
    """Until the result can be used."""
    cycles: float
    table: str | None = None
    """Function table that ScalarE must hold; None: any."""


def duration(work: Stream | Product | Control, machine: Machine) -> Duration:
    """Time one instruction on its engine."""
    match work:
        case Stream(engine="vector"):
            return _vector(work, machine)
        case Stream(engine="scalar"):
            return _scalar(work, machine)
        case Stream():
            return _gpsimd(work, machine)
        case Product():
            return _product(work, machine)
        case Control():
            # A register instruction costs its issue; a barrier's wait is added where cores meet.
            return Duration(machine["dma_issue"], machine["dma_issue"], 0.0)
        case _:
            assert_never(work)


def _vector(work: Stream, machine: Machine) -> Duration:
    clock = machine["vector_clock"]
    cycles = streaming_cycles(work, machine)
    adder = machine["vector_adder_psum_cycles" if work.psum else "vector_adder_cycles"]
    return Duration(
        busy=(cycles + adder) / clock,
        latency=cycles / clock + machine["vector_latency"],
        cycles=cycles,
    )


def _scalar(work: Stream, machine: Machine) -> Duration:
    clock = machine["scalar_clock"]
    cycles = streaming_cycles(work, machine)
    read = machine["scalar_accumulator_read"] if work.reads_accumulator else 0.0
    return Duration(
        busy=(cycles + machine["scalar_adder_cycles"]) / clock + read,
        latency=cycles / clock + machine["scalar_latency"] + read,
        cycles=cycles,
        table=TABLE_GROUPS.get(work.function),
    )


def _gpsimd(work: Stream, machine: Machine) -> Duration:
    cycles = streaming_cycles(work, machine)
    busy = (cycles + machine["gpsimd_adder_cycles"]) / machine["gpsimd_clock"]
    return Duration(busy=busy, latency=busy + machine["gpsimd_latency"], cycles=cycles)


def product_cycles(work: Product, machine: Machine) -> float:
    """Return the cycles a product occupies TensorE for, with the fixed part."""
    floor = machine["pe_min_cycles"]
    if work.transpose:
        passes = machine["pe_passes_transpose_fp32" if work.fp32 else "pe_passes"]
    elif work.fp32:
        passes = machine["pe_passes_onezero" if work.onezero else "pe_passes_fp32"]
    else:
        passes = machine["pe_passes"]
    issues = machine["pe_issues_fp32"] if work.fp32 and not work.transpose else 1.0
    columns = max(work.columns, min(floor, work.stationary))
    return max(floor, passes * columns) + machine["pe_adder_cycles"] * issues


def _product(work: Product, machine: Machine) -> Duration:
    cycles = product_cycles(work, machine)
    busy = cycles / machine["pe_clock"]
    return Duration(busy=busy, latency=busy + machine["pe_latency"], cycles=cycles)
