"""Estimated time of instruction traces: timelines, bounds, reports. Start at `profile.py`.

Nothing here was measured. The machine's numbers are `backends/isa/machine*.py`, each with its
evidence; what of them is assumed is varied by `sensitivity.py`.
"""

from backends.cost.profiler import CostProfiler
from gdsl.profiler import Profiler

PROFILER: Profiler = CostProfiler()

__all__ = ["PROFILER"]
