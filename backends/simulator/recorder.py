"""What a program did, as it happens: instructions, and which storages they used.

A run without data records an instruction as a template and a few numbers, which become a
`RawRecord` when somebody asks; the `Trace` of `backends.isa.trace` is made from these by
`trace_builder.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attrs import define, field

from backends.isa.trace import Attribute, Engine
from backends.simulator.faults import Fault
from backends.simulator.location import Location
from backends.simulator.memory import Allocation, Storage
from backends.simulator.record_template import RawAccess, RawRecord, Template
from backends.simulator.registers import VirtualRegister
from backends.simulator.tokens import MemoryRegion

if TYPE_CHECKING:
    from backends.simulator.tensor import NkiTensor

Operand = tuple[str, "NkiTensor"]

_make_tuple = tuple.__new__
"""A NamedTuple's own constructor unpacks its arguments first; this is several times faster."""


class NkiInstruction:
    """The handle that every instruction call returns."""

    __slots__ = ("index", "recorder")

    recorder: Recorder
    index: int

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Make the machine finish `producers` first. Returns self; raises Fault S112."""
        for producer in producers:
            if not isinstance(producer, NkiInstruction):
                raise Fault(
                    "S112",
                    f"`depends_on` takes instruction handles, not `{type(producer).__name__}`",
                )
            self.recorder.add_edge(self.index, producer.index)
        return self


class Issued(NkiInstruction):
    """An instruction of a run without data: its handle, and what was issued."""

    __slots__ = ("template",)

    template: Template


@define(eq=False)
class Recorder:
    """The instructions and storages of one program so far."""

    alone: bool = True
    """Whether no other program shares memory with it."""
    log: list[RawRecord | Issued] = field(factory=list)
    """Every instruction so far; see `records`."""
    cells: list[int] = field(factory=list)
    """Without data, buffer number and offset of the tiles of each instruction in turn."""
    buffers: list[Allocation] = field(factory=list)
    edges: dict[int, list[int]] = field(factory=dict)
    """Records that must finish before a record begins, beyond the hazards."""
    ordered: int = 0
    """Nesting depth of `no_reorder` blocks."""
    loop: tuple[int, ...] = ()
    """The device-loop iterations being executed, outermost first."""
    looped: bool = False
    """Whether there was a device loop."""
    _shared: dict[int, Allocation] = field(factory=dict)
    """This program's uses of memory that it shares with the other one."""
    _ordered_from: int = 0
    """The record that begins the outermost `no_reorder` block."""
    _iterations: int = 0
    _loop_starts: list[int] = field(factory=lambda: [0])
    _loops: list[tuple[int, ...]] = field(factory=lambda: [()])
    """The device-loop iterations around all records from each of `_loop_starts` on."""

    @property
    def records(self) -> list[RawRecord]:
        """The instructions so far."""
        found, cells, position = [], self.cells, 0
        for entry in self.log:
            if isinstance(entry, Issued):
                end = position + 2 * len(entry.template.layouts)
                found.append(entry.template.filled(cells[position:end]))
                position = end
            else:
                found.append(entry)
        return found

    def begin(self, use: Allocation) -> None:
        """Record an allocation that is new."""
        use.number = len(self.buffers)
        use.born = len(self.log)
        use.loop = self.loop
        self.buffers.append(use)

    def use_of(self, storage: Storage) -> Allocation:
        """Return this program's allocation of a storage, recorded when it is new."""
        use = storage.allocation
        if not self.alone and use.form.region is MemoryRegion.shared_hbm:
            return self._shared.get(storage.id) or self._share(storage)
        if use.number < 0:
            self.begin(use)
        return use

    def _share(self, storage: Storage) -> Allocation:
        """Return this program's own record of memory that both programs reach."""
        made = storage.allocation
        use = Allocation(made.form, made.name, made.location, made.address, made.role)
        self.begin(use)
        self._shared[storage.id] = use
        return use

    def add(
        self,
        engine: Engine,
        opcode: str,
        reads: Sequence[Operand],
        writes: Sequence[Operand],
        attributes: Mapping[str, Attribute],
        place: Location,
        name: str | None,
        barrier: int | None = None,
    ) -> NkiInstruction:
        """Record one instruction of a run with data. Index tensors of views count as reads."""
        read = [*reads, *index_tensors(reads, writes)]
        what = (engine, opcode, self._accesses(read), self._accesses(writes), place, name,
                attributes, barrier)  # fmt: skip
        handle = NkiInstruction()
        handle.recorder = self
        handle.index = len(self.log)
        self.log.append(_make_tuple(RawRecord, what))
        return handle

    def add_issued(self, template: Template, tiles: Sequence[NkiTensor]) -> Issued:
        """Record one instruction of a run without data; `short_calls.py` does the same faster."""
        for view in tiles:
            self.cells += (self._touch(view).number, view.offset)
        issued = Issued()
        issued.recorder = self
        issued.index = len(self.log)
        issued.template = template
        self.log.append(issued)
        return issued

    def _accesses(self, operands: Sequence[Operand]) -> tuple[RawAccess, ...]:
        return tuple(
            [
                _make_tuple(
                    RawAccess, (operand, self._touch(view).number, view.layout, view.offset)
                )
                for operand, view in operands
            ]
        )

    def _touch(self, view: NkiTensor) -> Allocation:
        """Note that the next record uses a view, and return its allocation.

        Raises Fault S111 for a tensor of a device loop's body that is used outside.
        """
        use = self.use_of(view.storage)
        now = len(self.log)
        if use.last < 0:
            use.born = now  # a tensor that was only declared holds nothing yet
        use.last = now
        if self.looped:
            self.check_loops(use)
        return use

    def check_loops(self, *uses: Allocation) -> None:
        """Refuse tensors of a device loop's body that are used outside. Raises Fault S111."""
        for use in uses:
            if self.loop[: len(use.loop)] != use.loop:
                raise Fault(
                    "S111",
                    f"tensor `{use.name or 'unnamed'}` of a device loop's body is used outside",
                    help="allocate it before the loop",
                )

    def add_edge(self, consumer: int, producer: int) -> None:
        """Make one record wait for another. Raises Fault S112."""
        if producer >= consumer:
            raise Fault("S112", "an instruction cannot wait for one that comes after it")
        inner = self._loop_at(producer)
        if self._loop_at(consumer)[: len(inner)] != inner:
            raise Fault("S112", "an ordering edge cannot lead out of a device loop")
        self.edges.setdefault(consumer, []).append(producer)

    @contextmanager
    def iteration(self) -> Iterator[None]:
        """Mark the extent of one iteration of a device loop."""
        outer = self.loop
        self._iterations += 1
        self.looped = True
        self._enter((*outer, self._iterations))
        try:
            yield
        finally:
            self._enter(outer)

    def _enter(self, loop: tuple[int, ...]) -> None:
        self.loop = loop
        self._loop_starts.append(len(self.log))
        self._loops.append(loop)

    def _loop_at(self, index: int) -> tuple[int, ...]:
        """Return the device-loop iterations around a record."""
        return self._loops[bisect_right(self._loop_starts, index) - 1]

    def open_ordered(self) -> None:
        """Enter a `no_reorder` block."""
        if not self.ordered:
            self._ordered_from = len(self.log)
        self.ordered += 1

    def close_ordered(self) -> None:
        """Leave a `no_reorder` block: each of its records waits for the one before."""
        self.ordered -= 1
        if not self.ordered:
            for index in range(self._ordered_from + 1, len(self.log)):
                self.edges.setdefault(index, []).insert(0, index - 1)


def index_tensors(reads: Sequence[Operand], writes: Sequence[Operand]) -> list[Operand]:
    """Return the tensors that hold run-time indices of operands, as further reads."""
    return [
        ("index", view.dynamic.index)
        for _, view in (*reads, *writes)
        if view.dynamic is not None and not isinstance(view.dynamic.index, VirtualRegister)
    ]
