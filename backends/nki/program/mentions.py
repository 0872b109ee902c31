"""What statements define, mention and call, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
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
    Literal,
    Name,
    Number,
    Query,
    Smallest,
    Structure,
)
from backends.nki.program.structures import Call


def defined(statements: Sequence[Statement]) -> tuple[str, ...]:
    """Return the tiles that statements create at their outermost level, in order."""
    return tuple(s.tile.name for s in statements if isinstance(s, Allocate))


def names_in(values: Iterable[Number], known: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names that values mention, each once, without the `known` ones."""
    found = dict.fromkeys(name for value in values for name in _names(value))
    return tuple(name for name in found if name not in known)


def used(statements: Sequence[Statement]) -> set[str]:
    """Return the names that statements mention."""
    return set(mentions(statements))


def called(statements: Sequence[Statement]) -> set[str]:
    """Return the functions that statements call."""
    found: set[str] = set()
    for statement in walk(statements):
        if isinstance(statement, Invoke):
            found.add(statement.function)
        for value in _values(statement):
            found |= set(_calls(value))
    return found


def numbers_in(statements: Sequence[Statement]) -> set[str]:
    """Return the names that statements use as trace-time numbers."""
    return {n for s in walk(statements) for v in _values(s) for n in _names(v)}


def walk(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements, and those inside loops and decisions."""
    for statement in statements:
        yield statement
        match statement:
            case For(body=body) | ForEach(body=body):
                yield from walk(body)
            case If(then=then, otherwise=otherwise):
                yield from walk(then)
                yield from walk(otherwise)
            case _:
                pass


def bound(statements: Sequence[Statement]) -> Iterator[str]:
    """Yield the names that statements bind, at any depth."""
    for statement in walk(statements):
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


def mentions(statements: Sequence[Statement]) -> Iterator[str]:
    """Yield the names that statements mention, in order, some more than once."""
    for statement in walk(statements):
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
        case Name(name=name) | Extent(tensor=name):
            yield name
        case _:
            for part in _parts(value):
                yield from _names(part)


def _calls(value: Number) -> Iterator[str]:
    if isinstance(value, Call):
        yield value.function
    for part in _parts(value):
        yield from _calls(part)


def _parts(value: Number) -> tuple[Number, ...]:
    match value:
        case Literal() | Name() | Extent() | Query():
            # By far the most; whether something is a `Structure` takes long to ask.
            return ()
        case (
            Binary(left=left, right=right)
            | Smallest(left=left, right=right)
            | Largest(left=left, right=right)
        ):
            return left, right
        case Choice(condition=condition, then=then, other=other):
            return condition, then, other
        case Structure():
            return tuple(value.parts())
        case _:
            return ()
