"""`assume` lines of a kernel: facts that its caller promises."""

from __future__ import annotations

from attrs import evolve

from gdsl.ir import interval as iv
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Assume
from gdsl.semantics import expressions
from gdsl.semantics.frame import Frame
from gdsl.syntax import ast


def read_assumes(items: tuple[ast.KernelItem, ...], frame: Frame) -> list[Assume]:
    """Return the stated facts."""
    found: list[Assume] = []
    single = evolve(frame, statements=None)
    for item in items:
        if not isinstance(item, ast.Assume):
            continue
        condition = expressions.elaborate_whole(item.condition, single)
        if condition is None:
            continue
        if condition.type.dtype is not Dtype.BOOL:
            frame.error(
                "E0308",
                "`assume` states a comparison",
                item.condition.span,
                label="this is a number",
                help="compare it: `assume sum[K](key * key) <= 1.01`",
            )
        elif condition.type.range.hi == 0 and not condition.type.range.may_be_nan:
            frame.error(
                "E0309",
                "this never holds",
                item.condition.span,
                notes=_sides(item.condition, single),
            )
        else:
            found.append(Assume(condition, span=item.span))
    return found


def _sides(node: ast.Expr, frame: Frame) -> tuple[str, ...]:
    if not isinstance(node, ast.Binary):
        return ()
    sides = [expressions.elaborate(side, frame) for side in (node.left, node.right)]
    left, right = (iv.show(side.type.range) for side in sides if side is not None)
    return (f"left side in {left}, right side in {right}",)
