"""The least time a core's instructions need, engine by engine, whatever their order."""

from __future__ import annotations

from collections import Counter

from backends.cost.core import Costs
from backends.cost.dma import DataTime
from backends.cost.program import QUEUES, Program

DMA = "dma"
"""Name of the transfers' bound beside the engines' names."""


def instruction_bounds(program: Program, costs: Costs) -> dict[str, float]:
    """Return nanoseconds by engine, and under `dma` for all transfers together.

    Function-table loads depend on the order and are left out. Transfers take at least their share
    of the DMA engines and of HBM, and one interval each on the ring they are on.
    """
    bounds: dict[str, float] = dict.fromkeys((*QUEUES, DMA), 0.0)
    on_ring: Counter[str] = Counter()
    for at, number in enumerate(program.work_of):
        time = costs.times[number]
        if isinstance(time, DataTime):
            bounds[DMA] += time.share
            ring = costs.rings[at]
            on_ring[ring.name] += 1
            if ring.queue in bounds:
                bounds[ring.queue] += costs.issue(at)
        elif program.trace.records[at].barrier is None:
            bounds[program.trace.records[at].engine] += time.busy
    intervals = max(on_ring.values(), default=0) * costs.machine["dma_interval"]
    bounds[DMA] = max(bounds[DMA], intervals)
    return bounds
