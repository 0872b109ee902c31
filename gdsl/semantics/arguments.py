"""The arguments of a rule call: bound axes, and the closed list of what each may carry."""

from __future__ import annotations

from attrs import evolve, frozen

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.expr import Expr
from gdsl.semantics import expressions
from gdsl.semantics.axes import show
from gdsl.semantics.frame import Frame
from gdsl.semantics.names import axis_of
from gdsl.syntax import ast


@frozen
class Argument:
    """One argument of a call: the parameter it fills, its text and its value (None: reported)."""

    param: ast.RuleParam
    node: ast.Expr
    value: Expr | None


def without_value(item: Argument) -> Argument:
    """Return an argument whose value was reported."""
    return evolve(item, value=None)


def signature(rule: ast.Rule) -> str:
    """Return a rule's head as a reader types its call."""
    return f"{rule.name.text}({', '.join(param.name.text for param in rule.params)})"


def match(node: ast.RuleCall, rule: ast.Rule, frame: Frame) -> list[Argument] | None:
    """Pair arguments with parameters; None when their number is wrong (reported)."""
    nodes: list[ast.Expr] = []
    named = False
    for argument in node.arguments:
        if isinstance(argument, ast.Keyword):
            named = True
            frame.error(
                "E0209",
                "arguments of a rule are given by position",
                argument.name.span,
                labels=(Label(rule.name.span, "declared here"),),
                help=f"write `{signature(rule)}`",
            )
            nodes.append(argument.value)
        else:
            nodes.append(argument)
    values = [expressions.elaborate_whole(item, frame) for item in nodes]
    if len(nodes) != len(rule.params):
        frame.error(
            "E0209",
            f"`{rule.name.text}` takes {len(rule.params)} arguments, got {len(nodes)}",
            node.rule.span,
            labels=(Label(rule.name.span, "declared here"),),
            help=f"write `{signature(rule)}`",
        )
    if named or len(nodes) != len(rule.params):
        return None
    return [
        Argument(param, item, value)
        for param, item, value in zip(rule.params, nodes, values, strict=True)
    ]


def bind_axes(node: ast.RuleCall, rule: ast.Rule, frame: Frame) -> dict[str, str] | None:
    """Return rule axis -> kernel axis: by the brackets of the call, else by equal names."""
    if not node.axes:
        return _by_name(node, rule, frame)
    bound = [axis_of(name, frame) for name in node.axes]
    names = [axis.text for axis in rule.axes]
    if len(bound) != len(names):
        frame.error(
            "E0312",
            f"`{rule.name.text}` has the axes {show(names)}, got {len(bound)}",
            node.rule.span,
            labels=(Label(rule.name.span, "declared here"),),
            help=f"name one axis for each of {show(names)}, in this order",
        )
        return None
    known = [axis for axis in bound if axis is not None]
    if len(known) < len(bound):
        return None
    for position, axis in enumerate(known):
        if axis in known[:position]:
            first = known.index(axis)
            frame.error(
                "E0312",
                f"`{axis}` stands for both `{names[first]}` and `{names[position]}`",
                node.axes[position].span,
                labels=(Label(rule.name.span, f"`{rule.name.text}` keeps its axes apart"),),
            )
            return None
    return dict(zip(names, known, strict=True))


def _by_name(node: ast.RuleCall, rule: ast.Rule, frame: Frame) -> dict[str, str] | None:
    names = [axis.text for axis in rule.axes]
    missing = [name for name in names if name not in frame.axes]
    if any(frame.context.reporter.has("E0201", name) for name in missing):
        return None
    if missing:
        composite = [name for name in missing if name in frame.context.axes.composites]
        example = ", ".join(name if name in frame.axes else f"D{name.lower()}" for name in names)
        frame.error(
            "E0312",
            f"axis `{missing[0]}` of `{rule.name.text}` is no axis here",
            node.rule.span,
            label=f"binds {show(names)} by name",
            labels=(Label(rule.name.span, f"`{rule.name.text}` is declared over {show(names)}"),),
            notes=(f"`{composite[0]}` is a composite axis; values carry its parts",)
            if composite
            else (),
            help=f"say which axes stand for them: `{rule.name.text}[{example}](...)`",
        )
        return None
    return {name: frame.axes[name] for name in names}


def check(
    arguments: list[Argument],
    rule: ast.Rule,
    axes: dict[str, str],
    scan: str | None,
    frame: Frame,
) -> bool:
    """Report arguments that lack an axis, carry one too many, or one the state does not carry."""
    problems = [(item, problem) for item in arguments if (problem := _problem(item, axes, scan))]
    explained: list[Argument] = []
    for item, problem in problems:
        if item in explained:
            continue
        exchanged = _exchanged(item, problems, axes, scan)
        if exchanged is not None:
            explained.append(exchanged)
        _report(item, problem, rule, axes, exchanged, frame)
    if problems or any(item.value is None for item in arguments):
        return False
    return _check_mapped(arguments, rule, axes, scan, frame)


@frozen
class _Problem:
    code: str
    axes: tuple[str, ...]


def _problem(item: Argument, axes: dict[str, str], scan: str | None) -> _Problem | None:
    if item.value is None:
        return None
    return _unfit(item.param, item.value, axes, scan)


def _unfit(
    param: ast.RuleParam, value: Expr, axes: dict[str, str], scan: str | None
) -> _Problem | None:
    carried = set(value.type.axes) - {scan}
    listed = {axes[axis.name]: axis.optional for axis in param.axes if axis.name in axes}
    missing = [axis for axis, optional in listed.items() if not optional and axis not in carried]
    if missing:
        return _Problem("E0301", tuple(missing))
    extra = [axis for axis in axes.values() if axis in carried and axis not in listed]
    return _Problem("E0302", tuple(extra)) if extra else None


def _exchanged(
    item: Argument,
    problems: list[tuple[Argument, _Problem]],
    axes: dict[str, str],
    scan: str | None,
) -> Argument | None:
    """Another argument with a problem such that exchanging the two repairs both."""
    for other, _ in problems:
        if other is item or other.value is None or item.value is None:
            continue
        pairs = ((item.param, other.value), (other.param, item.value))
        if all(_unfit(param, value, axes, scan) is None for param, value in pairs):
            return other
    return None


def _report(
    item: Argument,
    problem: _Problem,
    rule: ast.Rule,
    axes: dict[str, str],
    exchanged: Argument | None,
    frame: Frame,
) -> None:
    assert item.value is not None
    name, carried = item.param.name.text, item.value.type.axes
    shown = show(problem.axes)
    listed = [axes[axis.name] for axis in item.param.axes if axis.name in axes]
    if problem.code == "E0301":
        message = f"argument `{name}` of `{rule.name.text}` lacks {shown}"
        help_ = None
    else:
        message = f"argument `{name}` of `{rule.name.text}` may not carry {shown}"
        help_ = f"sum it away first: `sum{shown}(...)`"
    must = f"`{name}` carries {show(listed) if listed else 'no axis of the rule'}"
    labels = [Label(item.param.span, must)]
    if exchanged is not None:
        other = exchanged.param.name.text
        labels.insert(0, Label(exchanged.node.span, f"fits `{name}`, as the other fits `{other}`"))
        help_ = f"exchange the arguments for `{name}` and `{other}`"
    frame.error(
        problem.code,
        message,
        item.node.span,
        label=f"carries {show(carried)}",
        labels=tuple(labels),
        help=help_,
    )


def _check_mapped(
    arguments: list[Argument],
    rule: ast.Rule,
    axes: dict[str, str],
    scan: str | None,
    frame: Frame,
) -> bool:
    """The state must carry every axis of the arguments that the rule does not name."""
    state = next(item for item in arguments if item.param.is_state)
    assert state.value is not None
    held = {*state.value.type.axes, *axes.values(), scan}
    reported: set[str] = set()
    for item in arguments:
        assert item.value is not None
        loose = [axis for axis in item.value.type.axes if axis not in held | reported]
        if loose:
            reported.update(loose)
            frame.error(
                "E0408",
                f"the state does not carry {show(loose)}, which argument "
                f"`{item.param.name.text}` carries",
                item.node.span,
                label=f"carries {show(item.value.type.axes)}",
                labels=(
                    Label(state.node.span, f"the state carries {show(state.value.type.axes)}"),
                    Label(rule.name.span, "each mapped index has a state of its own"),
                ),
                help=f"declare the state over {show(loose)} too, sum the axis away, or run the "
                f"rule along it: `scan[{loose[0]}] {rule.name.text}(...)`",
            )
    return not reported
