"""One program of a launch: target, options, memory, accumulators, the record of what it did.

Instructions and language functions reach the running program through `current()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from sys import _getframe
from types import CodeType
from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from backends.isa.dtypes import Dtype
from backends.isa.targets import PARTITIONS, Target
from backends.isa.trace import Attribute, Engine
from backends.simulator.accumulation import settled
from backends.simulator.faults import Fault
from backends.simulator.launch_memory import SharedMemory
from backends.simulator.layouts import whole_layout
from backends.simulator.location import Location, at_frame, here
from backends.simulator.memory import Allocation, Form, Role, Storage, form_of
from backends.simulator.options import SimOptions
from backends.simulator.pair import Pair
from backends.simulator.record_template import Template
from backends.simulator.recorder import NkiInstruction, Operand, Recorder, index_tensors
from backends.simulator.shared_log import SharedLog
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion
from gdsl.diagnostics.diagnostic import Diagnostic, Severity


@define(eq=False)
class Machine:
    """The state of one program."""

    target: Target
    options: SimOptions
    shared: SharedMemory
    program_id: int = 0
    num_programs: int = 1
    grid: bool = False
    """Whether the kernel was launched with a grid (`kernel[n]`)."""
    pair: Pair | None = None
    recorder: Recorder = field()
    shared_log: SharedLog = field(factory=SharedLog)
    accumulators: dict[str, NDArray[np.float32]] = field(factory=dict)
    """Engine name to its accumulator registers, one fp32 per partition."""
    forms: dict[Any, tuple[Form, Any]] = field(factory=dict)
    """Allocations that obey the rules, by the arguments of `nl.ndarray`; each keeps its dtype."""
    plans: dict[Any, Any] = field()
    """Checked calls of the instruction layer, by instruction, layouts and constants."""
    templates: dict[Any, Template] = field(factory=dict)
    """What calls at their places in the kernel's code come to without data: `short_calls.py`."""
    codes: dict[int, CodeType] = field(factory=dict)
    """The code of those places by identity, kept so that an identity never means another."""
    data: bool = field(init=False)
    """Whether memory holds values (False in shape-only mode)."""
    warnings: dict[tuple[str, str, int], Diagnostic] = field(factory=dict)
    said: list[tuple[str, str]] | None = None
    """Codes and messages of warnings, collected while a call is checked."""

    @recorder.default
    def _new_recorder(self) -> Recorder:
        return Recorder(alone=self.pair is None)

    @plans.default
    def _known_plans(self) -> dict[Any, Any]:
        return _plans(self.target.name, self.options, self.num_programs)

    @data.default
    def _holds_data(self) -> bool:
        return not self.options.shape_only

    def allocate(
        self,
        shape: tuple[int, ...],
        dtype: Dtype,
        region: MemoryRegion,
        *,
        name: str = "",
        role: Role = "scratch",
        values: NDArray[Any] | None = None,
    ) -> NkiTensor:
        """Return a new tensor of a shape that is known to be legal."""
        form = form_of(shape, dtype, region, widen=self.options.widen_to_fp32)
        return self.place(form, name, role=role, values=values)

    def place(
        self,
        form: Form,
        name: str = "",
        address: tuple[int, int] | None = None,
        role: Role = "scratch",
        values: NDArray[Any] | None = None,
    ) -> NkiTensor:
        """Return a new tensor of a form. Shared HBM tensors are one storage in both programs.

        Raises Fault S503; shapes and addresses are checked by `allocation.py`.
        """
        line = at_frame(_getframe(2)) or here(3)
        made = Allocation(form, name, line, address, role)
        storage = Storage(made)
        if form.region is MemoryRegion.shared_hbm:
            if self.data and not self.peer_made:
                storage.fill(values, with_flags=self.options.uninitialized == "fault")
            storage = self.shared.claim(self.program_id, storage, values)
            self.recorder.use_of(storage)
        else:
            if self.data:
                storage.fill(values, with_flags=self.options.uninitialized == "fault")
            self.recorder.begin(made)
        return NkiTensor(storage, whole_layout(storage), 0)

    @property
    def peer_made(self) -> bool:
        """Whether the next shared tensor was already allocated by the other program."""
        return self.shared.exists(self.program_id)

    def emit(
        self,
        engine: Engine,
        opcode: str,
        reads: Sequence[Operand],
        writes: Sequence[Operand],
        attributes: Mapping[str, Attribute],
        name: str | None = None,
        *,
        barrier: int | None = None,
        place: Location | None = None,
    ) -> NkiInstruction:
        """Record an instruction and return its handle; `place` is found on the stack if not given.

        Index tensors of views count as reads.
        """
        place = here(2) if place is None else place
        if self.data:
            self._watch(reads, writes, barrier)
            return self.recorder.add(
                engine, opcode, reads, writes, attributes, place, name, barrier
            )
        operands = [*reads, *writes]
        slots = [(operand, position) for position, (operand, _) in enumerate(operands)]
        inputs, outputs = tuple(slots[: len(reads)]), tuple(slots[len(reads) :])
        views = [view for _, view in operands]
        layouts = tuple([view.layout for view in views])
        template = Template(
            engine, opcode, inputs, outputs, layouts, place, name, attributes, barrier
        )
        return self.record(template, views)

    def record(self, template: Template, tiles: Sequence[NkiTensor]) -> NkiInstruction:
        """Record an instruction of a run without data and return its handle."""
        reads = [(operand, tiles[n]) for operand, n in template.reads]
        writes = [(operand, tiles[n]) for operand, n in template.writes]
        self._watch(reads, writes, template.barrier)
        indices = [view for _, view in index_tensors(reads, writes)]
        if indices:
            template = template.reading([view.layout for view in indices])
        for _, view in writes:
            view.storage.written = True
            if template.engine == "tensor":
                template = settled(template, view)
                view.storage.sums[view.layout, view.offset] = None
        return self.recorder.add_issued(template, (*tiles, *indices))

    def _watch(
        self, reads: Sequence[Operand], writes: Sequence[Operand], barrier: int | None
    ) -> None:
        """Tell the launch of two programs what is accessed."""
        if self.pair is not None:
            self.pair.check()
            if barrier is None:
                self.shared_log.add(reads, writes, self.data)

    def exchange(self, kind: str, key: object, payload: Any) -> tuple[Any, int]:
        """Wait for the other program at the same point; return its payload and a meeting number.

        Raises Fault S502 when the other program can never come.
        """
        if self.pair is None:
            raise Fault("S502", f"`{kind}` in a launch of one program waits for ever")
        self.shared_log.settle()
        return self.pair.meet(self.program_id, (kind, key), payload)

    def barrier(self, tensor: NkiTensor) -> int:
        """Order this program's accesses to a shared tensor before the other's later ones."""
        _, number = self.exchange("core_barrier", tensor.storage.id, None)
        scope = self.options.barrier_scope
        self.shared_log.fence(None if scope == "all" else tensor.storage.id)
        return number

    def accumulator(self, engine: str) -> NDArray[np.float32]:
        """Return the accumulator registers of an engine; they start undefined (NaN)."""
        if engine not in self.accumulators:
            self.accumulators[engine] = np.full(PARTITIONS, np.nan, dtype=np.float32)
        return self.accumulators[engine]

    def warn(self, code: str, message: str) -> None:
        """Keep a warning; one per code, message and line."""
        if self.said is not None:
            self.said.append((code, message))
        place = here()
        self.warnings.setdefault(
            (code, message, place.line),
            Diagnostic(code, message, place.span, severity=Severity.WARNING),
        )


@lru_cache(maxsize=8)
def _plans(target: str, options: SimOptions, programs: int) -> dict[Any, Any]:
    """Return the plans of such launches: kernels are launched again with other values and sizes."""
    return {}


_CURRENT: ContextVar[Machine | None] = ContextVar("simulated program", default=None)


def current() -> Machine:
    """Return the running program. Raises Fault S101 outside a kernel."""
    machine = _CURRENT.get()
    if machine is None:
        raise Fault(
            "S101",
            "an instruction or allocation outside a running kernel",
            help="call it inside a function that is launched by `nki.jit` or `nki.simulate`",
        )
    return machine


running: Callable[[], Machine | None] = _CURRENT.get
"""Returns the running program, or None outside a kernel."""


def enter(machine: Machine | None) -> None:
    """Make `machine` the running program of this context."""
    _CURRENT.set(machine)
