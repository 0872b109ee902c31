"""Direct parts of an expression of the syntax tree, for walks that do not care what it means."""

from __future__ import annotations

from typing import assert_never

from gdsl.syntax import ast


def children(node: ast.Expr) -> tuple[ast.Expr, ...]:
    """Return the direct subexpressions, in order; named arguments by their values."""
    match node:
        case ast.Number() | ast.NameUse() | ast.Index():
            return ()
        case ast.Binary(left=left, right=right):
            return (left, right)
        case ast.Group(inner=inner):
            return (inner,)
        case ast.Shift(window=window, value=value):
            return (window, value)
        case ast.Call(arguments=arguments) | ast.Builtin(arguments=arguments):
            return tuple(a.value if isinstance(a, ast.Keyword) else a for a in arguments)
        case (
            ast.Negate(operand=operand)
            | ast.Reduction(operand=operand)
            | ast.Unpack(operand=operand)
            | ast.Rename(operand=operand)
            | ast.Cast(operand=operand)
        ):
            return (operand,)
        case _:
            assert_never(node)


def axis_names(node: ast.Expr) -> tuple[ast.Name, ...]:
    """Return the axis names written at this node itself."""
    match node:
        case (
            ast.Call(axes=axes)
            | ast.Reduction(axes=axes)
            | ast.Index(axes=axes)
            | ast.Shift(axes=axes)
            | ast.Unpack(axes=axes)
        ):
            return axes
        case ast.Rename(source=source, target=target):
            return (source, target)
        case _:
            return ()
