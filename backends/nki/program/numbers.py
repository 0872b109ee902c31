"""Trace-time numbers: what the emitted kernel computes in Python before anything runs on a device.

Sizes come from tensor shapes, so a number is symbolic here. Operators fold what can be folded and
write sums and products from left to right, so that a formula prints as a person would type it.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

Value = int | float


@frozen
class Number:
    """Base of all trace-time numbers. Operators build new ones."""

    def __add__(self, other: Numeric) -> Number:
        return binary("+", self, number(other))

    def __radd__(self, other: Numeric) -> Number:
        return binary("+", number(other), self)

    def __sub__(self, other: Numeric) -> Number:
        return binary("-", self, number(other))

    def __rsub__(self, other: Numeric) -> Number:
        return binary("-", number(other), self)

    def __mul__(self, other: Numeric) -> Number:
        return binary("*", self, number(other))

    def __rmul__(self, other: Numeric) -> Number:
        return binary("*", number(other), self)

    def __truediv__(self, other: Numeric) -> Number:
        return binary("/", self, number(other))

    def __rtruediv__(self, other: Numeric) -> Number:
        return binary("/", number(other), self)

    def __floordiv__(self, other: Numeric) -> Number:
        return binary("//", self, number(other))

    def __mod__(self, other: Numeric) -> Number:
        return binary("%", self, number(other))

    def __neg__(self) -> Number:
        return number(-1) * self if not isinstance(self, Literal) else Literal(-self.value)

    def __str__(self) -> str:
        return _show(self)[0]


@frozen(str=False)
class Literal(Number):
    """A number that is known."""

    value: Value


@frozen(str=False)
class Name(Number):
    """A Python variable of the emitted kernel that holds a number."""

    name: str


@frozen(str=False)
class Query(Number):
    """Text that the trace evaluates: `nl.program_id(0)`, `None`."""

    text: str


@frozen(str=False)
class Extent(Number):
    """`tensor.shape[dim]`."""

    tensor: str
    dim: int


@frozen(str=False)
class Binary(Number):
    """An arithmetic operation or a comparison, spelled as in Python."""

    op: str
    left: Number
    right: Number


@frozen(str=False)
class Smallest(Number):
    """`min(a, b)`."""

    left: Number
    right: Number


@frozen(str=False)
class Largest(Number):
    """`max(a, b)`."""

    left: Number
    right: Number


@frozen(str=False)
class Choice(Number):
    """`then if condition else other`."""

    condition: Number
    then: Number
    other: Number


class Structure(Number, ABC):
    """A trace-time value that is no number, or part of one; see `program.structures`."""

    @abstractmethod
    def written(self) -> str:
        """Return its Python text."""

    @abstractmethod
    def valued(self, names: Mapping[str, Any]) -> Any:
        """Return its value, as `evaluate` does."""

    @abstractmethod
    def parts(self) -> tuple[Number, ...]:
        """Return the values it is made of."""


Numeric = Number | int | float

NONE = Query("None")
"""What a missing optional argument is."""
ZERO = Literal(0)
ONE = Literal(1)

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}
_PRECEDENCE = {
    **dict.fromkeys(("or",), 1),
    **dict.fromkeys(("and",), 2),
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "//", "%"), 5),
    **dict.fromkeys(("**",), 7),
}
_NEGATION, _ATOM, _CHOICE = 6, 8, 0
_RIGHT_IDENTITY = {"+": 0, "-": 0, "*": 1, "/": 1, "//": 1, "**": 1}
_LEFT_IDENTITY = {"+": 0, "*": 1}


def number(value: Numeric) -> Number:
    """Return a number as a node."""
    return value if isinstance(value, Number) else Literal(value)


def binary(op: str, left: Numeric, right: Numeric) -> Number:
    """Return `left op right`, folded where both are known or one is neutral."""
    left, right = number(left), number(right)
    if isinstance(left, Literal) and isinstance(right, Literal):
        return Literal(_OPERATIONS[op](left.value, right.value))
    if isinstance(right, Literal) and _RIGHT_IDENTITY.get(op) == right.value:
        return left
    if isinstance(left, Literal) and _LEFT_IDENTITY.get(op) == left.value:
        return right
    if op == "and" and Literal(True) in (left, right):
        return left if right == Literal(True) else right
    if op == "*" and ZERO in (left, right):
        return ZERO
    if op == "-" and left == right:
        return ZERO
    if op == "*" and isinstance(right, Literal):
        left, right = right, left
    if op in ("+", "*") and isinstance(right, Binary) and right.op == op:
        return binary(op, binary(op, left, right.left), right.right)
    if op == "+" and isinstance(right, Literal):
        match left:
            case Binary(op="+", left=rest, right=Literal(value=known)):
                return binary("+", rest, Literal(known + right.value))
    if op == "+" and (more := _one_more(left, right)) is not None:
        return more
    return Binary(op, left, right)


def _one_more(left: Number, right: Number) -> Number | None:
    """`n * x + x` as `(n + 1) * x`, for ends of slices; None for any other sum."""
    if left == right:
        return binary("*", 2, right)
    if isinstance(left, Binary) and left.op == "*" and left.right == right:
        return binary("*", binary("+", left.left, 1), right)
    return None


def smallest(left: Numeric, right: Numeric) -> Number:
    """Return `min(left, right)`."""
    left, right = number(left), number(right)
    if isinstance(left, Literal) and isinstance(right, Literal):
        return Literal(min(left.value, right.value))
    return left if left == right else Smallest(left, right)


def product(factors: tuple[Numeric, ...]) -> Number:
    """Return the product in the order given; 1 for none."""
    result: Number = ONE
    for factor in factors:
        result = result * factor
    return result


def evaluate(value: Number, names: Mapping[str, Any]) -> Any:
    """Return the value; `names` maps variables to numbers and tensors to things with `.shape`."""
    match value:
        case Literal(value=known):
            return known
        case Name(name=name) | Query(text=name):
            return names[name]
        case Extent(tensor=tensor, dim=dim):
            return names[tensor].shape[dim]
        case Binary(op=op, left=left, right=right):
            first = evaluate(left, names)
            if op == "and":
                return first and evaluate(right, names)
            if op == "or":
                return first or evaluate(right, names)
            return _OPERATIONS[op](first, evaluate(right, names))
        case Smallest(left=left, right=right):
            return min(evaluate(left, names), evaluate(right, names))
        case Largest(left=left, right=right):
            return max(evaluate(left, names), evaluate(right, names))
        case Choice(condition=condition, then=then, other=other):
            return evaluate(then if evaluate(condition, names) else other, names)
        case Structure():
            return value.valued(names)
    raise TypeError(f"not a trace-time number: {value!r}")


def _show(value: Number) -> tuple[str, int]:
    """The Python text and the precedence of its outermost operation."""
    match value:
        case Literal(value=known):
            return repr(known), _ATOM if known >= 0 else _NEGATION
        case Name(name=name) | Query(text=name):
            return name, _ATOM
        case Extent(tensor=tensor, dim=dim):
            return f"{tensor}.shape[{dim}]", _ATOM
        case Binary(op="*", left=Literal(value=-1), right=right):
            return f"-{_inside(right, _NEGATION)}", _NEGATION
        case Binary(op=op, left=left, right=right):
            level = _PRECEDENCE[op]
            powers = op == "**"
            # A negative literal may stand bare on the right of `**` but not on its left.
            first = _inside(left, level + powers)
            second = _inside(right, _NEGATION if powers else level + 1)
            return f"{first} {op} {second}", level
        case Smallest():
            return f"min({', '.join(map(str, _nested(value, Smallest)))})", _ATOM
        case Largest():
            return f"max({', '.join(map(str, _nested(value, Largest)))})", _ATOM
        case Choice(condition=condition, then=then, other=other):
            return f"{_inside(then, 1)} if {_inside(condition, 1)} else {other}", _CHOICE
        case Structure():
            return value.written(), _ATOM
    raise TypeError(f"not a trace-time number: {value!r}")


def _nested(value: Number, kind: type[Smallest] | type[Largest]) -> tuple[Number, ...]:
    """The operands of a minimum or maximum, those of one inside it among them."""
    if not isinstance(value, kind):
        return (value,)
    return (*_nested(value.left, kind), *_nested(value.right, kind))


def _inside(value: Number, level: int) -> str:
    text, own = _show(value)
    return text if own >= level else f"({text})"
