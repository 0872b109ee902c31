"""Axes and tensor dimensions.

Inside a kernel a value carries *atomic* axes only, by name. A tensor argument has an ordered list
of dimensions; each is size 1, one axis, a product of dimensions (the last cycles fastest), or a
packed axis (named fields side by side). A packed axis counts as one atomic axis until `unpack`.
"""

from __future__ import annotations

from attrs import frozen

from gdsl.ir.node import Node


@frozen
class Axis(Node):
    """An atomic axis of a kernel. `at_most` and `multiple_of` are facts the text states."""

    name: str
    at_most: int | None = None
    multiple_of: int = 1


@frozen
class Unit(Node):
    """A dimension of size 1."""


@frozen
class Atom(Node):
    """A dimension that is one axis."""

    axis: str


@frozen
class Product(Node):
    """Several dimensions as one, row-major: the last part cycles fastest."""

    parts: tuple[Dim, ...]


@frozen
class Packed(Node):
    """A named axis made of fields side by side, in order."""

    name: str
    fields: tuple[tuple[str, Dim], ...]


Dim = Unit | Atom | Product | Packed
