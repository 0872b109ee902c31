"""A tile program as text (`--emit program`): what happens where, without Python's ceremony.

tile k_sb: sbuf [rows, K] q.dtype
k_sb <- dma_copy(k[row : row + rows, :])
for head in 0 .. heads:
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from backends.nki.program.nodes import (
    Allocate,
    Append,
    Assign,
    Banner,
    Comment,
    For,
    ForEach,
    If,
    Instruction,
    Integers,
    Invoke,
    Operand,
    Pattern,
    Program,
    Put,
    Range,
    Rebind,
    Require,
    RequireShape,
    Statement,
    Take,
    Token,
    Unpack,
    Verbatim,
    View,
)
from backends.nki.program.numbers import ONE, Number


def program_text(program: Program) -> str:
    """Return the program, one line per statement."""
    lines = [f"program {program.entry}({', '.join(p.name for p in program.parameters)})"]
    lines += [f"  {c.name} = {c.value}    # {c.reason}" for c in program.constants]
    for function in program.functions:
        lines += ["", f"function {function.name}({', '.join(function.parameters)})"]
        lines += _lines(function.body, "  ")
        if function.returns:
            lines.append(f"  return {', '.join(function.returns)}")
    lines += ["", f"entry {program.entry}", *_lines(program.body, "  ")]
    lines.append(f"  return {', '.join(program.returns)}")
    return "\n".join(lines) + "\n"


def _lines(statements: tuple[Statement, ...], indent: str) -> Iterator[str]:
    for statement in statements:
        yield from _statement(statement, indent)


def _statement(statement: Statement, indent: str) -> Iterator[str]:
    match statement:
        case Allocate(tile=tile):
            shape = ", ".join(str(size) for size in tile.shape)
            yield f"{indent}tile {tile.name}: {tile.space.value} [{shape}] {tile.element.text}"
        case Instruction(opcode=opcode, operands=operands):
            fields = dict(operands)
            target = _operand(fields.pop("dst"))
            rest = ", ".join(f"{key}={_operand(value)}" for key, value in fields.items())
            yield f"{indent}{target} <- {opcode}({rest})"
        case Assign(name=name, value=value):
            yield f"{indent}{name} = {value}"
        case Invoke(function=function, arguments=arguments, result=result):
            call = f"{function}({', '.join(_operand(a) for a in arguments)})"
            yield f"{indent}{result} = {call}" if result else f"{indent}{call}"
        case For(variable=variable, start=start, stop=stop, step=step, body=body):
            by = "" if step == ONE else f" by {step}"
            yield f"{indent}for {variable} in {start} .. {stop}{by}:"
            yield from _lines(body, indent + "  ")
        case If(condition=condition, then=then, otherwise=otherwise):
            yield f"{indent}if {condition}:"
            yield from _lines(then, indent + "  ")
            if otherwise:
                yield f"{indent}else:"
                yield from _lines(otherwise, indent + "  ")
        case Require(condition=condition):
            yield f"{indent}require {condition}"
        case RequireShape(tile=tile):
            yield f"{indent}require {tile.name}: [{', '.join(str(size) for size in tile.shape)}]"
        case Banner(title=title):
            yield f"{indent}# {title}"
        case Comment():
            pass
        case Rebind(targets=targets, sources=sources):
            yield f"{indent}{', '.join(targets)} = {', '.join(sources)}"
        case Unpack(names=names, tuple_name=source):
            yield f"{indent}{', '.join(names)} = {source}"
        case Take(names=names, record=record):
            yield f"{indent}{', '.join(names)} of {record}"
        case Put(record=record, field=field, value=value):
            yield f"{indent}{record}.{field} = {value}"
        case Append(values=values, value=value):
            yield f"{indent}{values} += {value}"
        case ForEach(variables=variables, values=values, body=body):
            yield f"{indent}for {', '.join(variables)} in {values}:"
            yield from _lines(body, indent + "  ")
        case Verbatim(text=text):
            yield from (f"{indent}{line}" if line else "" for line in text.split("\n"))
        case _:
            assert_never(statement)


def _operand(value: Operand) -> str:
    match value:
        case View(tile=tile, index=None):
            return tile.name
        case View(tile=tile, index=index):
            return f"{tile.name}[{', '.join(_range(entry) for entry in index or ())}]"
        case Pattern(tile=tile, steps=steps, offset=offset):
            pairs = " ".join(f"{step}*{count}" for step, count in steps)
            entry = f"{_operand(value.index)} : " if value.index is not None else ""
            return f"{tile.name}[{entry}{offset} + ({pairs})]"
        case Token(text=text):
            return text.rsplit(".", 1)[-1]
        case Integers(rows=rows):
            return " ".join(f"{step}*{count}" for step, count in rows)
        case bool() | Number():
            return str(value)
        case _:
            assert_never(value)


def _range(entry: Range | None) -> str:
    if entry is None:
        return ":"
    step = "" if entry.step is None else f" : {entry.step}"
    stop = "" if entry.stop is None else f" {entry.stop}"
    return f"{entry.start} :{stop}{step}"
