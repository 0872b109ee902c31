"""What a program did, as it happens: instructions, and when each storage was born and last used.

Recording is on the hot path of shape-only runs, so an instruction is kept as raw layouts; the
`Trace` of `backends.isa.trace` is made from them once, by `trace_builder.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from attrs import define, field

from backends.isa.trace import Attribute, Engine
from backends.simulator.faults import Fault
from backends.simulator.location import here
from backends.simulator.memory import Allocation, Storage
from backends.simulator.record_template import RawAccess, RawRecord, Template
from backends.simulator.registers import VirtualRegister

if TYPE_CHECKING:
    from backends.simulator.tensor import NkiTensor

Operand = tuple[str, "NkiTensor"]


_make_tuple = tuple.__new__
"""A NamedTuple's own constructor unpacks its arguments first; this is several times faster."""


Short = tuple[Template, "Sequence[int]", tuple[int, ...]]
"""A template, the numbers that fill it, and the device-loop iterations around the record."""


@define(eq=False)
class BufferUse:
    """An allocation of this program, and the records between which it holds something."""

    allocation: Allocation | Storage
    born: int
    """The record that first accesses it; the next record at its allocation until one does."""
    number: int = 0
    """Its place in the trace's list of buffers."""
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

    log: list[RawRecord | Short] = field(factory=list)
    """Every instruction so far; see `records`."""
    _filled: int = 0
    """How many instructions of the log are records for sure."""
    buffers: list[BufferUse] = field(factory=list)
    _uses: dict[int, BufferUse] = field(factory=dict)
    ordered: int = 0
    """Nesting depth of `no_reorder` blocks."""
    _ordered_last: int | None = None
    loop: tuple[int, ...] = ()
    """The device-loop iterations being executed, outermost first."""
    _iterations: int = 0

    @property
    def records(self) -> list[RawRecord]:
        """The instructions so far, as records."""
        log = self.log
        for index in range(self._filled, len(log)):
            entry = log[index]
            if not isinstance(entry, RawRecord):
                template, ends, loop = entry
                log[index] = template.filled(ends, loop)
        self._filled = len(log)
        return cast("list[RawRecord]", log)

    def add_buffer(self, storage: Storage) -> BufferUse:
        """Return the use of a storage by this program, beginning it when it is new."""
        known = self._uses.get(storage.id)
        if known is None:
            born, number = len(self.log), len(self.buffers)
            known = BufferUse(storage.describe(), born, number, self.loop)
            self._uses[storage.id] = known
            self.buffers.append(known)
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
        index = len(self.log)
        tables: list[Operand] = []
        read = self._accesses(reads, index, tables)
        written = self._accesses(writes, index, tables)
        if tables:
            read += self._accesses(tables, index, [])
        after = [] if self._ordered_last is None else [self._ordered_last]
        what = (engine, opcode, read, written, here(4), name, attributes)
        self.log.append(_make_tuple(RawRecord, (*what, after, barrier, self.loop)))
        if self.ordered:
            self._ordered_last = index
        return NkiInstruction(self, index)

    def touch(self, tiles: Sequence[NkiTensor]) -> list[int] | None:
        """Note that the next record uses `tiles`; return buffer number and offset of each in turn.

        None when a tile needs the care of `add`: in a device loop, or new to this program.
        """
        index, uses = len(self.log), self._uses
        ends: list[int] = []
        for view in tiles:
            use = uses.get(view.storage.id)
            if use is None or use.loop:
                return None
            if use.last < 0:
                use.born = index
            use.last = index
            ends += (use.number, view.offset)
        return ends

    def add_short(self, template: Template, ends: Sequence[int]) -> NkiInstruction:
        """Record one instruction whose tiles were touched."""
        log = self.log
        log.append((template, ends, self.loop))
        return NkiInstruction(self, len(log) - 1)

    def _accesses(
        self, operands: Sequence[Operand], index: int, tables: list[Operand]
    ) -> tuple[RawAccess, ...]:
        """Return the layouts of operands, which record `index` uses; add the tensors of run-time
        indices to `tables`.
        """
        found = []
        for operand, view in operands:
            storage = view.storage
            use = self._uses.get(storage.id) or self.add_buffer(storage)
            if use.last < 0:
                use.born = index  # a tensor that was only declared holds nothing yet
            use.last = index
            if use.loop and self.loop[: len(use.loop)] != use.loop:
                raise Fault(
                    "S111",
                    f"tensor `{view.name or 'unnamed'}` of a device loop's body is used outside",
                    help="allocate it before the loop",
                )
            dynamic = view.dynamic
            if dynamic is not None and not isinstance(dynamic.index, VirtualRegister):
                tables.append(("index", dynamic.index))
            layout = (operand, use.number, view.dtype, view.shape, view.strides, view.offset,
                      dynamic is not None)  # fmt: skip
            found.append(_make_tuple(RawAccess, layout))
        return tuple(found)

    def set_role(self, storage: Storage) -> None:
        """Take over what an argument or a result turned out to be."""
        self.add_buffer(storage).allocation.role = storage.role

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
