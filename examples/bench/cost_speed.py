"""How long the cost model takes for a long trace: `python -m examples.bench.cost_speed [COUNT]`.

The trace is a matmul loop with loads, evacuations and stores, about COUNT (50,000) instructions.
The rows are processor seconds of this machine; they time our Python, not a kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time
from typing import TypeVar

from backends.cost import PROFILER
from backends.cost.list_schedule import list_scheduled
from backends.cost.program import prepare
from backends.cost.timeline import program_order
from backends.isa.dtypes import find_dtype
from backends.isa.machine import MACHINES
from backends.simulator import RUNNER
from backends.simulator.arguments import TensorSpec

KERNEL = """\
import nki.isa as nisa
import nki.language as nl


def matmuls(x, times):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    weights = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=x[:, 0:128])
    for _ in range(times):
        data = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=data, src=x)
        bank = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=bank, stationary=weights, moving=data)
        result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=result, op=nl.exp, data=bank)
        nisa.tensor_tensor(dst=result, data1=result, data2=data, op=nl.add)
        nisa.dma_copy(dst=out, src=result)
    return out
"""
_PER_ROUND = 5
T = TypeVar("T")


def main() -> int:
    """Print one row per stage."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    given = {"x": TensorSpec((128, 512), find_dtype("float32")), "times": count // _PER_ROUND}
    simulation = _timed(
        "simulate, shapes only", lambda: RUNNER.simulate(KERNEL, "matmuls", given, shape_only=True)
    )
    trace = simulation.traces[0]
    program = _timed("prepare", lambda: prepare(trace))
    machine = MACHINES["trn2"]
    _timed("program order", lambda: program_order([program], machine))
    _timed("list-scheduled", lambda: list_scheduled([program], machine))
    report = _timed("whole report", lambda: PROFILER.profile([trace], "trn2"))
    page = _timed("HTML page", lambda: PROFILER.html(report, {}))
    print(f"{len(trace.records)} instructions, page of {len(page):,} characters")
    return 0


def _timed(what: str, work: Callable[[], T]) -> T:
    start = process_time()
    result = work()
    print(f"{what:24} {process_time() - start:6.2f} s")
    return result


if __name__ == "__main__":
    sys.exit(main())
