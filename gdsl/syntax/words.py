"""The words of the grammar, and how messages call the things that may stand in a text.

Everything here is read from the grammar, so the highlighter and the messages never fall behind it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from gdsl.syntax.grammar import parser

_KINDS = {
    "NAME": "a name",
    "INT": "a whole number",
    "FLOAT": "a number",
    "STRING": "a text in quotes",
    "DOC": "a doc string",
    "_NL": "the end of the line",
    "_INDENT": "an indented block",
    "_DEDENT": "the end of the block",
    "$END": "the end of the file",
}


@cache
def spellings() -> dict[str, str]:
    """Return terminal name -> fixed spelling, for every word and sign of the grammar."""
    return {
        terminal.name: terminal.pattern.value
        for terminal in parser().terminals
        if terminal.pattern.type == "str"
    }


@cache
def reserved() -> frozenset[str]:
    """Return the reserved words."""
    return frozenset(text for text in spellings().values() if text[0].isalpha())


def describe(terminal: str) -> str:
    """Return what a terminal is called in a message."""
    if terminal in _KINDS:
        return _KINDS[terminal]
    return f"`{spellings()[terminal]}`"


def one_of(terminals: Iterable[str]) -> str:
    """Return "a, b or c" for a set of terminals: kinds first, then words, then signs."""

    def order(terminal: str) -> tuple[int, str]:
        spelling = spellings().get(terminal, "")
        rank = 0 if terminal in _KINDS else 1 if spelling[:1].isalpha() else 2
        return rank, describe(terminal)

    texts = [describe(terminal) for terminal in sorted(terminals, key=order)]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} or {texts[-1]}"
