"""Fixtures of the simulator's tests: run a kernel from its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backends.isa.targets import find_target
from backends.simulator.launch_memory import SharedMemory
from backends.simulator.machine import Machine, enter
from backends.simulator.options import SimOptions, activate
from backends.simulator.run import SimResult, simulate

HEADER = """\
import nki
import nki.isa as nisa
import nki.language as nl
"""


@pytest.fixture
def run() -> Callable[..., SimResult]:
    """Run `kernel` of a module's text: `run(text, *values, target=, lnc=, **options)`."""

    def call(
        text: str,
        *values: Any,
        target: str = "trn2",
        lnc: int = 1,
        entry: str = "kernel",
        **kw: Any,
    ) -> SimResult:
        return simulate(
            HEADER + text, entry, values, target=target, lnc=lnc, options=SimOptions(**kw)
        )

    return call


@pytest.fixture
def machine() -> Iterator[Callable[..., Machine]]:
    """Start a program without a kernel: `machine(target="trn2", **options)`."""

    def start(target: str = "trn2", **options: Any) -> Machine:
        chosen = SimOptions(**options)
        activate(chosen)
        program = Machine(find_target(target), chosen, SharedMemory())
        enter(program)
        return program

    yield start
    enter(None)
    activate(SimOptions())
