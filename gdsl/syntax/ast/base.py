"""What all nodes of the syntax tree share, names and doc strings."""

from __future__ import annotations

from attrs import field, frozen

from gdsl.source import Span


@frozen
class Node:
    """A piece of syntax and where it stands."""

    span: Span = field(eq=False, repr=False, kw_only=True)


@frozen
class Name(Node):
    """An identifier."""

    text: str


@frozen
class Doc(Node):
    """A doc string without its quotes; `quotes` is the delimiter it was written with."""

    text: str
    quotes: str
