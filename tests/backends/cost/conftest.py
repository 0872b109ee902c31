"""Traces built by hand, one instruction a line."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import pytest
from attrs import define, field

from backends.isa.trace import Access, Attribute, Buffer, Engine, Memory, Record, Trace

_BYTES = {"float32": 4, "int32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3": 1}


@define
class Tile:
    """Columns [c0, c1) of a buffer's partitions [p0, p1); `stride` elements apart."""

    buffer: Buffer
    p0: int
    p1: int
    c0: int
    c1: int
    stride: int = 1
    dynamic: bool = False
    """Whether the place is known only when the kernel runs."""

    def cut(self, c0: int, c1: int, p0: int = 0, p1: int | None = None, stride: int = 1) -> Tile:
        """Return a part, in elements of the buffer."""
        return Tile(self.buffer, p0, self.p1 if p1 is None else p1, c0, c1, stride)


@define
class TraceBuilder:
    """Adds buffers and instructions in program order."""

    target: str = "trn2"
    lnc: int = 1
    program: int = 0
    buffers: list[Buffer] = field(factory=list)
    records: list[Record] = field(factory=list)

    def tile(
        self,
        memory: Memory,
        shape: tuple[int, ...],
        dtype: str = "float32",
        role: str = "scratch",
        address: tuple[int, int] | None = None,
    ) -> Tile:
        """Allocate a buffer and return all of it."""
        onchip = memory in ("sbuf", "psum")
        partitions = shape[0] if onchip else 1
        elements = prod(shape) // partitions
        buffer = Buffer(
            id=len(self.buffers),
            name=f"b{len(self.buffers)}",
            memory=memory,
            shape=shape,
            dtype=dtype,
            partitions=partitions,
            bytes_per_partition=elements * _BYTES[dtype],
            line=1,
            address=address,
            role=role,  # type: ignore[arg-type]
        )
        self.buffers.append(buffer)
        return Tile(buffer, 0, partitions, 0, elements)

    def add(
        self,
        engine: Engine,
        opcode: str,
        writes: dict[str, Tile],
        reads: dict[str, Tile] | None = None,
        *,
        line: int = 1,
        barrier: int | None = None,
        depends_on: tuple[int, ...] = (),
        attributes: dict[str, Attribute] | None = None,
    ) -> int:
        """Append an instruction; return its index."""
        self.records.append(
            Record(
                index=len(self.records),
                engine=engine,
                opcode=opcode,
                reads=tuple(_access(tile, name) for name, tile in (reads or {}).items()),
                writes=tuple(_access(tile, name) for name, tile in writes.items()),
                line=line,
                file="kernel.py",
                function="kernel",
                attributes=attributes or {},
                barrier=barrier,
                depends_on=depends_on,
            )
        )
        return len(self.records) - 1

    def dma(self, dst: Tile, src: Tile, opcode: str = "dma_copy", **attributes: Attribute) -> int:
        """Append a transfer."""
        return self.add("dma", opcode, {"dst": dst}, {"src": src}, attributes=attributes)

    def matmul(self, dst: Tile, stationary: Tile, moving: Tile, **attributes: Attribute) -> int:
        """Append a matmul."""
        reads = {"stationary": stationary, "moving": moving}
        return self.add("tensor", "nc_matmul", {"dst": dst}, reads, attributes=attributes)

    def vector(
        self, opcode: str, dst: Tile, reads: dict[str, Tile], **attributes: Attribute
    ) -> int:
        """Append a VectorE instruction."""
        return self.add("vector", opcode, {"dst": dst}, reads, attributes=attributes)

    def scalar(self, dst: Tile, data: Tile, **attributes: Attribute) -> int:
        """Append an activation."""
        return self.add("scalar", "activation", {"dst": dst}, {"data": data}, attributes=attributes)

    def build(self) -> Trace:
        """Return the trace."""
        return Trace(
            kernel="kernel",
            target=self.target,
            lnc=self.lnc,
            program=self.program,
            buffers=tuple(self.buffers),
            records=tuple(self.records),
            sbuf_bytes_per_partition=0,
            psum_banks=0,
        )


def _access(tile: Tile, operand: str) -> Access:
    size = _BYTES[tile.buffer.dtype]
    columns = tile.c1 - tile.c0
    elements = -(-columns // tile.stride)
    partitions = tile.p1 - tile.p0
    dense = tile.stride == 1
    # As the simulator records them, partitions of pinned tiles are the machine's.
    first = tile.buffer.address[0] if tile.buffer.address else 0
    return Access(
        buffer=tile.buffer.id,
        p0=tile.p0 + first,
        p1=tile.p1 + first,
        b0=tile.c0 * size,
        b1=tile.c1 * size,
        dtype=tile.buffer.dtype,
        itemsize=size,
        elements=elements,
        run_bytes=columns * size if dense else size,
        inner_stride_bytes=size * tile.stride if elements > 1 else size,
        descriptors=partitions * (1 if dense else elements),
        operand=operand,
        period_bytes=0 if dense else size * tile.stride,
        dynamic=tile.dynamic,
    )


@pytest.fixture(scope="session")
def builder() -> Callable[..., TraceBuilder]:
    """Return the class, to build as many traces as a test needs."""
    return TraceBuilder


Step = tuple[int, int, int, int, int]
"""Kind of instruction, three operands, a quarter of the columns; any small numbers."""


@pytest.fixture(scope="session")
def random_trace() -> Callable[..., Trace]:
    """Return a function from a list of steps to a trace that mixes engines, memories and DMAs."""

    def build(steps: list[Step], copies: int = 1, target: str = "trn2", program: int = 0) -> Trace:
        trace = TraceBuilder(target=target, program=program)
        for _ in range(copies):
            _add_random(trace, steps)
        return trace.build()

    return build


def _add_random(trace: TraceBuilder, steps: list[Step]) -> None:
    sbuf = [trace.tile("sbuf", (128, 512)) for _ in range(4)]
    narrow = [trace.tile("sbuf", (128, 512), "bfloat16") for _ in range(2)]
    psum = [trace.tile("psum", (128, 512)) for _ in range(3)]
    hbm = [trace.tile("hbm", (128, 512), role="inout") for _ in range(2)]
    for kind, one, two, three, quarter in steps:
        c0 = 128 * (quarter % 4)
        a, b, c = (sbuf[n % len(sbuf)].cut(c0, c0 + 128) for n in (one, two, three))
        p = psum[one % len(psum)].cut(c0, c0 + 128)
        n0, n1 = (narrow[n % len(narrow)].cut(c0, c0 + 128) for n in (one, two))
        h = hbm[three % len(hbm)]
        match kind % 9:
            case 0:
                trace.dma(sbuf[one % len(sbuf)], h, queue=("sync", "scalar", None)[two % 3])
            case 1:
                trace.dma(h, sbuf[two % len(sbuf)])
            case 2:
                trace.matmul(p, b, c, accumulate=bool(two % 2))
            case 3:
                trace.matmul(p, n0, n1, accumulate=False)
            case 4:
                trace.vector("tensor_tensor", a, {"data1": p, "data2": c}, op="add")
            case 5:
                trace.vector("tensor_copy", n0, {"src": b})
            case 6:
                trace.scalar(a, p, op=("exp", "silu", "copy")[three % 3])
            case 7:
                reads = {"data1": b, "data2": c}
                trace.add("gpsimd", "tensor_tensor", {"dst": a}, reads, attributes={"op": "add"})
            case _:
                trace.dma(sbuf[one % len(sbuf)].cut(0, 256), h.cut(0, 128 * 256), dge_mode="swdge")
