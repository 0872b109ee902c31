"""Expressions: syntax tree -> typed IR. None means that a part was wrong and has been reported."""

from __future__ import annotations

import math
from typing import assert_never

from attrs import evolve

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir import interval as iv
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr, Ref
from gdsl.ir.operators import OPERATORS
from gdsl.semantics import functions, typed
from gdsl.semantics.axes import show, unknown_axis, value_axes
from gdsl.semantics.frame import Frame, Kind
from gdsl.semantics.reorder import elaborate_rename, elaborate_shift
from gdsl.source import Span
from gdsl.suggest import did_you_mean
from gdsl.syntax import ast

_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow",
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
}  # fmt: skip


def elaborate(node: ast.Expr, frame: Frame) -> Expr | None:
    """Return the typed expression of `node`, or None when something in it was reported."""
    match node:
        case ast.Number():
            return _number(node, frame)
        case ast.NameUse():
            return _name(node, frame)
        case ast.Group(inner=inner):
            return elaborate(inner, frame)
        case ast.Negate(operand=operand):
            value = _real(operand, frame)
            return value and typed.negate(value, frame.context.axes, frame.place(node.span))
        case ast.Binary():
            return _binary(node, frame)
        case ast.Builtin():
            return _builtin(node, frame)
        case ast.Reduction():
            return _reduction(node, frame)
        case ast.Call():
            return functions.expand(node, frame)
        case ast.Index():
            return _index(node, frame)
        case ast.Shift():
            return elaborate_shift(node, frame)
        case ast.Rename():
            return elaborate_rename(node, frame)
        case ast.Cast():
            return _cast(node, frame)
        case ast.Unpack():
            _stray_unpack(node, frame)
            return None
        case _:
            assert_never(node)


def _number(node: ast.Number, frame: Frame) -> Expr | None:
    value = number_value(node.value)
    if value is None:
        frame.error(
            "E0108",
            f"the number {_shortened(node.text)} does not fit f32",
            node.span,
            label="cannot be held",
            help=f"f32 holds 0 and magnitudes from {iv.F32_TINY:.3g} to {iv.F32_MAX:.3g}",
        )
        return None
    return typed.constant(value, frame.place(node.span))


def number_value(value: float | int) -> float | None:
    """Return a number as a float, or None when f32 has neither it nor a neighbour of it."""
    if isinstance(value, int) and abs(value) > 10**40:
        return None
    real = float(value)
    fits = real == 0 or iv.F32_TINY <= abs(real) <= iv.F32_MAX
    lost = real == 0 and value != 0
    return real if fits and not lost and math.isfinite(real) else None


def _shortened(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:12]}...{text[-6:]}"


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


def unknown_name(name: str, span: Span, frame: Frame) -> None:
    """Report a name that stands for nothing here."""
    known = sorted({*frame.bindings, *frame.axes})
    callable_ = frame.scope.find(name)
    if callable_ is not None:
        frame.error(
            "E0208",
            f"`{name}` is a {'rule' if isinstance(callable_.node, ast.Rule) else 'function'}",
            span,
            label="not a value",
            labels=(Label(callable_.node.name.span, "declared here"),),
            help=f"call it: `{name}(...)`",
        )
        return
    frame.error(
        "E0201",
        f"unknown name `{name}`{did_you_mean(name, known)}",
        span,
        label="not defined here",
    )


def _real(node: ast.Expr, frame: Frame) -> Expr | None:
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
    left, right = _real(node.left, frame), _real(node.right, frame)
    if left is None or right is None:
        return None
    table, span = frame.context.axes, frame.place(node.span)
    return typed.apply(_OPERATORS[node.operator], (left, right), table, span)


def _builtin(node: ast.Builtin, frame: Frame) -> Expr | None:
    name = node.function.text
    operator = OPERATORS[name]
    for argument in node.arguments:
        if isinstance(argument, ast.Keyword):
            frame.error(
                "E0209",
                f"`{name}` takes no named arguments",
                argument.name.span,
                help="give the value alone",
            )
    values = [_argument(name, i, arg, frame) for i, arg in enumerate(node.arguments)]
    if len(values) != operator.arity:
        frame.error(
            "E0209",
            f"`{name}` takes {_count(operator.arity, 'argument')}, got {len(values)}",
            node.function.span,
            help=_SIGNATURES.get(name, f"write `{name}(x)`"),
        )
        return None
    known = [value for value in values if value is not None]
    named = any(isinstance(argument, ast.Keyword) for argument in node.arguments)
    if named or len(known) < len(values) or not _in_domain(node, known, frame):
        return None
    return typed.apply(name, known, frame.context.axes, frame.place(node.span))


_SIGNATURES = {
    "where": "write `where(condition, a, b)`",
    "min": "write `min(a, b)`, or `min[K](x)` over an axis",
    "max": "write `max(a, b)`, or `max[K](x)` over an axis",
}
_DOMAINS = {"log": "positive", "rsqrt": "positive", "sqrt": "0 or more"}


def _argument(
    function: str, position: int, node: ast.Expr | ast.Keyword, frame: Frame
) -> Expr | None:
    value = node.value if isinstance(node, ast.Keyword) else node
    if function != "where" or position > 0:
        return _real(value, frame)
    condition = elaborate(value, frame)
    if condition is None or condition.type.dtype is Dtype.BOOL:
        return condition
    frame.error(
        "E0308",
        "the first argument of `where` must be a condition",
        value.span,
        label="this is a number",
        help="compare it with something, for example `x > 0`, or use a bool input",
    )
    return None


def _in_domain(node: ast.Builtin, values: list[Expr], frame: Frame) -> bool:
    """Refuse an argument of which no value has a result."""
    name = node.function.text
    if name not in _DOMAINS:
        return True
    known = values[0].type.range
    if known.hi > 0 or (name == "sqrt" and known.hi == 0 and not known.hi_open):
        return True
    frame.error(
        "E0309",
        f"`{name}` has no value here: its argument lies in {iv.show(known)}",
        node.arguments[0].span,
        label=f"in {iv.show(known)}",
        notes=(f"`{name}` needs an argument that is {_DOMAINS[name]}",),
    )
    return False


def _reduction(node: ast.Reduction, frame: Frame) -> Expr | None:
    value = _real(node.operand, frame)
    axes = [axis_of(name, frame) for name in node.axes]
    if value is None:
        return None
    known: list[str] = []
    for name, axis in zip(node.axes, axes, strict=True):
        if axis is None:
            return None
        if axis in known:
            frame.error("E0305", f"axis `{name.text}` is reduced twice", name.span)
            return None
        if axis not in value.type.axes:
            _absent(node, name, axis, value, frame)
            return None
        known.append(axis)
    return typed.reduce(
        node.function.text, tuple(known), value, frame.context.axes, frame.place(node.span)
    )


def _absent(node: ast.Reduction, name: ast.Name, axis: str, value: Expr, frame: Frame) -> None:
    carried = show(value.type.axes) if value.type.axes else "no axis"
    shown = name.text if name.text == axis else f"{name.text}` (here `{axis}`)"
    quoted = f"`{shown}`" if name.text == axis else f"`{shown}"
    frame.error(
        "E0303",
        f"`{node.function.text}` over {quoted}, which its argument does not carry",
        name.span,
        label=f"the argument carries {carried}",
        labels=() if frame.expansions else (Label(node.operand.span, f"carries {carried}"),),
        help=f"reduce over one of {show(value.type.axes)}" if value.type.axes else None,
    )


def axis_of(name: ast.Name, frame: Frame) -> str | None:
    """Return the kernel axis an axis name stands for; reports names that are none."""
    axis = frame.axes.get(name.text)
    if axis is not None:
        frame.context.axes.used.add(axis)
        return axis
    table = frame.context.axes
    if not frame.expansions and name.text in table.composites:
        parts = show(value_axes(table.composites[name.text]))
        frame.error(
            "E0311",
            f"`{name.text}` is a composite axis; values carry its parts {parts}",
            name.span,
            labels=(Label(table.spans[name.text], "declared here"),),
            help=f"write {parts}",
        )
    elif name.text in frame.bindings:
        binding = frame.bindings[name.text]
        frame.error(
            "E0208",
            f"`{name.text}` is not an axis",
            name.span,
            label="an axis is needed here",
            labels=(Label(binding.span, f"this {binding.kind.value} has the name"),),
        )
    elif frame.expansions:
        inside = frame.expansions[-1].definition.name
        frame.error(
            "E0201",
            f"`{inside}` uses the axis `{name.text}`, which it does not name",
            name.span,
            help=f"add it to the function's brackets: `fn {inside}[{name.text}](...)`",
        )
    elif name.text not in table.spans or frame.axes:
        unknown_axis(name.text, name.span, frame.axes, frame.context.reporter)
    return None


def _index(node: ast.Index, frame: Frame) -> Expr | None:
    axes = [axis_of(name, frame) for name in node.axes]
    if len(axes) != 1:
        frame.error("E0209", f"`index` takes one axis, got {len(axes)}", node.span)
        return None
    axis = axes[0]
    if axis is None:
        return None
    if axis in frame.context.axes.packed:
        frame.error("E0311", f"`index` cannot count along the packed axis `{axis}`", node.span)
        return None
    return typed.index(axis, frame.context.axes, frame.place(node.span))


def _cast(node: ast.Cast, frame: Frame) -> Expr | None:
    value = elaborate(node.operand, frame)
    if node.dtype.text == "bool":
        frame.error(
            "E0308",
            "nothing is rounded to bool",
            node.dtype.span,
            help="compare instead: `x != 0`",
        )
        return None
    if value is None:
        return None
    return typed.cast(Dtype(node.dtype.text), value, frame.place(node.span))


def _stray_unpack(node: ast.Unpack, frame: Frame) -> None:
    elaborate(node.operand, frame)
    frame.error(
        "E0313",
        "`unpack` gives several values and cannot stand inside an expression",
        node.span,
        help="name its fields: `q, k, v = unpack[C](x)`",
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
