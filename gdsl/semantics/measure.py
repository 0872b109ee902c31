"""How large things may be. Every later stage walks expressions by recursion."""

from __future__ import annotations

from gdsl.ir.expr import Expr
from gdsl.ir.traverse import children

DEEPEST = 100
MOST_NODES = 5000
I32_MAX = 2**31 - 1
"""The largest size, count and default of an i32 input."""


def is_too_large(expr: Expr) -> bool:
    """Whether an expression is deeper or larger than later stages follow. Without recursion."""
    pending = [(expr, 1)]
    nodes = 0
    while pending:
        node, depth = pending.pop()
        nodes += 1
        if depth > DEEPEST or nodes > MOST_NODES:
            return True
        pending.extend((child, depth + 1) for child in children(node))
    return False
