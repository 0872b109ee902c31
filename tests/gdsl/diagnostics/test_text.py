"""How diagnostics look."""

from __future__ import annotations

from gdsl.diagnostics.diagnostic import Diagnostic, Label, Severity
from gdsl.diagnostics.text import WIDEST_LINE, render
from gdsl.source import Source, Span

SOURCE = Source("step.gdn", "first\n    r = sum[K](v)\n\n\nlast line\n")


def span(text: str, source: Source = SOURCE) -> Span:
    start = source.text.index(text)
    return Span(source, start, start + len(text))


def test_place_label_and_help() -> None:
    found = Diagnostic("E0303", "no such axis", span("K"), label="here", help="remove it")
    assert render([found]) == (
        "error[E0303]: no such axis\n"
        " --> step.gdn:2:13\n"
        "  |\n"
        "2 |     r = sum[K](v)\n"
        "  |             ^ here\n"
        "  |\n"
        "  = help: remove it\n"
    )


def test_several_places_on_a_line() -> None:
    found = Diagnostic("E0303", "m", span("K"), label="a", labels=(Label(span("(v)"), "b"),))
    assert render([found]).splitlines()[3:] == [
        "2 |     r = sum[K](v)",
        "  |             ^ --- b",
        "  |             |",
        "  |             a",
    ]


def test_places_that_overlap() -> None:
    found = Diagnostic("E0303", "m", span("K"), label="a", labels=(Label(span("sum[K](v)"), "b"),))
    assert render([found]).splitlines()[3:] == [
        "2 |     r = sum[K](v)",
        "  |         --------- b",
        "  |             ^ a",
    ]


def test_other_lines_and_files() -> None:
    other = Source("lib.gdn", "fn f(x) = x")
    labels = (Label(span("last"), "later"), Label(span("f", other), "declared here"))
    found = Diagnostic("E0201", "m", span("r ="), labels=labels, notes=("one", "two"))
    assert render([found]).splitlines()[1:] == [
        " --> step.gdn:2:5",
        "  |",
        "2 |     r = sum[K](v)",
        "  |     ^^^",
        "...",
        "5 | last line",
        "  | ---- later",
        " ::: lib.gdn:1:1",
        "  |",
        "1 | fn f(x) = x",
        "  | - declared here",
        "  |",
        "  = note: one",
        "  = note: two",
    ]


def test_a_span_over_several_lines_is_underlined_to_the_end_of_the_first() -> None:
    whole = Span(SOURCE, 0, len(SOURCE.text))
    assert "  | ^^^^^" in render([Diagnostic("E0104", "m", whole)]).splitlines()


def test_the_end_of_a_text_can_be_shown() -> None:
    end = Span(SOURCE, len(SOURCE.text), len(SOURCE.text))
    assert " --> step.gdn:6:1" in render([Diagnostic("E0104", "m", end)])


def test_a_long_line_is_cropped_around_the_place() -> None:
    source = Source("long.gdn", "x" * 5000 + "Y" + "z" * 5000)
    lines = render([Diagnostic("E0101", "m", span("Y", source))]).splitlines()
    assert max(map(len, lines)) < WIDEST_LINE + 20
    shown, marks = lines[3], lines[4]
    assert marks.index("^") == shown.index("Y")


def test_without_a_place() -> None:
    assert render([Diagnostic("G9999", "our fault", None, help="report it")]) == (
        "error[G9999]: our fault\n  = help: report it\n"
    )


def test_several_diagnostics_are_apart() -> None:
    warning = Diagnostic("W0201", "unused", None, severity=Severity.WARNING)
    assert render([warning, warning]) == "warning[W0201]: unused\n\nwarning[W0201]: unused\n"
    assert render([]) == ""


def test_color_only_adds_escapes() -> None:
    import re

    found = Diagnostic("E0303", "m", span("K"), label="a", labels=(Label(span("(v)"), "b"),))
    plain = re.sub(r"\x1b\[[0-9]+m", "", render([found], color=True))
    assert plain == render([found])
    assert render([found], color=True) != plain
