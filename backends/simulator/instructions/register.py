"""Registers of the engine sequencers."""

from __future__ import annotations

import numpy as np

from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall
from backends.simulator.registers import VirtualRegister


def register_alloc(call: BoundCall) -> VirtualRegister:
    """A new register, with a value when one is given."""
    return VirtualRegister(_value(call["x"]))


def register_move(call: BoundCall) -> None:
    """`dst = src`."""
    call["dst"].value = _value(call["src"])


def register_load(call: BoundCall) -> None:
    """`dst` = the one element of `src`; unknown in shape-only mode."""
    known = call.machine.data
    call["dst"].value = int(call["src"].load().reshape(-1)[0]) if known else None


def register_store(call: BoundCall) -> None:
    """The one element of `dst` = `src`. Raises Fault S110 when nothing was loaded into `src`."""
    if not call.machine.data:
        return
    value = _value(call["src"])
    if value is None:
        raise Fault("S110", "the stored register holds no value")
    dst = call["dst"]
    dst.store(np.array([value]).astype(dst.cell))


def _value(source: VirtualRegister | int | None) -> int | None:
    if isinstance(source, VirtualRegister):
        return source.value
    if source is not None and not -(2**31) <= source < 2**32:
        raise Fault("S326", f"{source} does not fit into a 32-bit register")
    return source
