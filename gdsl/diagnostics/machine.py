"""Diagnostics for programs: one JSON object each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.source import Span


def to_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic as plain data. Offsets count characters, lines and columns from 1."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        **_place(diagnostic.span),
        "label": diagnostic.label,
        "labels": [{**_place(label.span), "text": label.text} for label in diagnostic.labels],
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
    }


def to_json_lines(diagnostics: Iterable[Diagnostic]) -> str:
    """Return one JSON object a line."""
    return "".join(f"{json.dumps(to_json(d), ensure_ascii=False)}\n" for d in diagnostics)


def _place(span: Span | None) -> dict[str, Any]:
    if span is None:
        return {"path": None, "span": None}
    where = {"start": span.start, "end": span.end, "line": span.line, "column": span.column}
    return {"path": span.source.name, "span": where}
