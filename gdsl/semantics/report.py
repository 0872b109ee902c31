"""Collects what semantics finds, in the order of the text, each finding once."""

from __future__ import annotations

from attrs import define, evolve, field

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
        """Record a diagnostic made elsewhere.

        A name that is unknown in several places of a file is one finding that shows them.
        """
        span = diagnostic.span
        if diagnostic.code == "E0201" and span is not None:
            for key, first in self.found.items():
                same = (key[0], key[1], key[3]) == ("E0201", span.source.name, diagnostic.message)
                if same and first.span is not None and first.span != span:
                    again = Label(span, "and here")
                    if again not in first.labels:
                        self.found[key] = evolve(first, labels=(*first.labels, again))
                    return
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

    def has(self, code: str, text: str | None = None) -> bool:
        """Whether a finding of a code was recorded, at a place with that text if one is given."""
        return any(
            d.code == code and (text is None or (d.span is not None and d.span.text == text))
            for d in self.found.values()
        )

    def has_errors(self) -> bool:
        """Whether an error was recorded."""
        return any(d.severity is Severity.ERROR for d in self.found.values())
