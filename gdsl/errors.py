"""The exceptions a caller can meet. `str(error)` is the rendered text."""

from __future__ import annotations

from collections.abc import Iterable

from gdsl.diagnostics.diagnostic import Diagnostic


class GdslError(Exception):
    """Base of everything raised on purpose; `diagnostics` says what is wrong and where."""

    def __init__(self, message: str, diagnostics: Iterable[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)


class CompileError(GdslError):
    """The `.gdn` text has errors, or cannot be mapped to the target."""


class RunError(GdslError):
    """The inputs of a run do not fit the kernel's contract, or a stated fact does not hold."""


class BackendUnavailable(GdslError):
    """A backend or an optional package that the command needs is not there."""


class UsageError(GdslError):
    """A wrong option or argument; exit code 2."""
