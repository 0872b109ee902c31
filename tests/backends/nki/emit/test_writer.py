"""Lines of emitted Python: wrapped at 120 columns, each origin said once."""

from __future__ import annotations

import ast

import pytest

from backends.nki.emit.writer import WIDTH, Writer, split_arguments
from gdsl.source import Source, Span

SUM = " + ".join(f"rather_long_{place}" for place in range(7))
LONG = [f"argument_{place}=value_{place}" for place in range(9)]


def test_a_call_that_fits_stays_on_its_line() -> None:
    writer = Writer()
    writer.call("nisa.memset", ["dst=a_sb", "value=0.0"])
    assert writer.render() == "nisa.memset(dst=a_sb, value=0.0)\n"


def test_a_wide_call_has_an_argument_a_line() -> None:
    writer = Writer()
    writer.call("f", [*LONG, f"inner=g({', '.join(LONG)})"])
    text = writer.render()
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.splitlines()[1] == "    argument_0=value_0,"
    assert "        argument_8=value_8,\n    ),\n)" in text
    ast.parse(text)


@pytest.mark.parametrize(
    "argument",
    [
        f"first_element=3 * ({SUM})",
        f"the_first_element=3 * (min(a, b) + {SUM[: -len(' + rather_long_6')]})",
        f"first_element=({SUM})",
        f"first_element=({SUM},)",
        f"first_element=g({SUM})",
        f"first_element=({SUM.replace(' +', ',')})",
    ],
)
def test_a_broken_argument_means_what_it_meant(argument: str) -> None:
    """Parentheses that hold a sum together are no tuple, those of one element are."""
    writer = Writer()
    writer.call("f", [argument])
    text = writer.render()
    assert max(map(len, text.splitlines())) <= WIDTH
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(f"f({argument})"))


def test_names_of_a_tuple_too_wide_for_a_line() -> None:
    writer = Writer()
    names = [f"a_rather_long_name_{place}" for place in range(8)]
    writer.names(names, " = pack")
    text = writer.render()
    assert text.startswith("(\n    a_rather_long_name_0,\n")
    assert text.endswith(") = pack\n")
    ast.parse(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [("a, b", ["a", "b"]), ("f(a, b), [c, d]", ["f(a, b)", "[c, d]"]), ("a", ["a"])],
)
def test_arguments_are_split_outside_of_brackets(text: str, parts: list[str]) -> None:
    assert split_arguments(text) == parts


def test_an_origin_is_said_when_it_changes() -> None:
    source = Source("folder/k.gdn", "first\nsecond line\n")
    first, second = Span(source, 0, 5), Span(source, 6, 12)
    writer = Writer()
    for span in (first, first, second, None, second):
        writer.origin(span)
        writer.line("x = 1")
    assert [line for line in writer.lines if line.startswith("#")] == [
        "# k.gdn:1: first",
        "# k.gdn:2: second line",
    ]
    writer.forget_origin()
    writer.origin(second)
    assert writer.lines[-1] == "# k.gdn:2: second line"


def test_origins_can_be_left_out() -> None:
    writer = Writer(origins=False)
    writer.origin(Span(Source("k.gdn", "text"), 0, 4))
    assert writer.lines == []


def test_no_two_empty_lines_and_none_at_the_start_of_a_block() -> None:
    writer = Writer()
    writer.line("if a:")
    with writer.indented():
        writer.blank()
        writer.line("b")
    writer.blank()
    writer.blank()
    writer.line("c")
    assert writer.render() == "if a:\n    b\n\nc\n"
