"""Collects what semantics finds, in the order of the text, each finding once."""

from __future__ import annotations

from attrs import define, field

from gdsl.diagnostics.diagnostic import Diagnostic, Label, Severity
from gdsl.source import Span


@define
class Reporter:
    """Errors and warnings of one run. A thing found again (a rule used twice) is dropped."""

    found: dict[tuple[str, str, int, str], Diagnostic] = field(factory=dict)

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        label: str = "",
        labels: tuple[Label, ...] = (),
        notes: tuple[str, ...] = (),
        help: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Record a finding."""
        self.add(Diagnostic(code, message, span, label, labels, notes, help, severity))

    def add(self, diagnostic: Diagnostic) -> None:
        """Record a diagnostic made elsewhere."""
        span = diagnostic.span
        name, start = (span.source.name, span.start) if span else ("", -1)
        self.found.setdefault((diagnostic.code, name, start, diagnostic.message), diagnostic)

    def warning(
        self, code: str, message: str, span: Span, *, label: str = "", help: str | None = None
    ) -> None:
        """Record something legal but suspicious."""
        self.error(code, message, span, label=label, help=help, severity=Severity.WARNING)

    def is_first(self, seen: dict[str, Span], name: str, span: Span, message: str) -> bool:
        """Enter a name into `seen`; a name that is there already is reported, the first shown."""
        first = seen.setdefault(name, span)
        if first is not span:
            labels = (Label(first, "the first one"),)
            self.error("E0202", message, span, labels=labels)
        return first is span

    def sorted(self) -> tuple[Diagnostic, ...]:
        """Return everything by place: files in the order they were met, then positions."""
        order: dict[str, int] = {}
        for diagnostic in self.found.values():
            if diagnostic.span is not None:
                order.setdefault(diagnostic.span.source.name, len(order))

        def place(diagnostic: Diagnostic) -> tuple[int, int, str]:
            span = diagnostic.span
            return (order[span.source.name], span.start, diagnostic.code) if span else (-1, 0, "")

        return tuple(sorted(self.found.values(), key=place))

    def has_errors(self) -> bool:
        """Whether an error was recorded."""
        return any(d.severity is Severity.ERROR for d in self.found.values())
