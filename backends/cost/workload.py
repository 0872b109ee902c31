"""What one instruction asks of a machine: its record reduced to what timing depends on.

No number of a machine is used here; `durations.py` and `dma.py` turn a workload into time. Equal
instructions give equal workloads, so that each is timed once however often it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from backends.isa.trace import Access, Buffer, Engine, Record


@frozen
class Stream:
    """An instruction that streams elements through VectorE, ScalarE or GpSimdE."""

    engine: Engine
    opcode: str
    operators: tuple[str, ...]
    elements: int
    """Elements per partition."""
    dtypes: frozenset[str]
    """Of the operands that are streamed ((P, 1) operands are not)."""
    all_dtypes: frozenset[str]
    contiguous: bool
    """Every streamed operand's neighbours are neighbours in memory."""
    stride_bytes: int
    """Largest innermost stride of a streamed operand."""
    psum_streamed: bool
    psum: bool
    """Whether any operand at all lives in PSUM."""
    reads_accumulator: bool
    dynamic: bool
    """Whether an address comes from a register."""
    inputs: int
    """Streamed operands that are read."""
    function: str
    """Activation function, or empty."""
    constant: float | None
    """Value a memset writes."""
    candidates: int
    """Elements that topk looks at, per group of partitions."""


@frozen
class Product:
    """A matmul or a transpose on TensorE."""

    columns: int
    """Columns of the moving operand (partitions of the data, for a transpose)."""
    stationary: int
    """Columns of the stationary operand (free size of the data, for a transpose)."""
    fp32: bool
    onezero: bool
    transpose: bool


TransferKind = Literal["copy", "transpose_hbm", "transpose_sbuf", "compute", "gpsimd"]


@frozen
class Transfer:
    """A DMA, cut into contiguous runs common to both sides."""

    kind: TransferKind
    bytes: int
    hbm_bytes: int
    """Bytes that cross the HBM interface, both ways together."""
    run_bytes: int
    partitions: int | None
    """Partitions of the SBUF side; None between two HBM places."""
    queue: str | None
    """Issuing engine the kernel asked for."""
    mode: str
    """How descriptors are made: `none`, `hwdge`, `swdge`, or `unknown`: the compiler chooses."""


@frozen
class Control:
    """An instruction that only orders others: registers, barriers."""

    engine: Engine
    opcode: str


Workload = Stream | Product | Transfer | Control

_CONTROL = frozenset(
    {"core_barrier", "register_alloc", "register_move", "register_load", "register_store"}
)
_SLOTS = ("op", "op0", "op1")
_ONCHIP = ("sbuf", "psum")


def workload(record: Record, buffers: Mapping[int, Buffer]) -> Workload:
    """Reduce a record. `buffers` are the trace's, by id."""
    if record.opcode in _CONTROL:
        return Control(record.engine, record.opcode)
    if record.engine == "dma":
        return _transfer(record, buffers)
    if record.engine == "tensor":
        return _product(record)
    return _stream(record, buffers)


def _stream(record: Record, buffers: Mapping[int, Buffer]) -> Stream:
    accesses = (*record.reads, *record.writes)
    elements = max((access.elements for access in accesses), default=1)
    streamed = [access for access in accesses if access.elements > 1 or elements == 1]
    attributes = record.attributes
    value = attributes.get("value")
    return Stream(
        engine=record.engine,
        opcode=record.opcode,
        operators=tuple(str(attributes[slot]) for slot in _SLOTS if attributes.get(slot)),
        elements=elements,
        dtypes=frozenset(access.dtype for access in streamed),
        all_dtypes=frozenset(access.dtype for access in accesses),
        contiguous=all(_is_contiguous(access) for access in streamed),
        stride_bytes=max((access.inner_stride_bytes for access in streamed), default=0),
        psum_streamed=any(buffers[access.buffer].memory == "psum" for access in streamed),
        psum=any(buffers[access.buffer].memory == "psum" for access in accesses),
        reads_accumulator=bool(attributes.get("reduce")),
        dynamic=bool(attributes.get("dynamic")),
        inputs=sum(1 for access in record.reads if access.elements > 1 or elements == 1),
        function=str(attributes.get("op") or "") if record.opcode.startswith("activ") else "",
        constant=float(value) if isinstance(value, int | float) else None,
        candidates=int(attributes.get("n") or 0),
    )


def _is_contiguous(access: Access) -> bool:
    return access.elements == 1 or access.inner_stride_bytes == access.itemsize


def _product(record: Record) -> Product:
    operands = {access.operand: access for access in (*record.reads, *record.writes)}
    if record.opcode == "nc_transpose":
        data = operands["data"]
        return Product(
            columns=data.p1 - data.p0,
            stationary=data.elements,
            fp32=data.itemsize == 4,
            onezero=False,
            transpose=True,
        )
    attributes = record.attributes
    moving, stationary = operands["moving"], operands["stationary"]
    # Double rows: the leading free axis of two is contraction, not columns.
    rows = 2 if attributes.get("perf_mode") == "double_row" else 1
    return Product(
        columns=moving.elements // rows,
        stationary=stationary.elements // rows,
        fp32="float32" in (moving.dtype, stationary.dtype),
        onezero=bool(
            attributes.get("is_stationary_onezero") or attributes.get("is_moving_onezero")
        ),
        transpose=bool(attributes.get("is_transpose")),
    )


def _transfer(record: Record, buffers: Mapping[int, Buffer]) -> Transfer:
    reads = [
        access for access in record.reads if access.operand not in ("index", "indices", "offset")
    ]
    sides = (*reads, *record.writes)
    onchip = [access for access in sides if buffers[access.buffer].memory in _ONCHIP]
    sizes = [_bytes(access, access in onchip) for access in sides]
    # A transposing transfer moves whole rows; its short runs on one side are not descriptors.
    common = max if record.opcode == "dma_transpose" else min
    run = common((access.run_bytes for access in sides), default=1)
    from_sbuf = any(buffers[access.buffer].memory in _ONCHIP for access in reads)
    attributes = record.attributes
    return Transfer(
        kind=_transfer_kind(record, from_sbuf),
        bytes=max(sizes, default=0),
        hbm_bytes=sum(
            size for access, size in zip(sides, sizes, strict=True) if access not in onchip
        ),
        run_bytes=max(run, 1),
        partitions=max((access.p1 - access.p0 for access in onchip), default=0) or None,
        queue=_queue(attributes.get("queue")),
        mode="swdge" if attributes.get("indirect") else str(attributes.get("dge_mode", "unknown")),
    )


def _bytes(access: Access, onchip: bool) -> int:
    """Bytes of one side, all partitions together."""
    per_partition = access.elements * access.itemsize
    return per_partition * (access.p1 - access.p0) if onchip else per_partition


def _transfer_kind(record: Record, from_sbuf: bool) -> TransferKind:
    if record.attributes.get("dma_engine") == "gpsimd_dma":
        return "gpsimd"
    if record.opcode == "dma_transpose":
        return "transpose_sbuf" if from_sbuf else "transpose_hbm"
    return "compute" if record.opcode == "dma_compute" else "copy"


def _queue(value: object) -> str | None:
    return value if isinstance(value, str) and value not in ("", "unknown", "dma") else None
