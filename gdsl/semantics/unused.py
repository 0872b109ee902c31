"""Declared and never used: an error for inputs and params, a warning for values and axes."""

from __future__ import annotations

from typing import assert_never

from gdsl.ir.kernel import Kernel, Let, Run
from gdsl.ir.traverse import symbols
from gdsl.semantics.frame import Binding, Frame, Kind
from gdsl.suggest import nearest


def check(frame: Frame) -> None:
    """Report what a kernel declares for nothing.

    A name that an unknown one may have meant is left out, and so are inputs where a call lacks
    arguments: one mistake, one error.
    """
    meant = _mistyped(frame)
    lacking = frame.context.reporter.has("E0209")
    for binding in frame.bindings.values():
        failed = binding.value is None and binding.kind is not Kind.DTYPE
        failed |= lacking and binding.kind is Kind.INPUT
        if not binding.used and not failed and nearest(binding.name, meant) is None:
            _report(binding, frame)
    table = frame.context.axes
    declared = {*table.atomic, *table.composites, *table.packed}
    for name, span in table.spans.items():
        if name not in table.used and name in declared and nearest(name, meant) is None:
            frame.context.reporter.warning(
                "W0202",
                f"axis `{name}` is not used",
                span,
                label="never used",
                help="remove it",
            )


def check_states(frame: Frame, kernel: Kernel) -> None:
    """Warn of a state whose new values, the last one and those on the way, go nowhere."""
    used = {symbol for output in kernel.outputs for symbol in symbols(output.value)}
    for statement in kernel.body:
        match statement:
            case Let(value=value):
                used.update(symbols(value))
            case Run():
                used.add(statement.state)
                used.update(symbol for arg in statement.args for symbol in symbols(arg))
            case _:
                assert_never(statement)
    on_the_way = {s.state_out for s in kernel.body if isinstance(s, Run) and s.states in used}
    for cell in {id(b.cell): b.cell for b in frame.bindings.values() if b.cell}.values():
        if cell.written and cell.latest not in used | on_the_way:
            frame.context.reporter.warning(
                "W0203",
                f"the new value of state `{cell.name}` is not returned",
                cell.span,
                label="written, and then lost",
                help=f"return it: `output {cell.name}_out = {cell.name}`",
            )


def _report(binding: Binding, frame: Frame) -> None:
    reporter = frame.context.reporter
    match binding.kind:
        case Kind.INPUT | Kind.PARAM:
            reporter.error(
                "E0204",
                f"{binding.kind.value} `{binding.name}` is not used",
                binding.span,
                label="never used",
                help="use it, or remove it; an argument that callers pass for nothing is accepted "
                f"by `{binding.name} = ignored` in the call line",
            )
        case Kind.VALUE | Kind.DTYPE:
            reporter.warning(
                "W0201",
                f"{binding.kind.value} `{binding.name}` is not used",
                binding.span,
                label="never used",
                help="use it, or remove it",
            )
        case _:
            pass


def _mistyped(frame: Frame) -> list[str]:
    return [
        diagnostic.span.text
        for diagnostic in frame.context.reporter.found.values()
        if diagnostic.code == "E0201" and diagnostic.span is not None
    ]
