"""The base of all IR nodes, and the names they use."""

from __future__ import annotations

from attrs import field, frozen

from gdsl.source import Span


@frozen
class Node:
    """An immutable value; where it came from never takes part in equality or hashing."""

    span: Span | None = field(default=None, eq=False, repr=False, kw_only=True)


@frozen(cache_hash=True)
class Symbol:
    """A name made unique by the resolver: two rebindings of `S` share `name`, not `uid`.

    Everything that looks up values by name asks for the hash, so it is kept.
    """

    name: str
    uid: int
