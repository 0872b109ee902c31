"""What a run can find wrong with its arguments, as a diagnostic with a code."""

from __future__ import annotations

from gdsl.diagnostics.diagnostic import Diagnostic, Label
from gdsl.errors import RunError
from gdsl.source import Span


def fault(
    code: str,
    message: str,
    span: Span | None,
    help: str | None = None,
    labels: tuple[Label, ...] = (),
) -> RunError:
    """Return the error to raise. `span` is the declaration that the argument does not fit."""
    return RunError(message, (Diagnostic(code, message, span, labels=labels, help=help),))
