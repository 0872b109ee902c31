"""A program as one importable NKI file."""

from __future__ import annotations

from backends.nki.emit.statements import write_statements
from backends.nki.emit.writer import Writer
from backends.nki.program.nodes import Function, Parameter, Program


def module_text(program: Program, docstring: str, header: tuple[str, ...], origins: bool) -> str:
    """Return the source text of a kernel."""
    writer = Writer(origins=origins)
    for line in header:
        writer.line(f"# {line}")
    writer.blank()
    writer.line("import nki")
    writer.line("import nki.isa as nisa")
    writer.line("import nki.language as nl")
    writer.blank()
    for constant in program.constants:
        writer.line(f"{constant.name} = {constant.value}  # {constant.reason}")
    for function in program.functions:
        _function(writer, function)
    _top_level(writer)
    writer.line("@nki.jit")
    writer.call(f"def {program.entry}", [_parameter(p) for p in program.parameters])
    writer.lines[-1] += ":"
    with writer.indented():
        writer.text(f'"""{docstring}\n"""')
        writer.forget_origin()
        write_statements(writer, program.body)
        writer.blank()
        writer.line(f"return {', '.join(program.returns)}")
    return writer.render()


def _function(writer: Writer, function: Function) -> None:
    _top_level(writer)
    writer.call(f"def {function.name}", list(function.parameters))
    writer.lines[-1] += ":"
    with writer.indented():
        writer.text(f'"""{function.doc}"""')
        writer.forget_origin()
        write_statements(writer, function.body)
        if function.returns:
            writer.names(function.returns, "", head="return ")


def _top_level(writer: Writer) -> None:
    """Two empty lines."""
    writer.lines += ["", ""]


def _parameter(parameter: Parameter) -> str:
    return parameter.name if parameter.default is None else f"{parameter.name}={parameter.default}"
