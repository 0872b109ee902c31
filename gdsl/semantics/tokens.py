"""What stands in the brackets of `scan[T < valid_len every N -> P]`."""

from __future__ import annotations

from attrs import frozen

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Ref
from gdsl.ir.node import Symbol
from gdsl.semantics.arguments import Argument
from gdsl.semantics.axes import show
from gdsl.semantics.frame import Binding, Frame, Kind
from gdsl.semantics.measure import I32_MAX
from gdsl.semantics.names import axis_of, unknown_name
from gdsl.syntax import ast


@frozen
class Along:
    """The tokens of a run; `axis` None is one token."""

    axis: str | None
    valid_len: Symbol | None = None
    every: int | Symbol | None = None
    states_axis: str | None = None


ONE = Along(None)


def read(node: ast.Scan, frame: Frame) -> Along | None:
    """Return the tokens of a scan, or None when something in the brackets was reported."""
    axis = axis_of(node.axis, frame)
    valid_len = _valid_len(node.valid_len, frame) if node.valid_len is not None else None
    every = _every(node.every, frame) if node.every is not None else None
    states_axis = None
    if node.every is not None and node.every.axis is not None:
        states_axis = axis_of(node.every.axis, frame)
        if states_axis is None:
            return None
    elif every == 1:
        states_axis = axis
    if axis is None:
        return None
    if axis in frame.context.axes.packed:
        frame.error("E0411", f"tokens cannot lie along the packed axis `{axis}`", node.axis.span)
        return None
    if node.valid_len is not None and valid_len is None:
        return None
    if node.every is not None and every is None:
        return None
    return Along(axis, valid_len, every, states_axis)


def _valid_len(name: ast.Name, frame: Frame) -> Symbol | None:
    reference = named(name, frame, "E0411", "the number of valid tokens")
    if reference is None:
        return None
    if reference.type.dtype is not Dtype.I32:
        frame.error(
            "E0308",
            f"`{name.text}` counts tokens and must be i32",
            name.span,
            labels=(Label(frame.bindings[name.text].span, "declared here"),),
            help=f"declare it: `input {name.text}: i32[B]`",
        )
        return None
    return reference.symbol


def named(name: ast.Name, frame: Frame, code: str, role: str) -> Ref | None:
    """Return the input of this name; reports anything else."""
    binding = frame.bindings.get(name.text)
    if binding is None:
        unknown_name(name.text, name.span, frame)
        return None
    binding.used = True
    if binding.kind is not Kind.INPUT:
        frame.error(
            code,
            f"{role} must be an input; `{name.text}` is {_article(binding)}",
            name.span,
            labels=(Label(binding.span, "declared here"),),
        )
        return None
    return binding.value if isinstance(binding.value, Ref) else None


def _article(binding: Binding) -> str:
    word = binding.kind.value
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def _every(node: ast.Every, frame: Frame) -> int | Symbol | None:
    if isinstance(node.count, ast.Literal):
        count = int(node.count.value)
        if 1 <= count <= I32_MAX:
            return count
        frame.error(
            "E0309",
            f"states cannot be returned every {count} tokens",
            node.count.span,
            help=f"give a number from 1 to {I32_MAX}",
        )
        return None
    name = node.count
    binding = frame.bindings.get(name.text)
    if binding is None:
        unknown_name(name.text, name.span, frame)
        return None
    binding.used = True
    value = binding.value
    if binding.kind is Kind.PARAM and isinstance(value, Ref) and value.type.dtype is Dtype.I32:
        return value.symbol
    frame.error(
        "E0411",
        f"`{name.text}` cannot say how often states are returned",
        name.span,
        labels=(Label(binding.span, "declared here"),),
        help=f"write a number, or declare `param {name.text}: int = 0` (0 returns none)",
    )
    return None


def fit(node: ast.Step | ast.Scan, along: Along, given: list[Argument], frame: Frame) -> bool:
    """Check the tokens against the arguments: something varies along them, the state does not."""
    if along.axis is None:
        return True
    assert isinstance(node, ast.Scan)
    values = [item.value for item in given if item.value is not None]
    state = next(item for item in given if item.param.is_state)
    if state.value is not None and along.axis in state.value.type.axes:
        frame.error(
            "E0411",
            f"the state carries the axis `{along.axis}` that the tokens lie along",
            state.node.span,
            label=f"carries {show(state.value.type.axes)}",
            help=f"a state has one value for all tokens; declare it without `{along.axis}`",
        )
        return False
    complete = len(values) == len(given)
    if complete and not any(along.axis in value.type.axes for value in values):
        frame.error(
            "E0411",
            f"no argument carries the axis `{along.axis}`, so there are no tokens along it",
            node.axis.span,
            help="to run one token, write `step`",
        )
        return False
    return _states_axis_fits(node, along, state, frame) and _valid_len_fits(node, state, frame)


def _states_axis_fits(node: ast.Scan, along: Along, state: Argument, frame: Frame) -> bool:
    held = state.value.type.axes if state.value is not None else ()
    if along.states_axis is None or along.states_axis not in held:
        return True
    assert node.every is not None
    frame.error(
        "E0411",
        f"the states cannot lie along `{along.states_axis}`, which the state carries already",
        (node.every.axis or node.axis).span,
        labels=(Label(state.node.span, f"carries {show(held)}"),),
        help="name an axis of its own: `every N -> P`",
    )
    return False


def _valid_len_fits(node: ast.Scan, state: Argument, frame: Frame) -> bool:
    if node.valid_len is None or state.value is None:
        return True
    value = frame.bindings[node.valid_len.text].value
    assert value is not None
    loose = [axis for axis in value.type.axes if axis not in state.value.type.axes]
    if not loose:
        return True
    frame.error(
        "E0411",
        f"`{node.valid_len.text}` carries {show(loose)}, which the state does not",
        node.valid_len.span,
        labels=(Label(state.node.span, f"carries {show(state.value.type.axes)}"),),
        help="declare one count for each row: `i32[B]`",
    )
    return False
