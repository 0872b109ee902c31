"""One kernel: declarations first, then statements, outputs and the call line."""

from __future__ import annotations

from collections.abc import Iterator
from keyword import iskeyword

from attrs import evolve

from gdsl.ir.kernel import Call, Kernel, Output, Statement
from gdsl.semantics import axes, call_line, sizes, statements, unused
from gdsl.semantics.assumes import read_assumes
from gdsl.semantics.dtypes import read_dtypes
from gdsl.semantics.frame import Context, Frame, Kind
from gdsl.semantics.inputs import read_inputs
from gdsl.semantics.outputs import OutputReader
from gdsl.semantics.params import read_params
from gdsl.semantics.report import Reporter
from gdsl.semantics.scope import Scope
from gdsl.semantics.states import StateReader
from gdsl.syntax import ast


def elaborate(node: ast.Kernel, scope: Scope, reporter: Reporter) -> Kernel | None:
    """Return the typed kernel, or None when it has errors; all of them are reported."""
    own = Reporter()
    table = axes.declare(node.items, own)
    body: list[Statement] = []
    visible = {name: name for name in (*table.atomic, *table.packed)}
    frame = Frame(Context(table, own), scope, visible, statements=body)
    variables = read_dtypes(node.items, frame)
    inputs = read_inputs(node.items, variables, frame)
    params = read_params(node.items, frame)
    reader = StateReader(frame, variables)
    states = [reader.read(item) for item in node.items if isinstance(item, ast.State)]
    assumes = read_assumes(node.items, frame)
    for item in node.items:
        if isinstance(item, ast.Let | ast.Step | ast.Scan):
            statements.elaborate(item, frame)
    known = tuple(state for state in states if state is not None)
    outputs = _outputs(node, OutputReader(frame, variables, {s.name: s for s in known}))
    parts = call_line.Parts(tuple(inputs), tuple(params), known, outputs, failed=frozenset())
    declared = {name.text for name in _names(node)}
    parts = evolve(parts, failed=frozenset(declared) - parts.roles().keys())
    call = _call(node, parts, frame)
    _no_words_of_python(node, own)
    _states_written(frame)
    unused.check(frame)
    kernel = Kernel(
        node.name.text,
        "" if node.doc is None else node.doc.text,
        tuple(table.atomic.values()),
        tuple(table.composites.items()),
        tuple(table.packed.values()),
        tuple(variables.values()),
        parts.inputs,
        parts.params,
        tuple(assumes),
        parts.states,
        tuple(body),
        parts.outputs,
        call,
        span=node.span,
    )
    if not own.has_errors():
        _states_returned(kernel, own)
    if not own.has_errors():
        unused.check_states(frame, kernel)
        sizes.check(kernel, table, own)
    for diagnostic in own.sorted():
        reporter.add(diagnostic)
    return None if own.has_errors() else kernel


def _outputs(node: ast.Kernel, reader: OutputReader) -> tuple[Output, ...]:
    outputs = [reader.read(item) for item in node.items if isinstance(item, ast.Output)]
    if not outputs:
        reader.frame.error(
            "E0205",
            f"kernel `{node.name.text}` has no output",
            node.name.span,
            help="return what it computes: `output out: f32[...] = ...`",
        )
    return tuple(output for output in outputs if output is not None)


def _names(node: ast.Kernel) -> Iterator[ast.Name]:
    """Yield the names a call line may use, as the text declares them."""
    for item in node.items:
        match item:
            case ast.Input(names=names):
                yield from names
            case ast.Param(name=name) | ast.Output(name=name):
                yield name
            case ast.State(initial=initial):
                yield initial.name
            case _:
                pass


def _no_words_of_python(node: ast.Kernel, reporter: Reporter) -> None:
    """The emitted kernel is a Python function: its name and arguments must be possible there."""
    lines = [item for item in node.items if isinstance(item, ast.CallLine)]
    arguments = (argument.name for line in lines for argument in line.arguments)
    for name in (node.name, *_names(node), *arguments):
        if iskeyword(name.text):
            reporter.error(
                "E0102",
                f"`{name.text}` is a word of Python, in which the kernel is emitted",
                name.span,
                label="cannot be an argument there",
                help=f"choose another name, such as `{name.text}_`",
            )


def _call(node: ast.Kernel, parts: call_line.Parts, frame: Frame) -> Call:
    lines = [item for item in node.items if isinstance(item, ast.CallLine)]
    for extra in lines[1:]:
        frame.error("E0210", "a kernel has one call line", extra.span)
    if lines:
        return call_line.read(lines[0], parts, frame)
    return call_line.default(node.items, parts)


def _states_written(frame: Frame) -> None:
    for binding in frame.bindings.values():
        cell = binding.cell
        if binding.kind is Kind.STATE and cell is not None and not cell.written:
            frame.error(
                "E0407",
                f"state `{cell.name}` is never written",
                cell.span,
                label="declared here",
                help=f"run a rule on it: `o, {cell.name} = step rule(..., {cell.name})`",
            )


def _states_returned(kernel: Kernel, reporter: Reporter) -> None:
    """An in-place state is an argument that is written *and* returned."""
    returned = {output.state for output in kernel.outputs}
    for state in kernel.states:
        if state.inplace and state.name not in returned and state.span is not None:
            reporter.error(
                "E0205",
                f"state `{state.name}` is written in place but not returned",
                state.span,
                help=f"add `output {state.argument} = {state.name}`",
            )
