"""Turning blocks of statements into functions: what they need becomes parameters, what others
need of them is returned.

Names are unique over a program, so a tile is called the same in the function that makes it and in
those that use it. Several tiles travel as one tuple (a `Pack`), unpacked where they are used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import assert_never

from attrs import frozen

from backends.nki.program.nodes import (
    Allocate,
    Append,
    Assign,
    Banner,
    Comment,
    For,
    ForEach,
    Function,
    If,
    Instruction,
    Integers,
    Invoke,
    Operand,
    Pattern,
    Put,
    Rebind,
    Require,
    RequireShape,
    Statement,
    Take,
    Token,
    Unpack,
    Verbatim,
    View,
    tiles_in,
)
from backends.nki.program.numbers import (
    Binary,
    Choice,
    Extent,
    Largest,
    Name,
    Number,
    Smallest,
    Structure,
)


@frozen
class Pack:
    """Tiles that one function returns together, under one name."""

    name: str
    members: tuple[str, ...]


def outline(
    name: str,
    doc: str,
    statements: Sequence[Statement],
    *,
    returns: Sequence[str] = (),
    packs: Iterable[Pack] = (),
    known: Collection[str] = (),
) -> Function:
    """Return a function of the statements. `known` are names of the module, never parameters."""
    own = set(_defined(statements))
    needed = [n for n in dict.fromkeys(_used(statements)) if n not in own and n not in known]
    parameters: list[str] = []
    unpacked: list[Statement] = []
    packed = {member: pack for pack in packs for member in pack.members}
    for need in needed:
        pack = packed.get(need)
        if pack is None or len(pack.members) == 1:
            parameters.append(need)
        elif pack.name not in parameters:
            parameters.append(pack.name)
            unpacked.append(Unpack(pack.members, pack.name))
    tiles = [p for p in parameters if not p.isidentifier() or p not in _numbers(statements)]
    numbers = [p for p in parameters if p not in tiles]
    return Function(name, (*tiles, *numbers), doc, (*unpacked, *statements), tuple(returns))


def defined(statements: Sequence[Statement]) -> tuple[str, ...]:
    """Return the tiles that statements create at their outermost level, in order."""
    return tuple(s.tile.name for s in statements if isinstance(s, Allocate))


def names_in(values: Iterable[Number], known: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names that values mention, each once, without the `known` ones."""
    found = dict.fromkeys(name for value in values for name in _names(value))
    return tuple(name for name in found if name not in known)


def used(statements: Sequence[Statement]) -> set[str]:
    """Return every name that statements mention."""
    return set(_used(statements))


def _numbers(statements: Sequence[Statement]) -> set[str]:
    """Names used as trace-time numbers."""
    return {n for s in _walk(statements) for v in _values(s) for n in _names(v)}


def _walk(statements: Sequence[Statement]) -> Iterator[Statement]:
    for statement in statements:
        yield statement
        match statement:
            case For(body=body) | ForEach(body=body):
                yield from _walk(body)
            case If(then=then, otherwise=otherwise):
                yield from _walk(then)
                yield from _walk(otherwise)
            case _:
                pass


def _defined(statements: Sequence[Statement]) -> Iterator[str]:
    for statement in _walk(statements):
        match statement:
            case Allocate(tile=tile):
                yield tile.name
            case Assign(name=name) | For(variable=name):
                yield name
            case Invoke(result=str() as name):
                yield name
            case Rebind(targets=targets) | Unpack(names=targets) | Take(names=targets):
                yield from targets
            case ForEach(variables=variables):
                yield from variables
            case _:
                pass


def _used(statements: Sequence[Statement]) -> Iterator[str]:
    for statement in _walk(statements):
        match statement:
            case Rebind(sources=sources):
                yield from sources
            case Unpack(tuple_name=source) | Take(record=source) | Put(record=source):
                yield source
            case Append(values=source):
                yield source
            case RequireShape(tile=tile):
                yield tile.name
            case Allocate(tile=tile) if tile.element.of is not None:
                yield tile.element.of
            case _:
                pass
        for operand in _operands(statement):
            for tile in tiles_in(operand):
                yield tile.name
        for value in _values(statement):
            yield from _names(value)


def _operands(statement: Statement) -> tuple[Operand, ...]:
    match statement:
        case Instruction(operands=operands):
            return tuple(value for _, value in operands)
        case Invoke(arguments=arguments):
            return arguments
        case _:
            return ()


def _values(statement: Statement) -> Iterator[Number]:
    """Every trace-time number in a statement, not looking into nested ones."""
    for operand in _operands(statement):
        yield from _in_operand(operand)
    match statement:
        case Allocate(tile=tile) | RequireShape(tile=tile):
            yield from tile.shape
        case Assign(value=value) | Require(condition=value) | If(condition=value):
            yield value
        case Put(value=value) | Append(value=value) | ForEach(values=value):
            yield value
        case For(start=start, stop=stop, step=step):
            yield from (start, stop, step)
        case Instruction() | Invoke() | Banner() | Comment() | Rebind() | Unpack() | Take():
            pass
        case Verbatim():
            pass
        case _:
            assert_never(statement)


def _in_operand(operand: Operand) -> Iterator[Number]:
    match operand:
        case View(index=index):
            for entry in index or ():
                if entry is not None:
                    yield entry.start
                    yield from (n for n in (entry.stop, entry.step) if n is not None)
        case Pattern(steps=steps, offset=offset, index=index):
            yield offset
            if index is not None:
                yield from _in_operand(index)
            yield from (n for pair in steps for n in pair)
        case Integers(rows=rows):
            yield from (n for pair in rows for n in pair)
        case bool() | Token():
            pass
        case Number():
            yield operand
        case _:
            assert_never(operand)


def _names(value: Number) -> Iterator[str]:
    match value:
        case Name(name=name):
            yield name
        case Extent(tensor=tensor):
            yield tensor
        case (
            Binary(left=left, right=right)
            | Smallest(left=left, right=right)
            | Largest(left=left, right=right)
        ):
            yield from _names(left)
            yield from _names(right)
        case Choice(condition=condition, then=then, other=other):
            for part in (condition, then, other):
                yield from _names(part)
        case Structure():
            for part in value.parts():
                yield from _names(part)
        case _:
            pass
