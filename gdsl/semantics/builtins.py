"""The built-ins that compute: elementwise functions, reductions, `index` and casts."""

from __future__ import annotations

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir import interval as iv
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr
from gdsl.ir.operators import OPERATORS
from gdsl.semantics import expressions, typed
from gdsl.semantics.axes import show
from gdsl.semantics.frame import Frame
from gdsl.semantics.names import axis_of
from gdsl.syntax import ast


def elaborate_builtin(node: ast.Builtin, frame: Frame) -> Expr | None:
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
        return expressions.real(value, frame)
    condition = expressions.elaborate(value, frame)
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


def elaborate_reduction(node: ast.Reduction, frame: Frame) -> Expr | None:
    value = expressions.real(node.operand, frame)
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


def elaborate_index(node: ast.Index, frame: Frame) -> Expr | None:
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


def elaborate_cast(node: ast.Cast, frame: Frame) -> Expr | None:
    value = expressions.elaborate(node.operand, frame)
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


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
