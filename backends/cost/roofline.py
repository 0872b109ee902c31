"""Rooflines: what the contract alone costs, whatever the schedule.

The contract is data: bytes in and out, multiply-adds. For somebody else's kernel it is what its HBM
arguments weigh; nobody says how many multiply-adds it must do, so that side is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from attrs import frozen

from backends.isa.dtypes import DTYPES
from backends.isa.machine import Machine
from backends.isa.trace import Buffer, Trace
from gdsl.ir.work import Contract

_TIMES_MOVED = {"input": 1, "output": 1, "inout": 2}


@frozen
class Roofline:
    """Nanoseconds, and the rates they come from."""

    hbm: float
    pe: float
    hbm_rate: float
    """Bytes per ns that the cores together can move."""
    pe_rate: float
    """FLOPs per ns of the cores together, with the contract's operands."""


def roofline(contract: Contract, machine: Machine, cores: int) -> Roofline:
    """Time the contract's bytes and FLOPs on `cores` cores of one machine."""
    engines = machine["dma_engines"] * machine["dma_rate"] * cores
    hbm_rate = min(engines, machine["hbm_rate"])
    pe_rate = machine[f"peak_{contract.operands}"] * 1000 * cores
    return Roofline(
        hbm=contract.hbm_bytes / hbm_rate,
        pe=contract.matmul_flops / pe_rate,
        hbm_rate=hbm_rate,
        pe_rate=pe_rate,
    )


def contract_of_arguments(traces: Sequence[Trace]) -> Contract:
    """Return the contract of a kernel of which only its HBM arguments are known.

    The cores of a logical core see the same arguments; each is counted once, by name.
    """
    arguments = {
        (buffer.name, buffer.shape): buffer
        for trace in traces
        for buffer in trace.buffers
        if buffer.role in _TIMES_MOVED
    }
    moved = sum(_bytes(buffer) * _TIMES_MOVED[buffer.role] for buffer in arguments.values())
    return Contract(hbm_bytes=moved, matmul_flops=0.0)


def _bytes(buffer: Buffer) -> int:
    return prod(buffer.shape) * DTYPES[buffer.dtype].bytes
