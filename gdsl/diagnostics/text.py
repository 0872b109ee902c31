"""Diagnostics as text for people: the place in its line, what matters beside it, what to type.

error[E0303]: `sum` over `K`, which its argument does not carry
 --> step.gdn:7:13
  |
7 |     r = sum[K](v)
  |             ^  - carries [V]
  |             |
  |             the argument carries [V]
  |
  = help: reduce over one of [V]
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from attrs import frozen

from gdsl.diagnostics.diagnostic import Diagnostic, Severity
from gdsl.source import Source, Span

WIDEST_LINE = 160
"""Longer source lines are cropped around the place."""
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_COLORS = {Severity.ERROR: "\x1b[31m", Severity.WARNING: "\x1b[33m", Severity.NOTE: "\x1b[36m"}


def render(diagnostics: Iterable[Diagnostic], color: bool = False) -> str:
    """Return diagnostics one after another, separated by empty lines, ending in a newline."""
    blocks = [_block(diagnostic, _Style(diagnostic.severity, color)) for diagnostic in diagnostics]
    return "\n\n".join(blocks) + ("\n" if blocks else "")


@frozen
class _Style:
    severity: Severity
    color: bool

    def mark(self, text: str, primary: bool) -> str:
        return self._paint(text, _COLORS[self.severity] if primary else _COLORS[Severity.NOTE])

    def frame(self, text: str) -> str:
        return self._paint(text, _DIM)

    def title(self, text: str) -> str:
        return self._paint(text, _BOLD + _COLORS[self.severity])

    def bold(self, text: str) -> str:
        return self._paint(text, _BOLD)

    def _paint(self, text: str, code: str) -> str:
        return f"{code}{text}{_RESET}" if self.color and text else text


@frozen
class _Mark:
    """Something underlined: columns are 0-based within the line."""

    line: int
    start: int
    end: int
    text: str
    primary: bool


def _block(diagnostic: Diagnostic, style: _Style) -> str:
    title = style.title(f"{diagnostic.severity.value}[{diagnostic.code}]")
    lines = [f"{title}{style.bold(f': {diagnostic.message}')}"]
    spans: list[tuple[Span, str, bool]] = []
    if diagnostic.span is not None:
        spans.append((diagnostic.span, diagnostic.label, True))
    spans.extend((label.span, label.text, False) for label in diagnostic.labels)
    sources: dict[int, tuple[Source, list[_Mark]]] = {}
    for span, text, primary in spans:
        _, marks = sources.setdefault(id(span.source), (span.source, []))
        marks.append(_mark(span, text, primary))
    width = max((len(str(m.line)) for _, marks in sources.values() for m in marks), default=1)
    gutter = " " * width
    for position, (source, marks) in enumerate(sources.values()):
        first = marks[0]
        arrow = "-->" if position == 0 else ":::"
        lines.append(f"{gutter}{style.frame(arrow)} {source.name}:{first.line}:{first.start + 1}")
        lines.append(f"{gutter} {style.frame('|')}")
        lines.extend(_excerpt(source, marks, width, style))
    behind = [*(f"note: {note}" for note in diagnostic.notes)]
    if diagnostic.help is not None:
        behind.append(f"help: {diagnostic.help}")
    if behind and sources:
        lines.append(f"{gutter} {style.frame('|')}")
    lines.extend(f"{gutter} {style.frame('=')} {text}" for text in behind)
    return "\n".join(lines)


def _mark(span: Span, text: str, primary: bool) -> _Mark:
    """Place a span in its first line; what reaches further is underlined to the line's end."""
    line, column = span.source.line_column(span.start)
    written = span.source.line_text(line)
    start = column - 1
    end = min(start + max(1, span.end - span.start), max(len(written), start + 1))
    return _Mark(line, start, end, text, primary)


def _excerpt(source: Source, marks: list[_Mark], width: int, style: _Style) -> list[str]:
    lines: list[str] = []
    last: int | None = None
    for number in sorted({mark.line for mark in marks}):
        if last is not None and number > last + 1:
            lines.append(style.frame("..."))
        here = [mark for mark in marks if mark.line == number]
        shown, here = _cropped(source.line_text(number), here)
        lines.append(f"{style.frame(f'{number:>{width}} |')} {shown}".rstrip())
        bar = f"{' ' * width} {style.frame('|')} "
        lines.extend(f"{bar}{row}" for row in _underlines(here, style))
        last = number
    return lines


def _cropped(text: str, marks: list[_Mark]) -> tuple[str, list[_Mark]]:
    """Cut a long line to a window around its marks."""
    text = text.replace("\t", " ")
    if len(text) <= WIDEST_LINE:
        return text, marks
    first = max(0, min(mark.start for mark in marks) - 40)
    shift = first - 3 if first else 0
    head = "..." if first else ""
    tail = "..." if first + WIDEST_LINE < len(text) else ""
    limit = len(head) + WIDEST_LINE
    moved = [
        _Mark(
            mark.line,
            min(mark.start - shift, limit),
            max(min(mark.end - shift, limit), min(mark.start - shift, limit) + 1),
            mark.text,
            mark.primary,
        )
        for mark in marks
    ]
    return f"{head}{text[first : first + WIDEST_LINE]}{tail}", moved


def _underlines(marks: list[_Mark], style: _Style) -> list[str]:
    """One row for the marks of a line if they are apart, and rows below for their texts."""
    ordered = sorted(marks, key=lambda mark: (mark.start, mark.end))
    apart = all(a.end < b.start for a, b in pairwise(ordered))
    if not apart:
        return [row for mark in ordered for row in _underlines_apart([mark], style)]
    return _underlines_apart(ordered, style)


def _underlines_apart(marks: list[_Mark], style: _Style) -> list[str]:
    row, column = "", 0
    for mark in marks:
        sign = "^" if mark.primary else "-"
        row += " " * (mark.start - column) + style.mark(
            sign * (mark.end - mark.start), mark.primary
        )
        column = mark.end
    *before, last = marks
    rows = [f"{row} {style.mark(last.text, last.primary)}".rstrip()]
    waiting = [mark for mark in before if mark.text]
    while waiting:
        mark = waiting.pop()
        rows.append(_bars([*waiting, mark], None, style))
        rows.append(_bars(waiting, mark, style))
    return rows


def _bars(marks: list[_Mark], text: _Mark | None, style: _Style) -> str:
    """A row of `|` under waiting marks, and the text of one of them."""
    row, column = "", 0
    for mark in marks:
        row += " " * (mark.start - column) + style.mark("|", mark.primary)
        column = mark.start + 1
    if text is not None:
        row += " " * (text.start - column) + style.mark(text.text, text.primary)
    return row
