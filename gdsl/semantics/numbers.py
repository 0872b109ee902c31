"""Numbers of the text, and whether f32 can hold them."""

from __future__ import annotations

import math

from gdsl.ir import interval as iv
from gdsl.ir.expr import Expr
from gdsl.semantics import typed
from gdsl.semantics.frame import Frame
from gdsl.syntax import ast


def elaborate_number(node: ast.Number, frame: Frame) -> Expr | None:
    """Return a constant; None when f32 cannot hold it."""
    value = number_value(node.value)
    if value is None:
        frame.error(
            "E0108",
            f"the number {_shortened(node.text)} does not fit f32",
            node.span,
            label="cannot be held",
            help=f"f32 holds 0 and magnitudes from {iv.F32_TINY:.3g} to {iv.F32_MAX:.3g}",
        )
        return None
    return typed.constant(value, frame.place(node.span))


def number_value(value: float | int) -> float | None:
    """Return a number as a float, or None when f32 has neither it nor a neighbour of it."""
    if isinstance(value, int) and abs(value) > 10**40:
        return None
    real = float(value)
    fits = real == 0 or iv.F32_TINY <= abs(real) <= iv.F32_MAX
    lost = real == 0 and value != 0
    return real if fits and not lost and math.isfinite(real) else None


def _shortened(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:12]}...{text[-6:]}"
