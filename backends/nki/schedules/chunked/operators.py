"""Operators of `nki.language` as operands."""

from __future__ import annotations

from backends.nki.program.nodes import Token

COPY, EXP = Token("nl.copy"), Token("nl.exp")
ADD, SUBTRACT, MULTIPLY = Token("nl.add"), Token("nl.subtract"), Token("nl.multiply")
GREATER, GREATER_EQUAL, EQUAL = Token("nl.greater"), Token("nl.greater_equal"), Token("nl.equal")
LESS = Token("nl.less")
