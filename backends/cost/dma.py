"""How long a transfer moves data, alone: its runs dealt to the DMA engines.

A transfer is cut into contiguous runs; SBUF partitions are dealt to the engines in groups, so few
partitions keep few engines working. Issue, rings and shared bandwidth are `core.py`'s.
"""

from __future__ import annotations

from math import ceil

from attrs import frozen

from backends.cost.workload import Transfer
from backends.isa.machine import Machine


@frozen
class DataTime:
    """Nanoseconds of one transfer."""

    lead: float
    """From the end of its trigger to the first byte."""
    alone: float
    """First to last byte with nothing else moving."""
    tail: float
    """From the last byte to a consumer's start."""
    share: float
    """What it takes of the engines of a core together, and of the HBM its cores share."""


def data_time(work: Transfer, machine: Machine, cores: int) -> DataTime:
    """Time the data of one transfer; `cores` share the HBM bandwidth equally."""
    if work.kind == "gpsimd":
        moving = work.bytes / machine["gpsimd_dma_rate"]
        return DataTime(machine["gpsimd_dma_latency"], moving, tail=0.0, share=0.0)
    engines = machine["dma_engines"]
    if work.partitions is None:
        run = min(work.run_bytes, machine["dma_packet"])
        runs = ceil(work.bytes / run)
        working = min(engines, runs)
        runs_per_engine: float = ceil(runs / working)
    else:
        working = min(engines, ceil(work.partitions / machine["dma_partitions"]))
        partitions = ceil(work.partitions / working)
        run = min(work.run_bytes, work.bytes / work.partitions)
        runs_per_engine = partitions * work.bytes / work.partitions / run
    per_run = max(run / machine["dma_rate"], machine["dma_element"])
    alone = runs_per_engine * per_run / _efficiency(work, machine)
    through_hbm = work.hbm_bytes * cores / machine["hbm_rate"]
    return DataTime(
        lead=machine["dma_start"],
        alone=alone,
        tail=machine["dma_visible"],
        share=max(alone * working / engines, through_hbm),
    )


def _efficiency(work: Transfer, machine: Machine) -> float:
    """Return the fraction of a plain copy's rate. A transpose's runs are its rows."""
    if work.kind == "copy":
        return 1.0
    return machine["dma_compute" if work.kind == "compute" else f"dma_{work.kind}"]
