"""Arguments that many instruction rows share."""

from __future__ import annotations

from typing import Literal

from backends.isa import dtypes, operators
from backends.isa.schema import NOWHERE, ON_CHIP, SBUF, Kind, Param, Space

NAME = Param("name", Kind.NAME, default=None)
ENGINE = Param("engine", Kind.CHOICE, default="unknown", choices="engine")
FP32 = frozenset({"float32"})
ARITHMETIC_BINARY = operators.ARITHMETIC & operators.BINARY


def out(
    name: str = "dst",
    spaces: frozenset[Space] = ON_CHIP,
    dtypes: frozenset[str] | None = None,
    keeps: Literal["never", "always", "sometimes"] = "never",
) -> Param:
    """A tile that is written."""
    return Param(name, Kind.OUT, spaces=spaces, dtypes=dtypes, keeps=keeps)


def tile(
    name: str, spaces: frozenset[Space] = ON_CHIP, dtypes: frozenset[str] | None = None
) -> Param:
    """A tile that is read."""
    return Param(name, Kind.IN, spaces=spaces, dtypes=dtypes)


def operand(name: str, *default: object, dtypes: frozenset[str] = FP32) -> Param:
    """A number or a (P, 1) tile; tiles of arithmetic operands are fp32."""
    if default:
        return Param(name, Kind.OPERAND, default=default[0], spaces=ON_CHIP, dtypes=dtypes)
    return Param(name, Kind.OPERAND, spaces=ON_CHIP, dtypes=dtypes)


def operator(name: str, allowed: frozenset[str], *default: object) -> Param:
    """An operator slot that takes `allowed`."""
    if default:
        return Param(name, Kind.OPERATOR, default=default[0], operators=allowed)
    return Param(name, Kind.OPERATOR, operators=allowed)


def flag(name: str) -> Param:
    """A switch that is off unless given."""
    return Param(name, Kind.FLAG, default=False)


def integers(name: str, default: object) -> Param:
    """A tuple of integers."""
    return Param(name, Kind.INTEGERS, default=default)


def reduce_command(default: str) -> Param:
    """`reduce_cmd`, whose default differs between instructions."""
    return Param("reduce_cmd", Kind.CHOICE, default=default, choices="reduce_cmd")


REDUCE_RESULT = Param(
    "reduce_res", Kind.VECTOR_OUT, default=None, spaces=ON_CHIP, dtypes=dtypes.UNPACKED
)
SBUF_OUT = out(spaces=SBUF)

__all__ = [
    "ARITHMETIC_BINARY",
    "ENGINE",
    "FP32",
    "NAME",
    "NOWHERE",
    "REDUCE_RESULT",
    "SBUF_OUT",
    "flag",
    "integers",
    "operand",
    "operator",
    "out",
    "reduce_command",
    "tile",
]
