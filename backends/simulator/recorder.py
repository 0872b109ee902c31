"""What a program did, as it happens: instructions, and when each storage was born and last used.

Recording is on the hot path of shape-only runs, so an instruction is kept as raw layouts; the
`Trace` of `backends.isa.trace` is made from them once, by `trace_builder.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from attrs import define, field

from backends.isa.trace import Attribute, Engine
from backends.simulator.faults import Fault
from backends.simulator.location import Location, here
from backends.simulator.memory import Storage

if TYPE_CHECKING:
    from backends.simulator.tensor import NkiTensor

Operand = tuple[str, "NkiTensor"]


class RawAccess(NamedTuple):
    """One operand's layout; offsets and strides in elements."""

    operand: str
    buffer: int
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    moving: bool
    """Whether a run-time index moves it."""


@define(eq=False)
class RawRecord:
    """One executed instruction."""

    engine: Engine
    opcode: str
    reads: tuple[RawAccess, ...]
    writes: tuple[RawAccess, ...]
    place: Location
    name: str | None
    attributes: Mapping[str, Attribute]
    depends_on: list[int]
    barrier: int | None
    loop: tuple[int, ...]
    """The device-loop iterations around it, outermost first."""


@define(eq=False)
class BufferUse:
    """A storage of this program: the index of the next record at its birth, its last record."""

    storage: Storage
    born: int
    loop: tuple[int, ...] = ()
    """The device-loop iterations around its allocation."""
    last: int = -1
    """-1: never accessed."""


class NkiInstruction:
    """The handle that every instruction call returns."""

    __slots__ = ("_recorder", "index")

    def __init__(self, recorder: Recorder, index: int) -> None:
        self._recorder = recorder
        self.index = index

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Make the machine finish `producers` first. Returns self; raises Fault S112."""
        for producer in producers:
            if not isinstance(producer, NkiInstruction):
                raise Fault(
                    "S112",
                    f"`depends_on` takes instruction handles, not `{type(producer).__name__}`",
                )
            if producer.index >= self.index:
                raise Fault("S112", "an instruction cannot wait for one that comes after it")
            records = self._recorder.records
            consumer, inner = records[self.index], records[producer.index].loop
            if consumer.loop[: len(inner)] != inner:
                raise Fault("S112", "an ordering edge cannot lead out of a device loop")
            consumer.depends_on.append(producer.index)
        return self


@define(eq=False)
class Recorder:
    """The instructions and storages of one program so far."""

    records: list[RawRecord] = field(factory=list)
    buffers: list[BufferUse] = field(factory=list)
    _index: dict[int, int] = field(factory=dict)
    ordered: int = 0
    """Nesting depth of `no_reorder` blocks."""
    _ordered_last: int | None = None
    loop: tuple[int, ...] = ()
    """The device-loop iterations being executed, outermost first."""
    _iterations: int = 0

    def add_buffer(self, storage: Storage) -> int:
        """Return the trace's number of a storage, giving it one when it is new."""
        known = self._index.get(storage.id)
        if known is None:
            known = self._index[storage.id] = len(self.buffers)
            self.buffers.append(BufferUse(storage, len(self.records), self.loop))
        return known

    def add(
        self,
        engine: Engine,
        opcode: str,
        reads: Sequence[Operand],
        writes: Sequence[Operand],
        attributes: Mapping[str, Attribute],
        name: str | None,
        barrier: int | None = None,
    ) -> NkiInstruction:
        """Record one instruction at the kernel line that is executing."""
        index = len(self.records)
        self.records.append(
            RawRecord(
                engine,
                opcode,
                tuple([self._access(operand, view, index) for operand, view in reads]),
                tuple([self._access(operand, view, index) for operand, view in writes]),
                here(4),
                name,
                attributes,
                [] if self._ordered_last is None else [self._ordered_last],
                barrier,
                self.loop,
            )
        )
        if self.ordered:
            self._ordered_last = index
        return NkiInstruction(self, index)

    def _access(self, operand: str, view: NkiTensor, index: int) -> RawAccess:
        storage = view.storage
        buffer = self._index.get(storage.id)
        if buffer is None:
            buffer = self.add_buffer(storage)
        use = self.buffers[buffer]
        use.last = index
        if use.loop and self.loop[: len(use.loop)] != use.loop:
            raise Fault(
                "S111",
                f"tensor `{view.name or 'unnamed'}` of a device loop's body is used outside of it",
                help="allocate it before the loop",
            )
        dtype = view.dtype
        return RawAccess(
            operand,
            buffer,
            dtype.name,
            dtype.bytes,
            view.shape,
            view.strides,
            view.offset,
            view.dynamic is not None,
        )

    @contextmanager
    def iteration(self) -> Iterator[None]:
        """Mark the extent of one iteration of a device loop."""
        outer = self.loop
        self._iterations += 1
        self.loop = (*outer, self._iterations)
        try:
            yield
        finally:
            self.loop = outer

    def open_ordered(self) -> None:
        """Enter a `no_reorder` block."""
        self.ordered += 1

    def close_ordered(self) -> None:
        """Leave a `no_reorder` block."""
        self.ordered -= 1
        if not self.ordered:
            self._ordered_last = None
