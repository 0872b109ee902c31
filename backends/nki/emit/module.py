"""Kernels as one importable NKI file."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from backends.nki.emit.statements import write_statements
from backends.nki.emit.writer import Writer
from backends.nki.program.nodes import Function, Parameter, Program


@frozen
class Entry:
    """A kernel of a module, and the text between its quotes."""

    program: Program
    docstring: str


def module_text(entries: Sequence[Entry], header: tuple[str, ...], origins: bool) -> str:
    """Return the source text of one or more kernels.

    Constants and functions of one name must be the same in all of them; they are written once.
    """
    writer = Writer(origins=origins)
    for line in header:
        writer.line(f"# {line}")
    writer.blank()
    writer.line("import nki")
    writer.line("import nki.isa as nisa")
    writer.line("import nki.language as nl")
    writer.blank()
    programs = [entry.program for entry in entries]
    for constant in {c.name: c for program in programs for c in program.constants}.values():
        writer.line(f"{constant.name} = {constant.value}  # {constant.reason}")
    written: set[str] = set()
    for entry in entries:
        for function in entry.program.functions:
            if function.name not in written:
                _function(writer, function)
                written.add(function.name)
        _entry(writer, entry)
    return writer.render()


def _entry(writer: Writer, entry: Entry) -> None:
    program = entry.program
    _top_level(writer)
    writer.line("@nki.jit")
    writer.call(f"def {program.entry}", [_parameter(p) for p in program.parameters])
    writer.lines[-1] += ":"
    with writer.indented():
        writer.text(f'"""{entry.docstring}\n"""')
        writer.forget_origin()
        write_statements(writer, program.body)
        writer.blank()
        writer.line(f"return {', '.join(program.returns)}")


def _function(writer: Writer, function: Function) -> None:
    _top_level(writer)
    writer.call(f"def {function.name}", list(function.parameters))
    writer.lines[-1] += ":"
    with writer.indented():
        # Several paragraphs end on a line of their own, as the usual formatter has it.
        end = "\n" if "\n\n" in function.doc else ""
        writer.text(f'"""{function.doc}{end}"""')
        writer.forget_origin()
        write_statements(writer, function.body)
        if function.returns:
            writer.names(function.returns, "", head="return ")


def _top_level(writer: Writer) -> None:
    """Two empty lines."""
    writer.lines += ["", ""]


def _parameter(parameter: Parameter) -> str:
    return parameter.name if parameter.default is None else f"{parameter.name}={parameter.default}"
