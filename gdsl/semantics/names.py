"""What a name stands for here, and what is said when it stands for nothing."""

from __future__ import annotations

from gdsl.diagnostics.diagnostic import Label
from gdsl.semantics.axes import show, unknown_axis, value_axes
from gdsl.semantics.frame import Frame
from gdsl.source import Span
from gdsl.suggest import did_you_mean
from gdsl.syntax import ast


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
    state = frame.context.state_arguments.get(name)
    frame.error(
        "E0201",
        f"unknown name `{name}`{did_you_mean(name, known)}",
        span,
        label="not defined here",
        help=f"it is the argument that state `{state}` starts from; write `{state}`"
        if state is not None
        else None,
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
