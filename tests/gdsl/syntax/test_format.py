"""The formatter: the tree stays, comments stay, twice is once."""

from __future__ import annotations

import random
import re

import pytest

from gdsl.errors import CompileError
from gdsl.source import Source
from gdsl.syntax.format import WIDTH, format_source
from gdsl.syntax.parse import parse

UNTIDY = '''# top
"""File doc"""   # why
use a , b  # libs
# about f
fn f( x )=x*2 # tail

# alone

rule r[K]( q[K],   # the query
    # own line
    state S[K]) -> o:  # head
    # in body
    S=S*2; o = sum[K](q*S) # both


    # end of body
# top again
kernel k:
  axes B
  input x: f32[B];input y: f32[B] "doc"
  o = f(
     x # arg
   )
  # last
'''

TIDY = '''# top
"""File doc"""  # why
use a, b  # libs
# about f
fn f(x) = x * 2  # tail

# alone

# the query
# own line
rule r[K](q[K], state S[K]) -> o:  # head
    # in body
    S = S * 2  # both
    o = sum[K](q * S)

    # end of body

# top again
kernel k:
    axes B
    input x: f32[B]
    input y: f32[B]  "doc"
    # arg
    o = f(x)
    # last
'''


def formatted_text(text: str) -> str:
    return format_source(Source("<text>", text))


def test_canonical_layout() -> None:
    assert formatted_text(UNTIDY) == TIDY
    assert formatted_text(TIDY) == TIDY


def test_long_lines_break_at_brackets() -> None:
    names = ", ".join(f"argument_number_{i}" for i in range(9))
    text = f"kernel k:\n    o, S = step some_rule({names}, S)\n"
    formatted = formatted_text(text)
    assert max(map(len, formatted.splitlines())) <= WIDTH
    assert formatted.splitlines()[1] == "    o, S = step some_rule("
    assert formatted.splitlines()[-1] == "    )"
    assert parse(Source("a", formatted)) == parse(Source("a", text))
    assert formatted_text(formatted) == formatted


def test_library_is_formatted(library_file: Source) -> None:
    assert format_source(library_file) == library_file.text


@pytest.mark.parametrize("seed", range(3))
def test_random_layout_does_not_matter(library_file: Source, seed: int) -> None:
    untidy = _disturbed(library_file.text, random.Random(seed))
    formatted = formatted_text(untidy)
    assert parse(Source("a", formatted)) == parse(library_file)
    assert formatted_text(formatted) == formatted
    assert sorted(_comments(formatted)) == sorted(_comments(untidy))


def _disturbed(text: str, rng: random.Random) -> str:
    """The same text with other spaces, empty lines and more comments."""
    lines = []
    quoted = False
    for number, line in enumerate(text.split("\n")):
        inside = quoted
        quoted ^= line.count('"""') % 2 == 1
        plain = not inside and not quoted and '"' not in line and "#" not in line
        if plain and rng.random() < 0.2:
            lines.append(f"{' ' * rng.randrange(8)}# comment {number}")
        if plain and rng.random() < 0.2:
            lines.append("")
        if plain:
            line = re.sub(r", | = | \+ ", lambda m: _spread(m[0].strip(), rng), line)
            if line.strip() and rng.random() < 0.2:
                line = f"{line}   # behind {number}"
        lines.append(line)
    return "\n".join(lines)


def _spread(sign: str, rng: random.Random) -> str:
    return f"{' ' * rng.randrange(3)}{sign}{' ' * rng.randrange(1, 3)}"


def _comments(text: str) -> list[str]:
    outside = re.sub(r'"""(?:[^"]|"(?!""))*"""|"[^"\n]*"', "", text)
    return [comment.rstrip() for comment in re.findall(r"#[^\n]*", outside)]


def test_a_text_that_does_not_parse_is_an_error() -> None:
    with pytest.raises(CompileError):
        formatted_text("kernel")
