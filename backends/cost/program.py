"""A trace prepared for timing: everything that does not depend on a machine's numbers."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from backends.cost.hazards import Edge, Kind, dependencies
from backends.cost.placement import Placement, place
from backends.cost.workload import Transfer, Workload, workload
from backends.isa.targets import PSUM_BANK_BYTES
from backends.isa.trace import Engine, Record, Trace

QUEUES: tuple[Engine, ...] = ("tensor", "vector", "scalar", "gpsimd", "sync")
"""In-order instruction streams of a core. Further queues trigger DMAs only (`rings.py`)."""


@frozen
class Program:
    """One core's instructions by position in the trace."""

    trace: Trace = field(repr=False)
    works: tuple[Workload, ...] = field(repr=False)
    """Distinct workloads."""
    work_of: tuple[int, ...] = field(repr=False)
    """Which of `works` each instruction is."""
    edges: tuple[tuple[Edge, ...], ...] = field(repr=False)
    deciding: tuple[tuple[Edge, ...], ...] = field(repr=False)
    """Those of `edges` that can count while every engine keeps program order."""
    banks: tuple[tuple[int, ...], ...] = field(repr=False)
    """PSUM banks that VectorE and ScalarE instructions touch."""
    placement: Placement = field(repr=False)

    @property
    def size(self) -> int:
        """Number of instructions."""
        return len(self.work_of)

    def transfers(self) -> list[Transfer]:
        """Every DMA, in program order."""
        works = (self.works[number] for number in self.work_of)
        return [work for work in works if isinstance(work, Transfer)]


def prepare(trace: Trace) -> Program:
    """Reduce a trace to distinct workloads, dependencies and banks."""
    buffers = {buffer.id: buffer for buffer in trace.buffers}
    placement = place(trace)
    numbers: dict[Workload, int] = {}
    work_of = tuple(
        numbers.setdefault(workload(record, buffers), len(numbers)) for record in trace.records
    )
    edges = dependencies(trace, placement)
    return Program(
        trace=trace,
        works=tuple(numbers),
        work_of=work_of,
        edges=edges,
        deciding=tuple(_deciding(held, trace.records) for held in edges),
        banks=tuple(_banks(record, placement) for record in trace.records),
        placement=placement,
    )


def _deciding(held: tuple[Edge, ...], records: Sequence[Record]) -> tuple[Edge, ...]:
    """Leave out each read that must be over when a later instruction of its engine is waited for.

    An engine lets go of its operands instruction by instruction; transfers overtake one another.
    """
    if len(held) == 1:
        return held
    last: dict[Engine, int] = {}
    for edge in held:
        engine = records[edge.producer].engine
        last[engine] = max(last.get(engine, -1), edge.producer)
    return tuple(
        edge
        for edge in held
        if edge.kind is not Kind.FREED
        or (engine := records[edge.producer].engine) == "dma"
        or last[engine] == edge.producer
    )


def _banks(record: Record, placement: Placement) -> tuple[int, ...]:
    if record.engine not in ("vector", "scalar"):
        return ()
    touched: set[int] = set()
    for access in (*record.reads, *record.writes):
        held = placement.banks.get(access.buffer)
        if held:
            first = access.b0 // PSUM_BANK_BYTES
            last = max(access.b1 - 1, access.b0) // PSUM_BANK_BYTES
            touched.update(held[first : last + 1])
    return tuple(sorted(touched))
