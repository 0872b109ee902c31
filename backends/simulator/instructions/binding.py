"""Binding a call to its row: names, positions and kinds of the arguments, nothing about tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from backends.isa.operators import OPERATOR_ALIASES
from backends.isa.schema import Instruction, Kind, Param
from backends.simulator.faults import Fault
from backends.simulator.instructions.enums import ENUMS
from backends.simulator.machine import running
from backends.simulator.registers import VirtualRegister
from backends.simulator.tensor import NkiTensor


def by_name(row: Instruction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a call by name, as the caller gave them.

    Raises Fault S301 for too many, or for one that is given twice.
    """
    if not args:
        return kwargs
    names = [param.name for param in row.params]
    if len(args) > len(names):
        raise Fault("S301", f"`{row.name}` takes {len(names)} arguments, {len(args)} were given")
    given = dict(zip(names, args, strict=False))
    for name in kwargs:
        if name in given:
            raise Fault("S301", f"`{row.name}` got its argument `{name}` twice")
    return given | dict(kwargs)


def bind(row: Instruction, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The value of every argument by name, as the caller gave it.

    Raises Fault S301 when the call does not fit the signature.
    """
    for name in given:
        if name not in row.by_name:
            raise Fault(
                "S301",
                f"`{row.name}` has no argument `{name}`",
                help=f"its arguments are {', '.join(row.by_name)}",
            )
    missing = [param.name for param in row.params if param.required and param.name not in given]
    if missing:
        raise Fault("S301", f"`{row.name}` needs its argument `{missing[0]}`")
    return given


def convert(row: Instruction, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every argument of the row in the form that `BoundCall` documents, defaults filled in.

    Raises Fault S302 for a value of the wrong kind.
    """
    return {
        param.name: _convert(row, param, given[param.name])
        if param.name in given
        else param.default
        for param in row.params
    }


def _convert(row: Instruction, param: Param, value: Any) -> Any:
    if value is None and param.default is None:
        return None
    return _CONVERSIONS[param.kind](row, param, value)


def _wrong(row: Instruction, param: Param, value: Any, expected: str) -> Fault:
    shown = type(value).__name__ if isinstance(value, NkiTensor) else f"{value!r}"
    article = "an" if expected[0] in "aeio" else "a"
    return Fault(
        "S302", f"argument `{param.name}` of `{row.name}` takes {article} {expected}, not {shown}"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, NkiTensor)


def _tile(row: Instruction, param: Param, value: Any) -> NkiTensor:
    if not isinstance(value, NkiTensor):
        raise _wrong(row, param, value, param.kind.value)
    return value


def _tiles(row: Instruction, param: Param, value: Any) -> tuple[NkiTensor, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise _wrong(row, param, value, param.kind.value)
    return tuple(_tile(row, param, tile) for tile in value)


def _operand(row: Instruction, param: Param, value: Any) -> Any:
    # None stands for the operand that a unary operator ignores; rules look at that.
    if isinstance(value, NkiTensor) or value is None or _is_number(value):
        return value
    raise _wrong(row, param, value, param.kind.value)


def _operator(row: Instruction, param: Param, value: Any) -> str:
    token = getattr(value, "token", None)
    if not isinstance(token, str):
        raise _wrong(row, param, value, "operator of `nki.language` such as `nl.add`")
    name = OPERATOR_ALIASES.get(token, token)
    if name not in param.operators:
        raise Fault(
            "S306",
            f"`nl.{token}` is not accepted as `{param.name}` of `{row.name}`",
            help=f"accepted are {', '.join(sorted(param.operators))}",
        )
    return name


def _number(row: Instruction, param: Param, value: Any) -> Any:
    if not _is_number(value):
        raise _wrong(row, param, value, param.kind.value)
    return value


def _numbers(row: Instruction, param: Param, value: Any) -> tuple[Any, ...]:
    items = value if isinstance(value, (list, tuple)) else (value,)
    if not all(_is_number(item) for item in items):
        raise _wrong(row, param, value, param.kind.value)
    return tuple(items)


def _integer(row: Instruction, param: Param, value: Any) -> int:
    if not isinstance(value, Integral):
        raise _wrong(row, param, value, param.kind.value)
    return int(value)


def _flag(row: Instruction, param: Param, value: Any) -> bool:
    if value not in (True, False):
        raise _wrong(row, param, value, param.kind.value)
    return bool(value)


def _choice(row: Instruction, param: Param, value: Any) -> str:
    members = ENUMS[param.choices]
    if isinstance(value, members):
        return value.name
    machine = running()
    stand_ins = {member.value: member.name for member in members}
    stand_ins |= {member.name: member.name for member in members}
    if machine is None or type(value) not in (int, str) or value not in stand_ins:
        names = ", ".join(members.__members__)
        raise _wrong(row, param, value, f"member of `nki.isa.{param.choices}` ({names})")
    name = stand_ins[value]
    advice = f"`{param.name}={value!r}` should be `nisa.{param.choices}.{name}`"
    if machine.options.enumeration_stand_ins == "fault":
        raise Fault("S302", advice)
    machine.warn("S302", advice)
    return name


def _pattern(row: Instruction, param: Param, value: Any) -> tuple[tuple[int, int], ...]:
    pairs = tuple(tuple(pair) if isinstance(pair, (list, tuple)) else () for pair in value)
    if not all(len(pair) == 2 and all(isinstance(x, Integral) for x in pair) for pair in pairs):
        raise _wrong(row, param, value, param.kind.value)
    return tuple((int(step), int(count)) for step, count in pairs)


def _integers(row: Instruction, param: Param, value: Any) -> tuple[int, ...]:
    items = (value,) if isinstance(value, Integral) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(x, Integral) for x in items):
        raise _wrong(row, param, value, param.kind.value)
    return tuple(int(x) for x in items)


def _register(row: Instruction, param: Param, value: Any) -> VirtualRegister:
    if not isinstance(value, VirtualRegister):
        raise _wrong(row, param, value, param.kind.value)
    return value


def _register_or_integer(row: Instruction, param: Param, value: Any) -> VirtualRegister | int:
    if isinstance(value, VirtualRegister):
        return value
    return _integer(row, param, value)


def _name(row: Instruction, param: Param, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(row, param, value, param.kind.value)
    return value


_CONVERSIONS: dict[Kind, Callable[[Instruction, Param, Any], Any]] = {
    Kind.OUT: _tile,
    Kind.IN: _tile,
    Kind.TILES: _tiles,
    Kind.OPERAND: _operand,
    Kind.IN_OR_NUMBER: _operand,
    Kind.VECTOR_IN: _tile,
    Kind.VECTOR_OUT: _tile,
    Kind.SEED: _tile,
    Kind.OPERATOR: _operator,
    Kind.FUNCTION: _operator,
    Kind.NUMBER: _number,
    Kind.NUMBERS: _numbers,
    Kind.INTEGER: _integer,
    Kind.FLAG: _flag,
    Kind.CHOICE: _choice,
    Kind.PATTERN: _pattern,
    Kind.INTEGERS: _integers,
    Kind.REGISTER: _register,
    Kind.REGISTER_OR_INTEGER: _register_or_integer,
    Kind.NAME: _name,
}
