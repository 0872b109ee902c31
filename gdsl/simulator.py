"""What runs NKI source text, anybody's. A protocol; `backends.simulator` implements it.

It names nothing of the compiler, so that the simulator can be evidence about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.runner import Array

NkiSource = Path | str | Callable[..., object]
"""A file, a module's text, or a `@nki.jit` function that is already imported."""


class Simulation(Protocol):
    """What one launch left behind."""

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The returned tensors, in order."""

    @property
    def mutated(self) -> Mapping[str, Array]:
        """The arguments the kernel wrote to, by parameter name, as they are afterwards."""

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the simulator accepted with a doubt."""

    def copy_back(self) -> None:
        """Copy what the kernel wrote to its arguments into the caller's arrays."""

    @property
    def instructions(self) -> int:
        """How many instructions all programs executed."""

    @property
    def traces(self) -> tuple[Any, ...]:
        """One `backends.isa.trace.Trace` per program (core)."""


class Simulator(Protocol):
    """A numpy machine. Raises GdslError at the NKI line for what hardware refuses."""

    name: str

    def simulate(
        self,
        source: NkiSource,
        entry: str,
        arguments: Sequence[object] | Mapping[str, object],
        *,
        target: str = "trn2",
        lnc: int = 1,
        widen: bool = False,
        shape_only: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> Simulation:
        """Launch `entry` of the source on `lnc` cores.

        `widen` keeps every floating dtype in fp32; `shape_only` records the trace and computes
        nothing; `settings` are further options of the simulator by their own names.
        """

    def lint(self, path: Path, nki_version: str | None = None) -> tuple[Diagnostic, ...]:
        """Return what NKI releases would not accept of this file (one release, or all known)."""

    def fault_codes(self) -> Mapping[str, str]:
        """Return {code: title} of what it may refuse."""

    def explain(self, code: str) -> str | None:
        """Return the long text of a fault's code."""

    def not_simulated(self) -> tuple[str, ...]:
        """Return the instructions of the ISA that this simulator refuses, by name."""
