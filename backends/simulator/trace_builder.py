"""From a program's raw record to `backends.isa.trace.Trace`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from backends.isa.trace import Access, Buffer, Record, Trace
from backends.simulator import geometry
from backends.simulator.liveness import psum_peak, sbuf_peak
from backends.simulator.machine import Machine
from backends.simulator.memory import Allocation
from backends.simulator.record_template import RawAccess, RawRecord


def build_trace(machine: Machine, kernel: str) -> Trace:
    """Return everything the program did, in program order."""
    uses = machine.recorder.buffers
    return Trace(
        kernel=kernel,
        target=machine.target.name,
        lnc=machine.num_programs,
        program=machine.program_id,
        buffers=tuple(_buffer(number, use) for number, use in enumerate(uses)),
        records=tuple(
            _record(number, raw, uses, machine.recorder.edges.get(number, ()))
            for number, raw in enumerate(machine.recorder.records)
        ),
        sbuf_bytes_per_partition=sbuf_peak(uses).amount,
        psum_banks=psum_peak(uses).amount,
    )


def _buffer(number: int, use: Allocation) -> Buffer:
    form = use.form
    return Buffer(
        id=number,
        name=use.name,
        memory=form.region.value,
        shape=form.shape,
        dtype=form.dtype.name,
        partitions=form.partitions,
        bytes_per_partition=form.bytes_per_partition,
        line=use.location.line,
        address=use.address,
        role=use.role,
    )


def _record(
    number: int, raw: RawRecord, uses: Sequence[Allocation], after: Sequence[int]
) -> Record:
    file, line, function = raw.place
    return Record(
        index=number,
        engine=raw.engine,
        opcode=raw.opcode,
        reads=tuple(_access(access, uses) for access in raw.reads),
        writes=tuple(_access(access, uses) for access in raw.writes),
        line=line,
        file=file,
        function=function,
        name=raw.name,
        attributes=raw.attributes,
        depends_on=tuple(after),
        barrier=raw.barrier,
    )


def _access(raw: RawAccess, uses: Sequence[Allocation]) -> Access:
    use = uses[raw.buffer]
    first = 0 if use.address is None else use.address[0]
    layout = raw.layout
    itemsize = layout.dtype.bytes
    p0, p1, b0, b1, elements, run, inner, descriptors, period = _bytes(
        itemsize, layout.shape, layout.strides, raw.offset, layout.row // itemsize
    )
    if layout.moves is not None:
        b0, b1, period = 0, use.form.bytes_per_partition, 0
    return Access(
        buffer=raw.buffer,
        p0=p0 + first,
        p1=p1 + first,
        b0=b0,
        b1=b1,
        dtype=layout.dtype.name,
        itemsize=itemsize,
        elements=elements,
        run_bytes=run,
        inner_stride_bytes=inner,
        descriptors=descriptors,
        operand=raw.operand,
        period_bytes=period,
        dynamic=layout.moves is not None,
    )


@lru_cache(maxsize=65536)
def _bytes(
    itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, free: int
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """Return the numbers of an `Access` in its field order, operand left out; `free` 0 is HBM."""
    first = 1 if free else 0
    box = geometry.box(shape[first:], strides[first:])
    partitions = shape[0] if free else 1
    p0 = offset // free if free else 0
    # With a partition step (allowed by an option only) the box covers what lies between.
    step = max(1, strides[0] // free) if free else 1
    start = (offset % free if free else offset) + box.first
    return (
        p0,
        p0 + (partitions - 1) * step + 1,
        start * itemsize,
        (start + box.extent) * itemsize,
        box.elements,
        box.run * itemsize,
        box.inner_stride * itemsize,
        partitions * (box.elements // box.run),
        geometry.period(shape[first:], strides[first:], box.run) * itemsize,
    )
