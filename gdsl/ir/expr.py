"""Expressions. A closed union: every consumer matches all of it and ends in `assert_never`.

Values broadcast by axis name. `fn` calls are inlined by semantics, so nothing here calls anything.
"""

from __future__ import annotations

from attrs import frozen

from gdsl.ir.dtypes import Dtype
from gdsl.ir.node import Node, Symbol
from gdsl.ir.types import Type


@frozen
class Ref(Node):
    """The value of a name."""

    symbol: Symbol
    type: Type


@frozen
class Const(Node):
    """A real number written in the text."""

    value: float
    type: Type


@frozen
class Size(Node):
    """The size of an atomic axis as a number: `K` in `K ** -0.5`."""

    axis: str
    type: Type


@frozen
class Apply(Node):
    """An elementwise operator of `gdsl.ir.operators`; args broadcast by axis name."""

    operator: str
    args: tuple[Expr, ...]
    type: Type


@frozen
class Reduce(Node):
    """`sum`, `mean`, `max` or `min` over named axes."""

    operator: str
    axes: tuple[str, ...]
    arg: Expr
    type: Type


@frozen
class Index(Node):
    """`index[H]()`: 0, 1, 2, ... along an axis."""

    axis: str
    type: Type


@frozen
class Cast(Node):
    """Round to a dtype at this point: `bf16(x)`."""

    dtype: Dtype
    arg: Expr
    type: Type


@frozen
class Rename(Node):
    """`rename[K -> J](x)`: the same values along another axis of equal size."""

    source: str
    target: str
    arg: Expr
    type: Type


@frozen
class Shift(Node):
    """`shift[W](window, x)`: drop column 0 of the window, append x as the last column."""

    axis: str
    window: Expr
    value: Expr
    type: Type


@frozen
class Unpack(Node):
    """One field of a packed axis; its own atomic axes replace the packed one."""

    packed: str
    field: str
    arg: Expr
    type: Type


Expr = Ref | Const | Size | Apply | Reduce | Index | Cast | Rename | Shift | Unpack
