"""Statements of the tile program as NKI text."""

from __future__ import annotations

from typing import assert_never

from backends.nki.emit.writer import Writer
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
    Put,
    Range,
    Rebind,
    Require,
    RequireShape,
    Statement,
    Take,
    Tile,
    Token,
    Unpack,
    Verbatim,
    View,
)
from backends.nki.program.numbers import ONE, ZERO, Binary, Number
from backends.nki.program.structures import Record, Values


def write_statements(writer: Writer, statements: tuple[Statement, ...]) -> None:
    """Add statements to the text."""
    for statement in statements:
        _statement(writer, statement)


def _statement(writer: Writer, statement: Statement) -> None:
    match statement:
        case Allocate(tile=tile, origin=origin):
            writer.origin(origin)
            writer.call(f"{tile.name} = nl.ndarray", _allocation(tile))
        case Instruction(opcode=opcode, operands=operands, origin=origin):
            writer.origin(origin)
            writer.call(f"nisa.{opcode}", [f"{key}={operand(value)}" for key, value in operands])
        case Assign(name=name, value=value):
            _assign(writer, name, value)
        case Invoke(function=function, arguments=arguments, result=result, origin=origin):
            writer.origin(origin)
            head = f"{result} = {function}" if result else function
            names = [f"{name}=" for name in statement.keywords] or [""] * len(arguments)
            values = [operand(argument) for argument in arguments]
            writer.call(head, [f"{n}{v}" for n, v in zip(names, values, strict=True)])
        case For():
            writer.line(f"for {statement.variable} in range({_range(statement)}):")
            with writer.indented():
                write_statements(writer, statement.body)
        case ForEach(variables=variables, values=values, body=body):
            writer.line(f"for {', '.join(variables)} in {values}:")
            with writer.indented():
                write_statements(writer, body)
        case If():
            _decision(writer, statement)
        case Require(condition=condition, message=message):
            quoted = '"' + message.replace("\\", "\\\\").replace('"', '\\"') + '"'
            writer.line(f"assert {condition}, {'f' if '{' in message else ''}{quoted}")
        case RequireShape(tile=tile):
            wanted = ", ".join(f"{{{size}}}" for size in tile.shape)
            message = f'f"{tile.name} must have shape ({wanted}), got {{{tile.name}.shape}}"'
            check = f"assert {tile.name}.shape == {_tuple(tile.shape)}, "
            if writer.fits(check + message):
                writer.line(check + message)
            else:
                writer.line(f"{check}(")
                with writer.indented():
                    writer.line(message)
                writer.line(")")
        case Banner(title=title):
            writer.blank()
            writer.line(f"# ========== {title} ==========")
        case Comment(text=text):
            writer.text("\n".join(f"# {line}" for line in text.split("\n")))
        case Rebind(targets=targets, sources=sources):
            flat = f"{', '.join(targets)} = {', '.join(sources)}"
            if writer.fits(flat):
                writer.line(flat)
            else:
                # Targets and sources differ by name, so one after the other is the same.
                for target, source in zip(targets, sources, strict=True):
                    writer.line(f"{target} = {source}")
        case Unpack(names=names, tuple_name=source):
            writer.names(names, f" = {source}")
        case Take(names=names, record=record):
            _take(writer, names, record)
        case Put(record=record, field=key, value=value):
            _assign(writer, f'{record}["{key}"]', value)
        case Append(values=values_name, value=value):
            writer.call(f"{values_name}.append", [str(value)])
        case Verbatim(text=text):
            writer.text(text)
        case _:
            assert_never(statement)


def _decision(writer: Writer, decision: If) -> None:
    """`if`, then an `elif` for each decision that is all of the other branch, `else`."""
    keyword = "if"
    while True:
        writer.line(f"{keyword} {decision.condition}:")
        with writer.indented():
            write_statements(writer, decision.then)
        match decision.otherwise:
            case (If() as other,):
                keyword, decision = "elif", other
            case otherwise:
                break
    if otherwise:
        writer.line("else:")
        with writer.indented():
            write_statements(writer, otherwise)


def _assign(writer: Writer, target: str, value: Number) -> None:
    """`target = value`; what is too wide has one entry, or one summand, a line."""
    flat = f"{target} = {value}"
    if writer.fits(flat):
        writer.line(flat)
        return
    match value:
        case Record(fields=fields):
            brackets, entries = "{}", [f'"{name}": {held},' for name, held in fields]
        case Values(values=values):
            brackets, entries = "[]" if value.grows else "()", [f"{held}," for held in values]
        case Binary(op="+"):
            brackets, entries = "()", _summands(value)
        case _:
            writer.line(flat)
            return
    writer.line(f"{target} = {brackets[0]}")
    with writer.indented():
        for entry in entries:
            writer.line(entry)
    writer.line(brackets[1])


def _summands(value: Number) -> list[str]:
    """The summands of a sum; all but the first begin with `+`."""
    if isinstance(value, Binary) and value.op == "+":
        return [*_summands(value.left), f"+ {value.right}"]
    return [str(value)]


def _take(writer: Writer, names: tuple[str, ...], record: str) -> None:
    """`a, b = record["a"], record["b"]`, as many at once as a line holds."""
    taken: tuple[str, ...] = ()
    for name in names:
        if taken and not writer.fits(_taken((*taken, name), record)):
            writer.line(_taken(taken, record))
            taken = ()
        taken = (*taken, name)
    writer.line(_taken(taken, record))


def _taken(names: tuple[str, ...], record: str) -> str:
    fields = ", ".join(f'{record}["{name}"]' for name in names)
    return f"{', '.join(names)} = {fields}"


def _range(loop: For) -> str:
    if loop.step != ONE:
        return f"{loop.start}, {loop.stop}, {loop.step}"
    return f"{loop.stop}" if loop.start == ZERO else f"{loop.start}, {loop.stop}"


def _allocation(tile: Tile) -> list[str]:
    """The arguments of the `nl.ndarray` call that creates a tile."""
    space = f"buffer=nl.{tile.space.value}"
    return [_tuple(tile.shape), f"dtype={tile.element.text}", space]


def _tuple(sizes: tuple[Number, ...]) -> str:
    return f"({', '.join(str(size) for size in sizes)}{',' if len(sizes) == 1 else ''})"


def operand(value: Operand) -> str:
    """An operand as Python text."""
    match value:
        case View(tile=tile, index=None):
            return tile.name
        case View(tile=tile, index=index):
            assert index is not None
            return f"{tile.name}[{', '.join(_index(entry) for entry in index)}]"
        case Pattern(tile=tile, steps=steps, offset=offset):
            pairs = ", ".join(f"[{step}, {count}]" for step, count in steps)
            entry = ""
            if value.index is not None:
                entry = f", scalar_offset={operand(value.index)}, indirect_dim={value.indexed_dim}"
            return f"{tile.name}.ap(pattern=[{pairs}], offset={offset}{entry})"
        case Token(text=text):
            return text
        case Integers(rows=rows):
            return "[" + ", ".join(f"[{step}, {count}]" for step, count in rows) + "]"
        case bool():
            return str(value)
        case Number():
            return str(value)
        case _:
            assert_never(value)


def _index(entry: Range | None) -> str:
    if entry is None:
        return ":"
    parts = ["" if entry.start == ZERO else str(entry.start)]
    parts.append("" if entry.stop is None else str(entry.stop))
    if entry.step is not None:
        parts.append(str(entry.step))
    # As the usual formatter does: spaces around the colon when a bound is an expression.
    space = " " if any(" " in text for text in parts) else ""
    text = f"{space}:{space}".join(parts)
    return text.replace(":  :", "::").strip()
