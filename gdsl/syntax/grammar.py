"""The lark parser made from `gdsl.lark`, once per process."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark

from gdsl.syntax.layout import Layout


def grammar_text() -> str:
    """Return the grammar."""
    return files("gdsl.syntax").joinpath("gdsl.lark").read_text(encoding="utf-8")


@cache
def parser() -> Lark:
    """Return the parser; `strict` conflicts are excluded by a test, which is slower."""
    # A basic lexer: a word of the grammar is reserved everywhere, not only where it could stand.
    return Lark(
        grammar_text(),
        parser="lalr",
        lexer="basic",
        postlex=Layout(),
        propagate_positions=True,
        maybe_placeholders=True,
    )
