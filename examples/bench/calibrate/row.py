"""One published figure, and how the model's figure beside it is made."""

from __future__ import annotations

from attrs import frozen

from examples.bench.calibrate.measures import Measure
from examples.bench.calibrate.runs import Run

UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "%": 1.0, "x": 1.0}
"""Nanoseconds in a unit; percentages and ratios stand for themselves."""


@frozen
class Row:
    """A published figure. `source` is a key of `rows.SOURCES`."""

    source: str
    what: str
    published: float
    unit: str
    run: Run
    measure: Measure
    over: tuple[Run, ...] = ()
    """Runs whose least figure the first one's is divided by."""
    launch: bool = False
    """Whether a launch's constant is added to every run."""
    within: float = 0.1
    """How far the ratio model / published may be from one."""
    between: tuple[float, float] | None = None
    """What the model's figure must lie between, where no ratio is asked for."""
    why: str = ""
    """Why it misses, where it does."""
