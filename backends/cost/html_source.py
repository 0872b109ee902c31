"""Sources with the time of each line: the share of the critical path as shade and number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from backends.cost.lines import base_name, find_source
from gdsl.profiler import LineTime

_STRONGEST = 0.75
"""Opacity of the line that takes most of the critical path."""
_HOTTEST = 8
_QUOTED = 110


def source_section(title: str, lines: Sequence[LineTime], sources: Mapping[str, str]) -> str:
    """Return a heading and every file that some line belongs to; without its text, a table."""
    total = sum(line.path for line in lines) or 1.0
    by_file: dict[str, list[LineTime]] = {}
    for line in lines:
        if line.file:
            by_file.setdefault(line.file, []).append(line)
    elsewhere = sum(line.path for line in lines if not line.file)
    parts = [
        f"<h2>{escape(title)}</h2>",
        '<p class="note">Microseconds on the critical path; they add up to the program-order '
        "figure. The darker, the more.</p>",
    ]
    if elsewhere:
        parts.append(f'<p class="note">{elsewhere:.2f} us belong to no line of this text.</p>')
    for file, held in by_file.items():
        text = find_source(sources, file)
        parts.append(f"<h3>{escape(base_name(file))}</h3>")
        parts.append(_table(held, total) if text is None else _source(text, held, total, file))
    return "".join(parts)


def _source(text: str, lines: Sequence[LineTime], total: float, file: str) -> str:
    times = {line.line: line for line in lines}
    most = max((line.path for line in lines), default=0.0) or 1.0
    rows = []
    for number, code in enumerate(text.split("\n"), start=1):
        held = times.get(number)
        spent = f"{held.path:.2f} us" if held and held.path else ""
        shade = _STRONGEST * held.path / most if held else 0.0
        style = f' style="background:rgba(234,115,23,{shade:.2f})"' if shade >= 0.01 else ""
        hint = f' title="{_hint(held, total)}"' if held else ""
        rows.append(
            f'<span id="{_anchor(file, number)}"{style}{hint}><span class="n">{number}</span>'
            f'<span class="t">{spent}</span>{escape(code)}</span>'
        )
    return _hottest(text, lines, total, file) + f'<pre class="source">{"".join(rows)}</pre>'


def _hottest(text: str, lines: Sequence[LineTime], total: float, file: str) -> str:
    """Return the lines that take most, each a link into the source below."""
    code = text.split("\n")
    ranked = sorted((line for line in lines if line.path > 0), key=lambda line: -line.path)
    rows = "".join(
        f'<tr><td><a href="#{_anchor(file, line.line)}">{line.line}</a></td>'
        f"<td>{line.path:.2f} us</td><td>{line.path / total:.1%}</td>"
        f'<td class="text"><code>{escape(code[line.line - 1].strip()[:_QUOTED])}</code></td></tr>'
        for line in ranked[:_HOTTEST]
    )
    return f"<table>{rows}</table>"


def _anchor(file: str, number: int) -> str:
    return f"{escape(base_name(file).strip('<>'), quote=True)}-{number}"


def _hint(line: LineTime, total: float) -> str:
    return (
        f"{line.path / total:.1%} of the critical path, {line.busy:.2f} us of engine time, "
        f"{line.instructions} instructions"
    )


def _table(lines: Sequence[LineTime], total: float) -> str:
    rows = "".join(
        f"<tr><td>{line.line}</td><td>{line.path:.2f} us</td><td>{line.path / total:.1%}</td>"
        f"<td>{line.busy:.2f} us</td><td>{line.instructions}</td></tr>"
        for line in sorted(lines, key=lambda line: -line.path)
    )
    return (
        "<table><tr><th>line</th><th>critical path</th><th></th><th>engines busy</th>"
        f"<th>instructions</th></tr>{rows}</table>"
    )
