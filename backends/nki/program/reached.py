"""What of a program its entry reaches: functions that are called, constants that are read.

A schedule lists every function and constant of its stages; which of them a kernel needs follows
from the calls that were written.
"""

from __future__ import annotations

import re

from attrs import evolve

from backends.nki.program.mentions import called, names_in, used, walk
from backends.nki.program.nodes import Program, Statement, Verbatim

_WORD = re.compile(r"[A-Za-z_]\w*")


def reached(program: Program) -> Program:
    """Return the program without functions nobody calls and constants nobody reads."""
    functions = {function.name: function for function in program.functions}
    wanted: set[str] = set()
    pending = called(program.body)
    while pending:
        wanted |= pending
        later = {name for found in pending for name in called(functions[found].body)}
        pending = later - wanted
    kept = tuple(function for function in program.functions if function.name in wanted)
    statements = (*program.body, *(s for function in kept for s in function.body))
    read = used(statements) | _words(statements)
    constants = []
    for constant in reversed(program.constants):
        # A constant may be made of those before it.
        if constant.name in read:
            constants.append(constant)
            read |= set(names_in((constant.value,)))
    return evolve(program, functions=kept, constants=tuple(reversed(constants)))


def _words(statements: tuple[Statement, ...]) -> set[str]:
    """The names in statements that are kept as text."""
    return {
        word
        for statement in walk(statements)
        if isinstance(statement, Verbatim)
        for word in _WORD.findall(statement.text)
    }
