"""One program of a launch: target, options, memory, accumulators, the record of what it did.

Instructions and language functions reach the running program through `current()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from backends.isa.dtypes import Dtype
from backends.isa.targets import PARTITIONS, Target
from backends.isa.trace import Attribute, Engine
from backends.simulator.faults import Fault
from backends.simulator.geometry import row_major
from backends.simulator.launch_memory import SharedMemory
from backends.simulator.location import here
from backends.simulator.memory import Role, Storage
from backends.simulator.options import SimOptions
from backends.simulator.pair import Pair
from backends.simulator.recorder import NkiInstruction, Operand, Recorder
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
    recorder: Recorder = field(factory=Recorder)
    shared_log: SharedLog = field(factory=SharedLog)
    accumulators: dict[str, NDArray[np.float32]] = field(factory=dict)
    """Engine name to its accumulator registers, one fp32 per partition."""
    plans: dict[Any, Any] = field(factory=dict)
    """Checked calls of the instruction layer, by call site and layouts."""
    known: dict[Any, Any] = field(factory=dict)
    """Checked calls by call site, for the short way of `instruction_calls.py`."""
    short: bool = field(init=False)
    """Whether a checked call need only be recorded: no data, and no second program to order."""
    warnings: dict[tuple[str, str, int], Diagnostic] = field(factory=dict)

    @short.default
    def _short(self) -> bool:
        return self.options.shape_only and self.pair is None

    @property
    def data(self) -> bool:
        """Whether memory holds values (False in shape-only mode)."""
        return not self.options.shape_only

    def allocate(
        self,
        shape: tuple[int, ...],
        dtype: Dtype,
        region: MemoryRegion,
        *,
        name: str = "",
        address: tuple[int, int] | None = None,
        role: Role = "scratch",
        values: NDArray[Any] | None = None,
    ) -> NkiTensor:
        """Return a new tensor. Shared HBM tensors are the same storage in both programs.

        Raises Fault S202, S503; shapes and addresses are checked by `allocation.py`.
        """
        storage = Storage(
            shape,
            dtype,
            region,
            name=name,
            location=here(3),
            with_data=self.data and (region is not MemoryRegion.shared_hbm or not self.peer_made),
            with_flags=self.options.uninitialized == "fault",
            widen=self.options.widen_to_fp32,
            address=address,
            role=role,
            values=values,
        )
        if region is MemoryRegion.shared_hbm:
            storage = self.shared.claim(self.program_id, storage, values)
        self.recorder.add_buffer(storage)
        return whole(storage)

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
        attributes: Mapping[str, Attribute] | None = None,
        name: str | None = None,
        barrier: int | None = None,
    ) -> NkiInstruction:
        """Record an instruction and return its handle. Index tensors of views count as reads."""
        if self.pair is not None:
            self.pair.check()
            if barrier is None:
                self.shared_log.add(reads, writes, self.data)
        return self.recorder.add(engine, opcode, reads, writes, attributes or {}, name, barrier)

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
        place = here()
        self.warnings.setdefault(
            (code, message, place.line),
            Diagnostic(code, message, place.span, severity=Severity.WARNING),
        )


def whole(storage: Storage) -> NkiTensor:
    """Return the view of all of a storage."""
    return NkiTensor(storage, storage.dtype, storage.shape, row_major(storage.shape), 0)


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


def running() -> Machine | None:
    """Return the running program, or None outside a kernel."""
    return _CURRENT.get()


def enter(machine: Machine | None) -> None:
    """Make `machine` the running program of this context."""
    _CURRENT.set(machine)
