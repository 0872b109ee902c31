"""Expressions: syntax tree -> typed IR. None means that a part was wrong and has been reported."""

from __future__ import annotations

from typing import assert_never

from attrs import evolve

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr, Ref
from gdsl.semantics import builtins, functions, typed
from gdsl.semantics.frame import Frame, Kind
from gdsl.semantics.measure import is_too_large
from gdsl.semantics.names import unknown_name
from gdsl.semantics.numbers import elaborate_number
from gdsl.semantics.reorder import elaborate_rename, elaborate_shift
from gdsl.syntax import ast

_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow",
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
}  # fmt: skip


def elaborate_whole(node: ast.Expr, frame: Frame) -> Expr | None:
    """Return a typed expression that stands by itself, refused when it has grown too large."""
    value = elaborate(node, frame)
    if value is None or not is_too_large(value):
        return value
    frame.error(
        "E0107",
        "this expression is too large",
        node.span,
        help="give parts of it names of their own",
    )
    return None


def elaborate(node: ast.Expr, frame: Frame) -> Expr | None:
    """Return the typed expression of `node`, or None when something in it was reported."""
    match node:
        case ast.Number():
            return elaborate_number(node, frame)
        case ast.NameUse():
            return _name(node, frame)
        case ast.Group(inner=inner):
            return elaborate(inner, frame)
        case ast.Negate(operand=operand):
            value = real(operand, frame)
            return value and typed.negate(value, frame.context.axes, frame.place(node.span))
        case ast.Binary():
            return _binary(node, frame)
        case ast.Builtin():
            return builtins.elaborate_builtin(node, frame)
        case ast.Reduction():
            return builtins.elaborate_reduction(node, frame)
        case ast.Call():
            return functions.expand(node, frame)
        case ast.Index():
            return builtins.elaborate_index(node, frame)
        case ast.Shift():
            return elaborate_shift(node, frame)
        case ast.Rename():
            return elaborate_rename(node, frame)
        case ast.Cast():
            return builtins.elaborate_cast(node, frame)
        case ast.Unpack():
            _stray_unpack(node, frame)
            return None
        case _:
            assert_never(node)


def _name(node: ast.NameUse, frame: Frame) -> Expr | None:
    binding = frame.bindings.get(node.name)
    if binding is not None:
        binding.used = True
        if binding.kind is Kind.DTYPE:
            frame.error(
                "E0208",
                f"`{node.name}` is a dtype, not a value",
                node.span,
                labels=(Label(binding.span, "declared here"),),
            )
            return None
        if binding.unusable:
            frame.error("E0208", binding.unusable, node.span)
            return None
        if isinstance(binding.value, Ref):
            return evolve(binding.value, span=frame.place(node.span))
        return binding.value
    axis = frame.axes.get(node.name)
    if axis is None:
        table = frame.context.axes
        if not frame.expansions and node.name in table.composites:
            axis = node.name
        else:
            unknown_name(node.name, node.span, frame)
            return None
    frame.context.axes.used.add(axis)
    return typed.size(axis, frame.context.axes, frame.place(node.span))


def real(node: ast.Expr, frame: Frame) -> Expr | None:
    """Elaborate something that must be a number, not a condition."""
    value = elaborate(node, frame)
    if value is None or value.type.dtype is not Dtype.BOOL:
        return value
    frame.error(
        "E0308",
        "a condition stands where a number is needed",
        node.span,
        label="this is bool",
        help="choose between two numbers: `where(condition, 1, 0)`",
    )
    return None


def _binary(node: ast.Binary, frame: Frame) -> Expr | None:
    left, right = real(node.left, frame), real(node.right, frame)
    if left is None or right is None:
        return None
    table, span = frame.context.axes, frame.place(node.span)
    return typed.apply(_OPERATORS[node.operator], (left, right), table, span)


def _stray_unpack(node: ast.Unpack, frame: Frame) -> None:
    elaborate(node.operand, frame)
    frame.error(
        "E0313",
        "`unpack` gives several values and cannot stand inside an expression",
        node.span,
        help="name its fields: `q, k, v = unpack[C](x)`",
    )
