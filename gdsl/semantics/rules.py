"""One call of a rule: its body, typed with the axes of the call."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr, Ref
from gdsl.ir.kernel import Rule, Statement
from gdsl.ir.node import Symbol
from gdsl.ir.types import ANY, Type
from gdsl.semantics import statements
from gdsl.semantics.axes import show
from gdsl.semantics.frame import Binding, Context, Frame, Kind, StateCell
from gdsl.semantics.scope import Definition
from gdsl.source import Span
from gdsl.syntax import ast


def instantiate(
    definition: Definition,
    axes: dict[str, str],
    types: Mapping[str, Type],
    context: Context,
    call: Span | None = None,
    outer: tuple[Definition, ...] = (),
) -> Rule | None:
    """Return the rule for arguments of these types (by parameter name, scan axis removed).

    What is wrong inside the body is reported there. None when something was.
    """
    node = definition.node
    assert isinstance(node, ast.Rule)
    body: list[Statement] = []
    frame = Frame(
        context, definition.scope, axes, statements=body, caller=call, rules=(*outer, definition)
    )
    initial, cell, params = _bind_parameters(node, types, frame)
    fits = True
    for statement in node.body:
        fits &= statements.elaborate(statement, frame)
    results = _results(node, axes, frame)
    fits &= _all_used(node, frame)
    if not cell.written:
        context.reporter.error(
            "E0407",
            f"rule `{node.name.text}` never writes its state `{cell.name}`",
            cell.span,
            label="never assigned in the body",
            help=f"assign it: `{cell.name} = ...`",
        )
        return None
    if not fits or results is None:
        return None
    return Rule(
        node.name.text,
        params,
        tuple(types[p.name.text] for p in node.params if not p.is_state),
        initial,
        cell.type,
        tuple(body),
        tuple(result.symbol for result in results),
        tuple(result.type for result in results),
        cell.latest,
        axes=tuple(axes[axis.text] for axis in node.axes),
        span=node.span,
    )


def _bind_parameters(
    node: ast.Rule, types: Mapping[str, Type], frame: Frame
) -> tuple[Symbol, StateCell, tuple[Symbol, ...]]:
    """Bind the names of the head; return the incoming state, its cell, and the other symbols."""
    params: list[Symbol] = []
    cells: list[StateCell] = []
    for param in node.params:
        name, span = param.name.text, param.name.span
        symbol = frame.context.symbol(name)
        if param.is_state:
            # The state is carried in f32, whatever it is stored in.
            type_ = Type(types[name].axes, Dtype.F32, ANY)
            cells.append(StateCell(name, type_, symbol, span))
            frame.define(Binding(name, Kind.STATE, span, Ref(symbol, type_, span=span), cells[-1]))
        else:
            params.append(symbol)
            frame.define(Binding(name, Kind.ARGUMENT, span, Ref(symbol, types[name], span=span)))
    (cell,) = cells
    return cell.latest, cell, tuple(params)


def _results(node: ast.Rule, axes: dict[str, str], frame: Frame) -> list[Ref] | None:
    """The values behind the arrow, checked against the axes written there."""
    found: list[Ref] = []
    for result in node.results:
        name = result.name.text
        binding = frame.bindings.get(name)
        if binding is None:
            frame.context.reporter.error(
                "E0205",
                f"rule `{node.name.text}` never assigns its result `{name}`",
                result.name.span,
                label="not assigned in the body",
                help=f"assign it: `{name} = ...`",
            )
            continue
        binding.used = True
        if binding.kind is not Kind.VALUE:
            frame.context.reporter.error(
                "E0208",
                f"`{name}` is {_called(binding)}, not a result of the body",
                result.name.span,
                labels=(Label(binding.span, "declared here"),),
                help="the new state is returned anyway; give the result a name of its own",
            )
            continue
        if isinstance(binding.value, Ref) and _carries(result, binding.value, node, axes, frame):
            found.append(binding.value)
    return found if len(found) == len(node.results) else None


def _called(binding: Binding) -> str:
    return "the state" if binding.kind is Kind.STATE else f"an {binding.kind.value}"


def _carries(
    result: ast.RuleResult, value: Expr, node: ast.Rule, axes: dict[str, str], frame: Frame
) -> bool:
    listed = {axes[axis.text] for axis in result.axes if axis.text in axes}
    carried = {axis for axis in value.type.axes if axis in axes.values()}
    if listed == carried:
        return True
    back = {axis: name for name, axis in axes.items()}
    wrong = [f"lacks {show(back[a] for a in sorted(listed - carried))}"] if listed - carried else []
    if carried - listed:
        wrong.append(f"carries {show(back[axis] for axis in sorted(carried - listed))}")
    frame.context.reporter.error(
        "E0306",
        f"result `{result.name.text}` of `{node.name.text}` {' and '.join(wrong)}",
        result.span,
        label=f"declared over {show(axis.text for axis in result.axes)}",
        labels=(
            Label(value.span, f"carries {show(back[a] for a in value.type.axes if a in back)}"),
        )
        if value.span is not None
        else (),
    )
    return False


def _all_used(node: ast.Rule, frame: Frame) -> bool:
    fits = True
    for param in node.params:
        binding = frame.bindings.get(param.name.text)
        if binding is not None and not binding.used and not param.is_state:
            fits = False
            frame.context.reporter.error(
                "E0204",
                f"rule `{node.name.text}` does not use its argument `{param.name.text}`",
                param.span,
                label="never used in the body",
                help="use it, or remove it from the list",
            )
    return fits


def with_axis(type_: Type, axis: str | None, context: Context) -> Type:
    """Return a type that also carries `axis`."""
    if axis is None:
        return type_
    return evolve(type_, axes=context.axes.ordered((*type_.axes, axis)))
