"""The base of all IR nodes, and the names they use."""

from __future__ import annotations

from attrs import field, frozen

from gdsl.source import Span


@frozen
class Node:
    """An immutable value; where it came from never takes part in equality or hashing."""

    span: Span | None = field(default=None, eq=False, repr=False, kw_only=True)


@frozen
class Symbol:
    """A name made unique by the resolver: two rebindings of `S` share `name`, not `uid`."""

    name: str
    uid: int
