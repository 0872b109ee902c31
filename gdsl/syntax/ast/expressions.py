"""Expressions of the syntax tree."""

from __future__ import annotations

from attrs import frozen

from gdsl.syntax.ast.base import Name, Node


@frozen
class Number(Node):
    """A number as written (`text`) and its value; an integer keeps exact digits."""

    text: str
    value: float | int


@frozen
class NameUse(Node):
    """A value, a param, or an axis standing for its size."""

    name: str


@frozen
class Binary(Node):
    """`operator` is one of + - * / ** < <= > >= == !=."""

    operator: str
    left: Expr
    right: Expr


@frozen
class Negate(Node):
    """`-x`."""

    operand: Expr


@frozen
class Group(Node):
    """An expression in parentheses; kept so that the formatter returns what was written."""

    inner: Expr


@frozen
class Keyword(Node):
    """`name = value` in an argument list."""

    name: Name
    value: Expr


@frozen
class Call(Node):
    """A call of a `fn`."""

    function: Name
    axes: tuple[Name, ...]
    arguments: tuple[Expr | Keyword, ...]


@frozen
class Builtin(Node):
    """An elementwise built-in: `exp(x)`, `where(c, a, b)`."""

    function: Name
    arguments: tuple[Expr | Keyword, ...]


@frozen
class Reduction(Node):
    """`sum[K](x)`."""

    function: Name
    axes: tuple[Name, ...]
    operand: Expr


@frozen
class Index(Node):
    """`index[H]()`."""

    axes: tuple[Name, ...]


@frozen
class Shift(Node):
    """`shift[W](window, x)`."""

    axes: tuple[Name, ...]
    window: Expr
    value: Expr


@frozen
class Unpack(Node):
    """`unpack[C](x)`."""

    axes: tuple[Name, ...]
    operand: Expr


@frozen
class Rename(Node):
    """`rename[K -> J](x)`."""

    source: Name
    target: Name
    operand: Expr


@frozen
class Cast(Node):
    """`bf16(x)`."""

    dtype: Name
    operand: Expr


Expr = (
    Number
    | NameUse
    | Binary
    | Negate
    | Group
    | Call
    | Builtin
    | Reduction
    | Index
    | Shift
    | Unpack
    | Rename
    | Cast
)
