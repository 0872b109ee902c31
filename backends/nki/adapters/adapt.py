"""Tile programs of several kernels as the exports of one module.

Functions that are the same in several programs are written once. Those that share only their name
get the name of their export in front, so that each entry calls its own.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence

from attrs import evolve

from backends.nki.adapters.table import Adapter, Export
from backends.nki.program.nodes import (
    For,
    ForEach,
    Function,
    If,
    Invoke,
    Parameter,
    Program,
    Statement,
)
from backends.nki.refusal import refuse
from gdsl.algorithm.plan import Plan
from gdsl.errors import UsageError
from gdsl.suggest import did_you_mean


def adapted_exports(
    adapter: Adapter, programs: Sequence[tuple[Plan, Program]]
) -> tuple[Program, ...]:
    """Return the programs under the adapter's calls, ready for one module.

    Raises UsageError for a kernel that the adapter does not export, CompileError for one whose call
    is not the one that callers use.
    """
    exported = [_exported(adapter, plan, program) for plan, program in programs]
    names = [program.entry for program in exported]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"`{name}` is named more than once; a module exports it once")
    beside = {export.name: export.functions for export in adapter.exports}
    return tuple(
        evolve(program, functions=(*beside[program.entry], *program.functions))
        for program in _told_apart(exported)
    )


def _exported(adapter: Adapter, plan: Plan, program: Program) -> Program:
    rows = {export.kernel: export for export in adapter.exports}
    kernel = plan.kernel.kernel
    export = rows.get(kernel.name)
    if export is None:
        raise UsageError(
            f"adapter `{adapter.name}` exports no kernel `{kernel.name}`"
            f"{did_you_mean(kernel.name, rows)}; it exports {', '.join(rows)}"
        )
    found = (tuple(p.name for p in program.parameters), kernel.call.returns)
    wanted = (tuple(a.name for a in export.arguments), export.returns)
    if found != wanted:
        raise refuse(
            f"`{kernel.name}` cannot stand in for `{export.name}` of `{adapter.name}`",
            kernel.span,
            label=f"is called {_call(*found)}",
            help=f"write `call {_call(*wanted)}`",
        )
    return evolve(
        program,
        entry=export.name,
        parameters=_parameters(export, program),
        constants=(*export.constants, *program.constants),
    )


def _call(arguments: tuple[str, ...], returns: tuple[str, ...]) -> str:
    return f"({', '.join(arguments)}) -> {', '.join(returns)}"


def _parameters(export: Export, program: Program) -> tuple[Parameter, ...]:
    values = {constant.name: str(constant.value) for constant in export.constants}
    for parameter, argument in zip(program.parameters, export.arguments, strict=True):
        ours, theirs = parameter.default, values.get(argument.default or "", argument.default)
        if ours and theirs and literal_eval(ours) != literal_eval(theirs):
            raise UsageError(
                f"`{export.name}` has {argument.name}={theirs} for its callers, not {ours}; "
                "leave out the schedule key that changes it"
            )
    return tuple(
        evolve(parameter, default=argument.default)
        for parameter, argument in zip(program.parameters, export.arguments, strict=True)
    )


def _told_apart(programs: Sequence[Program]) -> tuple[Program, ...]:
    """Rename what has one name and two meanings."""
    functions: dict[str, list[Function]] = {}
    constants: dict[str, set[str]] = {}
    for program in programs:
        for function in program.functions:
            functions.setdefault(function.name, []).append(function)
        for constant in program.constants:
            constants.setdefault(constant.name, set()).add(str(constant.value))
    for name, values in constants.items():
        if len(values) > 1:
            raise UsageError(
                f"the kernels differ in `{name}` ({', '.join(sorted(values))}); "
                "compile them into modules of their own"
            )
    clashing = {
        name for name, found in functions.items() if any(other != found[0] for other in found[1:])
    }
    return tuple(
        _renamed(program, {name: f"{program.entry}_{name}" for name in clashing})
        for program in programs
    )


def _renamed(program: Program, names: Mapping[str, str]) -> Program:
    """Rename functions of a program, and every call of them."""
    return evolve(
        program,
        functions=tuple(
            evolve(
                function,
                name=names.get(function.name, function.name),
                body=_calls_renamed(function.body, names),
            )
            for function in program.functions
        ),
        body=_calls_renamed(program.body, names),
    )


def _calls_renamed(
    statements: tuple[Statement, ...], names: Mapping[str, str]
) -> tuple[Statement, ...]:
    return tuple(_call_renamed(statement, names) for statement in statements)


def _call_renamed(statement: Statement, names: Mapping[str, str]) -> Statement:
    match statement:
        case Invoke(function=function):
            return evolve(statement, function=names.get(function, function))
        case For(body=body) | ForEach(body=body):
            return evolve(statement, body=_calls_renamed(body, names))
        case If(then=then, otherwise=otherwise):
            return evolve(
                statement,
                then=_calls_renamed(then, names),
                otherwise=_calls_renamed(otherwise, names),
            )
        case _:
            return statement
