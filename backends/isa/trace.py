"""The instruction trace: what the simulator writes and the cost model reads.

A trace belongs to one program (one core of an LNC pair). It names buffers once and every executed
instruction as a record whose accesses are byte boxes inside those buffers, so that hazards,
lifetimes and bank conflicts can be computed from the trace alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

Memory = Literal["sbuf", "psum", "hbm", "shared_hbm"]
Engine = Literal["tensor", "vector", "scalar", "gpsimd", "sync", "dma"]
Attribute = int | float | str | bool | None


@frozen
class Buffer:
    """One allocation. `bytes_per_partition` is the whole size for HBM buffers (one partition)."""

    id: int
    name: str
    memory: Memory
    shape: tuple[int, ...]
    dtype: str
    partitions: int
    bytes_per_partition: int
    line: int
    address: tuple[int, int] | None = None
    """Pinned (start partition, byte offset), when the kernel asked for one."""
    bank: int | None = None
    """First PSUM bank, when the simulator placed the buffer."""
    role: Literal["input", "output", "inout", "scratch", "constant"] = "scratch"


@frozen
class Access:
    """A box of bytes in one buffer: partitions [p0, p1) and bytes [b0, b1) of each partition.

    HBM buffers have one partition; `b0`, `b1` bound the accessed byte interval. `run_bytes` is the
    length of the contiguous runs the access is made of, `inner_stride_bytes` the distance between
    neighbouring elements of its innermost axis, `elements` the element count per partition (per
    access for HBM), `descriptors` the number of contiguous runs in all partitions together.
    """

    buffer: int
    p0: int
    p1: int
    b0: int
    b1: int
    dtype: str
    itemsize: int
    elements: int
    run_bytes: int
    inner_stride_bytes: int
    descriptors: int
    operand: str
    """The keyword of the instruction this access came from: `dst`, `data`, `stationary`, ..."""
    period_bytes: int = 0
    """All runs start at `b0` plus multiples of this; 0: one run, or any place in the box."""
    dynamic: bool = False
    """Whether the address is known only when the kernel runs; the box is then the whole buffer."""


@frozen
class Record:
    """One executed instruction."""

    index: int
    engine: Engine
    opcode: str
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    line: int
    """Line of the instruction call in the NKI source file."""
    file: str
    function: str
    name: str | None = None
    attributes: Mapping[str, Attribute] = field(factory=dict)
    """What timing depends on beyond the accesses: `op`, `op0`, `op1`, `accumulate`, `is_transpose`,
    `is_stationary_onezero`, `is_moving_onezero`, `perf_mode`, `dge_mode`, `queue` (issuing engine
    of a DMA), `indirect`, `reduce` (an accumulator is read out), `transpose`, `free`, `rows`."""
    depends_on: tuple[int, ...] = ()
    """Indices of records that must finish first, beyond the hazards (depends_on, no_reorder)."""
    barrier: int | None = None
    """Identity of a cross-core barrier or sendrecv this record takes part in."""


@frozen
class Trace:
    """All instructions of one program in program order, with the buffers they touch."""

    kernel: str
    target: str
    lnc: int
    program: int
    buffers: tuple[Buffer, ...]
    records: tuple[Record, ...]
    sbuf_bytes_per_partition: int
    """Largest number of bytes per partition alive at once, over the trace (lifetime based)."""
    psum_banks: int
    """Largest number of PSUM banks alive at once."""
