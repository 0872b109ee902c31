"""Declared ranges of inputs and params."""

from __future__ import annotations

from gdsl.ir import interval as iv
from gdsl.ir.dtypes import Dtype
from gdsl.ir.types import DtypeVar, Interval
from gdsl.semantics.frame import Frame
from gdsl.semantics.numbers import number_value
from gdsl.syntax import ast


def interval(node: ast.Interval, dtype: Dtype | DtypeVar | None, frame: Frame) -> Interval | None:
    """Return a declared range; None where it is wrong, which is reported."""
    if dtype is Dtype.BOOL:
        frame.error("E0308", "a bool has no range", node.span)
        return None
    empty = node.lo > node.hi or (node.lo == node.hi and (node.lo_open or node.hi_open))
    if empty:
        frame.error(
            "E0309",
            "no number lies in this range",
            node.span,
            help="the smaller bound comes first; `[` and `]` include it, `(` and `)` do not",
        )
        return None
    for text, value in ((node.lo_text, node.lo), (node.hi_text, node.hi)):
        written_inf = text.lstrip("-") == "inf"
        if not written_inf and number_value(value) is None:
            frame.error(
                "E0108",
                f"the bound {text[:24]} does not fit f32",
                node.span,
                help="for no bound write `-inf` or `inf`",
            )
            return None
    return Interval(node.lo, node.hi, node.lo_open, node.hi_open)


def outside(default: ast.Literal, known: Interval, frame: Frame) -> None:
    """Report a default outside its declared range."""
    frame.error(
        "E0309",
        f"the default {default.text} lies outside the declared range",
        default.span,
        label=f"is {default.text}",
        notes=(f"declared range {iv.show(known)}, default [{default.text}, {default.text}]",),
        help="widen the range, or choose a default inside it",
    )
