"""Calls of `fn`s are expanded in place.

An argument that is more than a name or number becomes a value of its own first, so that expanding
never computes it twice. Nodes of an expanded body carry the span of the outermost call: that is
the line a reader of the kernel looks at.
"""

from __future__ import annotations

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.expr import Const, Expr, Ref, Size
from gdsl.semantics import definitions, expressions
from gdsl.semantics.frame import Binding, Expansion, Frame, Kind
from gdsl.semantics.names import axis_of
from gdsl.semantics.scope import Definition, unknown_callable
from gdsl.source import Span
from gdsl.syntax import ast


def expand(node: ast.Call, frame: Frame) -> Expr | None:
    """Return the body of the function with the call's arguments, or None when reported."""
    definition = frame.scope.find(node.function.text)
    if definition is None or not isinstance(definition.node, ast.Fn):
        for argument in node.arguments:
            expressions.elaborate(_value(argument), frame)
        _not_a_function(node, definition, frame)
        return None
    values = _arguments(node, definition.node, frame)
    axes = _axes(node, definition.node, frame)
    if values is None or axes is None:
        return None
    if not definitions.is_sound(definition, frame.context.reporter):
        return None
    if not frame.may_expand(node.function.span):
        return None
    inner = Frame(
        frame.context,
        definition.scope,
        axes,
        statements=frame.statements,
        expansions=(*frame.expansions, Expansion(definition, node.span)),
    )
    for param in definition.node.params:
        name = param.name.text
        value = values.get(name)
        if value is None and param.default is not None and name not in values:
            value = expressions.elaborate(param.default, inner)
        if value is not None and not isinstance(value, Ref | Const | Size):
            value = frame.let(f"{definition.name}_{name}", value)
        inner.bindings[name] = Binding(name, Kind.ARGUMENT, param.name.span, value)
    return expressions.elaborate(definition.node.body, inner)


def _not_a_function(node: ast.Call, definition: Definition | None, frame: Frame) -> None:
    name = node.function.text
    binding = frame.bindings.get(name)
    if definition is not None:
        frame.error(
            "E0208",
            f"`{name}` is a rule; an expression cannot run it",
            node.function.span,
            labels=(Label(definition.node.name.span, "declared here"),),
            help=f"run it in a line of its own: `o, S = step {name}(...)` or `scan[T] {name}(...)`",
        )
    elif binding is not None:
        binding.used = True
        frame.error(
            "E0208",
            f"`{name}` is {binding.kind.value} and cannot be called",
            node.function.span,
            labels=(Label(binding.span, "declared here"),),
            help=f"to multiply, write `{name} * (...)`",
        )
    else:
        unknown_callable(frame.context.reporter, frame.scope, node.function, ast.Fn)


def _value(argument: ast.Expr | ast.Keyword) -> ast.Expr:
    return argument.value if isinstance(argument, ast.Keyword) else argument


def _arguments(node: ast.Call, fn: ast.Fn, frame: Frame) -> dict[str, Expr | None] | None:
    """Match arguments to parameters; None when they do not match."""
    given: dict[str, Expr | None] = {}
    names = [param.name.text for param in fn.params]
    fits = True
    named = False
    for position, argument in enumerate(node.arguments):
        value = expressions.elaborate(_value(argument), frame)
        span = argument.span
        if isinstance(argument, ast.Keyword):
            name, named, span = argument.name.text, True, argument.name.span
            problem = f"has no parameter `{name}`" if name not in names else None
        elif named:
            name, problem = "", "takes positional arguments before named ones"
        else:
            name = names[position] if position < len(names) else ""
            problem = f"takes {_how_many(fn)}, got {len(node.arguments)}" if not name else None
        if name in given:
            problem = f"gets `{name}` twice"
        if problem is not None:
            _report(fn, f"`{fn.name.text}` {problem}", span, frame)
            fits = False
            break
        given[name] = value
    missing = [p.name.text for p in fn.params if p.default is None and p.name.text not in given]
    if fits and missing:
        shown = ", ".join(f"`{name}`" for name in missing)
        _report(fn, f"`{fn.name.text}` needs {shown}", node.function.span, frame)
        fits = False
    return given if fits and None not in given.values() else None


def _how_many(fn: ast.Fn) -> str:
    required = sum(param.default is None for param in fn.params)
    most = len(fn.params)
    word = "argument" if most == 1 else "arguments"
    return f"{most} {word}" if required == most else f"{required} to {most} {word}"


def _report(fn: ast.Fn, message: str, span: Span, frame: Frame) -> None:
    params = ", ".join(
        p.name.text if p.default is None else f"{p.name.text} = ..." for p in fn.params
    )
    brackets = f"[{', '.join(axis.text for axis in fn.axes)}]" if fn.axes else ""
    frame.error(
        "E0209",
        message,
        span,
        labels=(Label(fn.name.span, "declared here"),),
        help=f"write `{fn.name.text}{brackets}({params})`",
    )


def _axes(node: ast.Call, fn: ast.Fn, frame: Frame) -> dict[str, str] | None:
    bound = [axis_of(name, frame) for name in node.axes]
    if len(bound) != len(fn.axes):
        names = ", ".join(axis.text for axis in fn.axes)
        needed = f"needs the axes [{names}] in brackets" if fn.axes else "names no axes"
        _report(fn, f"`{fn.name.text}` {needed}, got {len(bound)}", node.function.span, frame)
        return None
    known = [axis for axis in bound if axis is not None]
    if len(known) < len(bound):
        return None
    return {axis.text: value for axis, value in zip(fn.axes, known, strict=True)}
