"""The simulator as a gdsl backend (`gdsl.simulator.Simulator`); imports its machinery per call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from gdsl.errors import UsageError

if TYPE_CHECKING:
    from backends.simulator.run import SimResult
    from gdsl.diagnostics.diagnostic import Diagnostic


@frozen
class SimulatorBackend:
    """Runs and lints NKI source text."""

    name: str = "simulator"

    def simulate(
        self,
        source: Path | str | Callable[..., object],
        entry: str,
        arguments: Sequence[object] | Mapping[str, object],
        *,
        target: str = "trn2",
        lnc: int = 1,
        widen: bool = False,
        shape_only: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> SimResult:
        """Launch `entry` on `lnc` cores; `settings` are fields of `SimOptions`.

        Raises Fault for what NKI or the machine refuses, UsageError for an unknown setting.
        """
        from backends.simulator.options import make_options
        from backends.simulator.run import simulate

        options = make_options(
            {"widen_to_fp32": widen, "shape_only": shape_only, **(settings or {})}
        )
        try:
            return simulate(source, entry, arguments, target=target, lnc=lnc, options=options)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def lint(self, path: Path, nki_version: str | None = None) -> tuple[Diagnostic, ...]:
        """Return what NKI releases would not accept of a file (one release, or all known)."""
        from backends.simulator.lint import lint_file

        return lint_file(path, nki_version)

    def explain(self, code: str) -> str | None:
        """Return the page of a fault code, None for a code that is not the simulator's."""
        from backends.simulator.fault_table import FAULTS

        info = FAULTS.get(code)
        if info is None:
            return None
        return f"{code}: {info.title}\n\n{info.explanation}\n\nRule: {info.rule}\n"

    def fault_codes(self) -> dict[str, str]:
        """Return every fault code with its title."""
        from backends.simulator.fault_table import FAULTS

        return {code: FAULTS[code].title for code in sorted(FAULTS)}

    def not_simulated(self) -> tuple[str, ...]:
        """Return the names of `nki` that raise a fault when called."""
        from backends.simulator.instructions import NOT_SIMULATED
        from backends.simulator.language import NOT_SIMULATED_LANGUAGE
        from backends.simulator.modules import COLLECTIVES

        return (
            *(f"nisa.{name}" for name in NOT_SIMULATED),
            *NOT_SIMULATED_LANGUAGE,
            *(f"nki.collectives.{name}" for name in COLLECTIVES),
        )


RUNNER: Any = SimulatorBackend()
