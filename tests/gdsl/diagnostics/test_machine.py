"""Diagnostics as JSON."""

from __future__ import annotations

import json

from gdsl.diagnostics.diagnostic import Diagnostic, Label
from gdsl.diagnostics.machine import to_json, to_json_lines
from gdsl.source import Source, Span

SOURCE = Source("a.gdn", "one\ntwo three\n")
FOUND = Diagnostic(
    "E0201",
    "unknown name `three`",
    Span(SOURCE, 8, 13),
    label="here",
    labels=(Label(Span(SOURCE, 0, 3), "not this"),),
    notes=("a note",),
    help="type `two`",
)


def test_all_fields() -> None:
    assert to_json(FOUND) == {
        "code": "E0201",
        "severity": "error",
        "message": "unknown name `three`",
        "path": "a.gdn",
        "span": {"start": 8, "end": 13, "line": 2, "column": 5},
        "label": "here",
        "labels": [
            {
                "path": "a.gdn",
                "span": {"start": 0, "end": 3, "line": 1, "column": 1},
                "text": "not this",
            }
        ],
        "notes": ["a note"],
        "help": "type `two`",
    }


def test_without_a_place() -> None:
    found = to_json(Diagnostic("G9999", "our fault", None))
    assert found["path"] is None
    assert found["span"] is None


def test_one_object_a_line() -> None:
    lines = to_json_lines([FOUND, FOUND]).splitlines()
    assert [json.loads(line) for line in lines] == [to_json(FOUND)] * 2
