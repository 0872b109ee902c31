"""Functions nobody calls and constants nobody reads are no part of a program."""

from __future__ import annotations

import pytest

from backends.nki.program.nodes import (
    Assign,
    Constant,
    For,
    Function,
    Invoke,
    Program,
    Statement,
    Verbatim,
)
from backends.nki.program.numbers import ONE, ZERO, Literal, Name, Number
from backends.nki.program.reached import reached
from backends.nki.program.structures import Call


def _function(name: str, *body: Statement) -> Function:
    return Function(name, (), f"{name}.", body)


def _program(*body: Statement) -> Program:
    return Program(
        entry="kernel",
        parameters=(),
        constants=(
            Constant("WIDTH", Literal(128), "columns"),
            Constant("PAIR", Name("WIDTH") * 2, "both halves"),
            Constant("SPARE", Literal(7), "read by `unused` only"),
        ),
        functions=(
            _function("unused", Assign("x", Name("SPARE"))),
            _function("inner", Assign("x", Name("PAIR"))),
            _function("outer", For("i", ZERO, ONE, ONE, (Invoke("inner", ()),))),
        ),
        body=body,
        returns=(),
    )


def _names(program: Program) -> tuple[list[str], list[str]]:
    return [f.name for f in program.functions], [c.name for c in program.constants]


@pytest.mark.parametrize(
    "body",
    [
        Invoke("outer", ()),
        Assign("offset", Call("outer", ())),
        Assign("n", ONE + Call("outer", ())),
    ],
)
def test_calls_are_followed_through_functions_and_constants(body: Statement) -> None:
    assert _names(reached(_program(body))) == (["inner", "outer"], ["WIDTH", "PAIR"])


def test_nothing_is_called() -> None:
    assert _names(reached(_program(Assign("n", ONE)))) == ([], [])


@pytest.mark.parametrize("size", [Name("SPARE"), Name("SPARE") + 1])
def test_a_constant_that_the_entry_reads_stays(size: Number) -> None:
    assert _names(reached(_program(Assign("n", size)))) == ([], ["SPARE"])


def test_statements_kept_as_text_read_constants() -> None:
    loop = For("i", ZERO, ONE, ONE, (Verbatim("n = SPARE + 1"),))
    assert _names(reached(_program(loop))) == ([], ["SPARE"])
