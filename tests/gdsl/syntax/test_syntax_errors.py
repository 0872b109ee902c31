"""What a text that does not parse gets to hear: code, place, words, what to type."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from gdsl.errors import CompileError

Error = Callable[[str], CompileError]

# (text, code, the text at the span, part of the message, part of the help)
CASES = [
    ("fn f(x) = x +\n", "E0101", "\n", "expected an expression, found the end of the line", None),
    ("fn f(x) = x y", "E0101", "y", "expected an operator or the end of the line", None),
    ("fn f(x) = sum(x)", "E0101", "(", "expected `[`", "sum[K](x)"),
    ("fn f(x) = exp[K](x)", "E0101", "[", "expected `(`", "takes no axes"),
    ("kernel k\n", "E0101", "\n", "expected `:`", "end the line that opens a block with `:`"),
    ("rule r(x)\n", "E0101", "(", "expected `[`", "rule delta[K, V](...)"),
    ("12", "E0101", "12", "expected a declaration", None),
    ("kernel k:\n    axes B C\n", "E0101", "C", "found `C`", "commas"),
    ("kernel k:\n    q = if a\n", "E0101", "a", "found `a`", "no control flow"),
    ("kernel k:\n    for i in x\n", "E0101", "i", "found `i`", "no control flow"),
    ("kernel k:\n    let x = 1\n", "E0101", "x", "expected `,` or `=`", "name = expression"),
    ("kernel k:\n    x += 1\n", "E0101", "+", "found `+`", "S = S + x"),
    ("kernel k:\n    input q: f32(B)\n", "E0101", "(", "found `(`", "square brackets"),
    ("kernel k:\n    param s = 1\n", "E0101", "=", "expected `:`", "param scale: float = 1.0"),
    ("kernel k:\n    state S: f32[B]\n", "E0101", "\n", "expected `=`", "where the state starts"),
    ("kernel k:\n    o, S = scan r(q)\n", "E0101", "r", "expected `[`", "scan[T] rule"),
    ("kernel k:\n    x, S = step r(S) + 1\n", "E0101", "+", "end of the line", "line of its own"),
    ("kernel k:\n    call q -> o\n", "E0101", "q", "expected `(`", "call (q, k, v) -> out"),
    ("kernel k:\n    assume 0 <= x <= 1\n", "E0101", "<=", "found `<=`", "do not chain"),
    ("kernel k:\n    x = f(1 2)\n", "E0101", "2", "expected an operator, `)` or `,`", None),
    ("axes B\n", "E0101", "axes", "expected a declaration", "block of a `kernel NAME:`"),
    ("kernel k:\n    axes B\n    rule r[K](x):\n", "E0101", "rule", "found `rule`", "left margin"),
    ("kernel k:\n    input state: f32[B]\n", "E0102", "state", "reserved word", "`state_`"),
    ("kernel k:\n    state S: f32[B] = zeros", "E0102", "zeros", "reserved", "state_in or zeros"),
    ("kernel exp:\n    axes B\n", "E0102", "exp", "reserved word", "`exp_`"),
    ("kernel k:\n    x = y + step r(S)\n", "E0102", "step", "inside an expression", "o, S = step"),
    ("kernel k:\n\taxes B\n", "E0103", "\t", "tab", "four a level"),
    ("# a\tb", "E0103", "\t", "tab", "spaces"),
    ("kernel k:\naxes B\n", "E0104", "axes", "block is missing", "four spaces"),
    ("kernel k:", "E0104", ":", "block is missing", "four spaces"),
    ("kernel k:\n    axes B\n      axes C\n", "E0104", "a", "opens a block", "ends in `:`"),
    ("kernel k:\n    axes B\n  axes C\n", "E0104", "axes", "fits no block", "block it belongs to"),
    ("   use a", "E0104", "u", "no line before it opens a block", None),
    ("fn f(x) = x ^ 2", "E0105", "^", "`^` has no meaning", "`**`"),
    ("fn f(x) = q @ x", "E0105", "@", "`@` has no meaning", "sum[K](a * b)"),
    ("fn f(x) = x × x", "E0105", "×", "`×` has no meaning", "`*`"),
    ("fn f(x) = \x00", "E0105", "\x00", "U+0000", None),
    ("fn f(x) = (x", "E0106", "(", "never closed", "close it"),
    ("fn f(x) = x)", "E0106", ")", "closes nothing", None),
    ('use "abc', "E0106", '"', "does not end", "close it"),
    ('"""abc', "E0106", '"', "does not end", '"""'),
    ("fn f(x) = " + "(" * 70 + "x" + ")" * 70, "E0107", "(", "too deeply", "a name of its own"),
    ("fn f(x) = " + "-" * 400 + "x", "E0107", "-", "too deeply", "a name of its own"),
    ("fn f(x) = " + " + ".join("x" * 400), "E0107", "x", "too deeply", "a name of its own"),
    ("fn f(x) = " + "9" * 5000, "E0108", "9" * 5000, "too many digits", "exponent"),
]


@pytest.mark.parametrize(
    ("text", "code", "place", "message", "hint"), CASES, ids=lambda value: str(value)[:24]
)
def test_message(
    error: Error, text: str, code: str, place: str, message: str, hint: str | None
) -> None:
    (found,) = error(text).diagnostics
    assert found.code == code
    assert found.span is not None
    assert found.span.text == place
    assert message in found.message
    if hint is not None:
        assert found.help is not None
        assert hint in found.help


@pytest.mark.parametrize("text", [case[0] for case in CASES], ids=lambda text: text[:24])
def test_no_name_of_a_terminal_is_shown(error: Error, text: str) -> None:
    (found,) = error(text).diagnostics
    shown = " ".join((found.message, found.label, found.help or ""))
    assert not re.search(r"_ANON|LPAR|RSQB|_NL|_INDENT|_DEDENT|\$END|\bNAME\b(?!:)", shown)


def test_an_open_bracket_is_shown_when_the_line_began_elsewhere(error: Error) -> None:
    (found,) = error("kernel k:\n    x = f(\n        y\n        z)\n").diagnostics
    assert [label.text for label in found.labels] == ["inside this bracket"]


def test_a_range_that_is_half_open_leaves_no_bracket_open(error: Error) -> None:
    text = "kernel k:\n    input g: f32[B] in (-inf, 0]\n    if g > 0:\n"
    (found,) = error(text).diagnostics
    assert found.labels == ()


def test_a_bracket_that_swallows_the_next_line_is_the_mistake(error: Error) -> None:
    text = "kernel k:\n    input g: f32[B] in (-inf, 0]\n    x = f(g\n    output y: f32[B] = x\n"
    (found,) = error(text).diagnostics
    assert found.code == "E0106"
    assert found.span is not None
    assert found.span.start == text.index("(g")
    assert found.labels[0].span is not None
    assert found.labels[0].span.text == "output"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kernel k:\n    ouput y: f32[B] = x\n", "did you mean `output`?"),
        ("kernl k:\n    axes B\n", "did you mean `kernel`?"),
        ("kernel k:\n    x = g[0]\n", "no element is picked by its number"),
    ],
)
def test_what_was_meant(error: Error, text: str, said: str) -> None:
    (found,) = error(text).diagnostics
    assert found.help is not None
    assert said in found.help
