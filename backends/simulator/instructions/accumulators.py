"""The accumulator registers of VectorE and ScalarE: one fp32 number per lane, kept over calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.isa.operators import OPERATORS
from backends.simulator.faults import Fault
from backends.simulator.instructions.alu import apply, fold
from backends.simulator.instructions.call import BoundCall
from backends.simulator.tensor import NkiTensor

Array = NDArray[Any]


def lanes(call: BoundCall, tile: NkiTensor) -> Array:
    """The registers of the lanes that `tile` streams through, as a writable `[P]` array."""
    engine = call.row.accumulator
    assert engine is not None
    start = tile.partition_start
    return call.machine.accumulator(engine)[start : start + tile.partitions]


def accumulate(
    call: BoundCall, tile: NkiTensor, values: Array, operator: str | None, initial: Any = None
) -> None:
    """Carry out `reduce_cmd` on the registers of `tile`'s lanes, for fp32 `values` `[P, N]`.

    `initial` is what `load_reduce` starts from.
    """
    command = call.values.get("reduce_cmd", "reset_reduce")
    if command == "idle" or operator is None:
        return
    registers = lanes(call, tile)
    identity = np.float32(OPERATORS[operator].identity or 0.0)
    if command == "reset":
        registers[:] = identity
        return
    starts: dict[str, Any] = {
        "reset_reduce": identity,
        "reduce": registers,
        "load_reduce": None if initial is None else np.reshape(initial, -1),
    }
    registers[:] = apply(operator, starts[command], fold(operator, values))


def read_out(call: BoundCall, tile: NkiTensor, negate: bool = False) -> None:
    """Write the registers of `tile`'s lanes to `reduce_res`, when the call has one.

    Raises Fault S434 when no call has reset them since the kernel began.
    """
    if call.values.get("reduce_res") is None:
        return
    if call.row.accumulator not in call.machine.accumulators:
        raise Fault(
            "S434",
            f"`{call.row.name}` reads its accumulator, but nothing has reset it",
            help="pass `reduce_cmd=nisa.reduce_cmd.reset_reduce`",
        )
    registers = lanes(call, tile)
    call.store("reduce_res", -registers if negate else registers)
