"""Operators of the language applied to numbers that are known when a kernel is traced."""

from __future__ import annotations

import math
from collections.abc import Callable

from backends.nki.program.numbers import Literal, Number, binary

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1.0 / math.sqrt(x),
    "abs": abs,
    "min": min,
    "max": max,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + math.exp(-x)),
    "softplus": lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
}


class NotTraceTime(Exception):
    """A function of trace-time numbers that the emitted kernel would have to evaluate in Python."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.operator = name


def applied(name: str, values: tuple[Number, ...]) -> Number:
    """Return an operator of numbers. Raises NotTraceTime where Python would have to compute it."""
    if name in _ARITHMETIC:
        return binary(_ARITHMETIC[name], *values)
    if name == "neg":
        return -values[0]
    floats = [value.value for value in values if isinstance(value, Literal)]
    if len(floats) == len(values) and name in _FUNCTIONS:
        return Literal(float(_FUNCTIONS[name](*floats)))
    raise NotTraceTime(name)
