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


@cache
def first_terminals(rule: str) -> frozenset[str]:
    """Return the terminals that an instance of a grammar rule can start with."""
    found: set[str] = set()
    pending, seen = [rule], {rule}
    while pending:
        name = pending.pop()
        for alternative in parser().rules:
            if alternative.origin.name != name or not alternative.expansion:
                continue
            first = alternative.expansion[0]
            if first.is_term:
                found.add(first.name)
            elif first.name not in seen:
                seen.add(first.name)
                pending.append(first.name)
    return frozenset(found)


def words(*rules: str) -> frozenset[str]:
    """Return the reserved words that instances of grammar rules can start with."""
    terminals = (terminal for rule in rules for terminal in first_terminals(rule))
    return frozenset(spellings().get(terminal, "") for terminal in terminals) & reserved()


def describe(terminal: str) -> str:
    """Return what a terminal is called in a message."""
    if terminal in _KINDS:
        return _KINDS[terminal]
    return f"`{spellings()[terminal]}`"


def one_of(terminals: Iterable[str]) -> str:
    """Return "a, b or c" for a set of terminals: groups first, then kinds, words and signs."""
    left = set(terminals)
    texts = []
    for members, group in _groups():
        if members <= left:
            texts.append(group)
            left -= members

    def order(terminal: str) -> tuple[int, str]:
        spelling = spellings().get(terminal, "")
        rank = 0 if terminal in _KINDS else 1 if spelling[:1].isalpha() else 2
        return rank, describe(terminal)

    texts.extend(describe(terminal) for terminal in sorted(left, key=order))
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} or {texts[-1]}"


@cache
def _groups() -> tuple[tuple[frozenset[str], str], ...]:
    """Sets of terminals that have one name together, larger ones first."""
    terminal = {spelling: name for name, spelling in spellings().items()}
    arithmetic = frozenset(terminal[sign] for sign in ("+", "-", "*", "/", "**"))
    brackets = frozenset((terminal["("], terminal["["]))
    comparison = first_terminals("comparison")
    dtype = first_terminals("dtype")
    return (
        (first_terminals("expr"), "an expression"),
        (first_terminals("_kernel_item"), "a declaration or an assignment"),
        (first_terminals("_declaration"), "a declaration"),
        (arithmetic | comparison | brackets, "an operator"),
        (arithmetic | comparison, "an operator"),
        (arithmetic | brackets, "an operator"),
        (arithmetic, "an operator"),
        (first_terminals("_dim"), "a dimension"),
        (dtype | {"NAME"}, "a dtype"),
        (dtype, "a dtype"),
        (frozenset({"INT", "FLOAT"}), "a number"),
    )
