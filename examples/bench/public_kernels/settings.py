"""What a run of the public kernels is asked to do."""

from __future__ import annotations

from attrs import field, frozen

from backends.simulator.options import SimOptions


@frozen
class Settings:
    """Which kernels, how many of their cases, how long each, under which rules."""

    expression: str = ""
    """A pytest expression for tests; for the cases here, words of a name."""
    everything: bool = False
    """Also tests that are not marked fast."""
    cases: int = 3
    """Parameter sets of a test function."""
    seconds: int = 60
    """Time limit of one kernel run."""
    options: SimOptions = field(factory=SimOptions)
