"""The one exception of the simulator: a rule of the machine or of NKI that a kernel breaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backends.simulator.fault_table import FAULTS
from backends.simulator.location import NOWHERE, Location, here
from gdsl.diagnostics.diagnostic import Diagnostic, Severity
from gdsl.errors import GdslError


class Fault(GdslError):
    """A broken rule, with its code, where in the NKI text, the values at hand and the rule's place.

    `values` are printed as given. The location is the innermost kernel line on the stack unless one
    is passed. `str(fault)` is a complete message; `diagnostics` holds the same as data.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        values: Mapping[str, Any] | None = None,
        help: str | None = None,
        location: Location | None = None,
    ) -> None:
        self.code = code
        self.message = message
        self.values = dict(values or {})
        self.location = location if location is not None else here()
        self.origin = self.location.origin
        super().__init__(self._text(help), (self._diagnostic(help),))

    @property
    def rule(self) -> str:
        """Where the rule is documented, from the fault table."""
        return FAULTS[self.code].rule

    def _notes(self) -> tuple[str, ...]:
        notes = [f"{name} = {value}" for name, value in self.values.items()]
        if self.origin is not None:
            notes.append(f"written for {self.origin}")
        return (*notes, f"rule: {self.rule}")

    def _diagnostic(self, help: str | None) -> Diagnostic:
        return Diagnostic(
            code=self.code,
            message=self.message,
            span=self.location.span,
            label=FAULTS[self.code].title,
            notes=self._notes(),
            help=help,
            severity=Severity.ERROR,
        )

    def _text(self, help: str | None) -> str:
        where = "" if self.location == NOWHERE else f"{self.location.file}:{self.location.line}: "
        lines = [f"{where}{self.code}: {self.message}", *(f"  {note}" for note in self._notes())]
        if help is not None:
            lines.append(f"  help: {help}")
        return "\n".join(lines)


class MissingImport(Fault, ImportError):
    """A module or name that does not exist; an ImportError, so that a file may try another."""


class MissingName(Fault, AttributeError):
    """An attribute that does not exist; an AttributeError, so that `hasattr` works."""
