"""A diagnostic as a value."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from gdsl.source import Span


class Severity(Enum):
    """Errors stop the pipeline after the stage that found them; warnings never do."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@frozen
class Label:
    """A second place that matters, with what it has to do with the problem."""

    span: Span
    text: str


@frozen
class Diagnostic:
    """One finding. `message` stands alone; `label` is the short text under the caret.

    `help` proposes what to type. `code` is a key of `gdsl.diagnostics.codes.CODES`.
    """

    code: str
    message: str
    span: Span | None
    label: str = ""
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: Severity = Severity.ERROR
