"""Each program here gets exactly the diagnostics it announces, at the lines it announces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.source import Source

PROGRAMS = sorted(Path(__file__).parent.glob("*.gdn"))
Compiled = Callable[[Source], tuple[Diagnostic, ...]]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path: Path, compiled: Compiled, expected: Callable[[Source], list[Any]]) -> None:
    source = Source(str(path), path.read_text(encoding="utf-8"))
    found = [
        d for d in compiled(source) if d.span is not None and d.span.source.name == source.name
    ]
    unmet = expected(source)
    unexpected = []
    for diagnostic in found:
        assert diagnostic.span is not None
        for item in unmet:
            same = (item.line, item.severity, item.code) == (
                diagnostic.span.line,
                diagnostic.severity.value,
                diagnostic.code,
            )
            if same and item.message in diagnostic.message:
                unmet.remove(item)
                break
        else:
            unexpected.append(f"{diagnostic.span.line}: [{diagnostic.code}] {diagnostic.message}")
    assert (unexpected, unmet) == ([], [])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_findings_are_sorted_by_place(path: Path, compiled: Compiled) -> None:
    source = Source(str(path), path.read_text(encoding="utf-8"))
    here = [d.span.start for d in compiled(source) if d.span and d.span.source.name == source.name]
    assert here == sorted(here)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_messages_keep_the_style(path: Path, compiled: Compiled) -> None:
    for diagnostic in compiled(Source(str(path), path.read_text(encoding="utf-8"))):
        texts = (diagnostic.message, diagnostic.label, diagnostic.help or "x", *diagnostic.notes)
        for text in texts:
            assert not text.endswith((".", "!"))
            assert text[:1] == text[:1].lower() or text.startswith("`")
            assert text.count("`") % 2 == 0
        assert diagnostic.span is not None
        assert diagnostic.span.text.strip()
        for label in diagnostic.labels:
            assert label.span.text.strip()
            assert label.text
