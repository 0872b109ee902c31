"""The `call` line: argument order, names and return order of the emitted kernel."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.kernel import Call, CallArgument, Input, Output, Param, State
from gdsl.semantics.frame import Frame
from gdsl.source import Span
from gdsl.suggest import did_you_mean, nearest
from gdsl.syntax import ast


@frozen
class Parts:
    """What a call line can name, in the order of the text."""

    inputs: tuple[Input, ...]
    params: tuple[Param, ...]
    states: tuple[State, ...]
    outputs: tuple[Output, ...]
    failed: frozenset[str]
    """Names of inputs, params, state arguments and outputs whose declaration was reported."""

    def roles(self) -> dict[str, str]:
        """Return argument name -> role; a state's argument wins over an output of its name."""
        return {
            **{output.name: "output" for output in self.outputs},
            **{input_.name: "input" for input_ in self.inputs},
            **{param.name: "param" for param in self.params},
            **{state.argument: "state" for state in self.states},
        }

    def required(self) -> Iterable[tuple[str, str]]:
        """Yield (name, role) of what a caller cannot leave out."""
        yield from ((i.name, "input") for i in self.inputs if i.default is None)
        yield from ((p.name, "param") for p in self.params if p.default is None)
        yield from ((s.argument, "state") for s in self.states if not s.optional)


def default(items: tuple[ast.KernelItem, ...], parts: Parts) -> Call:
    """Inputs, params and states in the order of the text, those with a default last."""
    roles = parts.roles()
    names: list[str] = []
    for item in items:
        match item:
            case ast.Input():
                names.extend(name.text for name in item.names)
            case ast.Param():
                names.append(item.name.text)
            case ast.State():
                names.append(item.initial.name.text)
            case _:
                pass
    required = {name for name, _ in parts.required()}
    names.sort(key=lambda name: name not in required)
    arguments = tuple(CallArgument(name, roles[name]) for name in names if name in roles)
    return Call(arguments, tuple(output.name for output in parts.outputs))


def read(node: ast.CallLine, parts: Parts, frame: Frame) -> Call:
    """Return the call of a `call` line; what does not fit is reported."""
    roles = parts.roles()
    arguments: list[CallArgument] = []
    seen: dict[str, Span] = {}
    for item in node.arguments:
        name, reporter = item.name, frame.context.reporter
        message = f"there are two arguments `{name.text}`"
        if not reporter.is_first(seen, name.text, name.span, message):
            continue
        argument = _argument(item, roles, parts.failed, frame)
        if argument is not None:
            arguments.append(argument)
    _nothing_missing(node, arguments, parts, frame)
    returns = _returns(node, arguments, parts, frame)
    return Call(tuple(arguments), returns, span=node.span)


def _argument(
    item: ast.CallArgument, roles: dict[str, str], failed: frozenset[str], frame: Frame
) -> CallArgument | None:
    name = item.name.text
    if item.ignored:
        return CallArgument(name, "ignored", span=item.span)
    if item.key is not None:
        if item.key.text in failed:
            return None
        # Not a part of the kernel: a schedule key, which `gdsl.algorithm` knows.
        role = roles.get(item.key.text, "schedule")
        return CallArgument(name, role, item.key.text, span=item.span)
    if name in roles:
        return CallArgument(name, roles[name], span=item.span)
    if name in failed:
        return None
    frame.error(
        "E0207",
        f"`{name}` is no argument of this kernel{did_you_mean(name, roles)}",
        item.name.span,
        label="not an input, state, param or output",
        notes=(f"there are {', '.join(f'`{known}`' for known in roles)}",) if roles else (),
        help=f"to accept and ignore it, write `{name} = ignored`; "
        f"for a schedule key, `{name} = chunk`",
    )
    return None


def _nothing_missing(
    node: ast.CallLine, arguments: list[CallArgument], parts: Parts, frame: Frame
) -> None:
    present = {argument.key or argument.name for argument in arguments}
    unknown = [item.name.text for item in node.arguments if item.name.text not in present]
    missing = [
        name
        for name, _ in parts.required()
        if name not in present and nearest(name, unknown) is None
    ]
    if missing:
        shown = ", ".join(f"`{name}`" for name in missing)
        frame.error(
            "E0207",
            f"the call line lacks {shown}",
            node.span,
            label="every required argument stands here",
            help=f"add {shown}; only what has a default can be left out",
        )


def _returns(
    node: ast.CallLine, arguments: list[CallArgument], parts: Parts, frame: Frame
) -> tuple[str, ...]:
    outputs = {output.name: output for output in parts.outputs}
    returned: list[str] = []
    for name in node.returns:
        if name.text in returned:
            frame.error("E0202", f"`{name.text}` is returned twice", name.span)
        elif name.text in outputs:
            returned.append(name.text)
        elif name.text not in parts.failed:
            frame.error(
                "E0205",
                f"there is no output `{name.text}`{did_you_mean(name.text, outputs)}",
                name.span,
                label="not an output",
                help=f"declare it: `output {name.text}: f32[...] = ...`",
            )
    allocated = {argument.name for argument in arguments if argument.role == "output"}
    for name_, output in outputs.items():
        if name_ not in returned and name_ not in allocated:
            frame.error(
                "E0205",
                f"output `{name_}` is not returned",
                node.returns[-1].span,
                label="the call returns these",
                labels=(Label(output.span, "declared here"),) if output.span is not None else (),
                help=f"add `{name_}` behind `->`",
            )
    return tuple(returned)
