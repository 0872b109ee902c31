"""What a window hands on to a rule in chunks: it lies in memory in the dtype of the operands.

A schedule filters all tokens before the first chunk is read. Its rounding point is the sum over the
window, or silu of it where the text takes that: no more than one operand of a matmul is rounded
twice, q and k, which a norm may follow. The rewrite of the typed kernel puts a cast there, so that
whoever evaluates it rounds where the schedule does.
"""

from __future__ import annotations

from attrs import evolve

from gdsl.algorithm.plan import Plan
from gdsl.canonical.form import Window
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Apply, Cast, Expr, Ref, Unpack
from gdsl.ir.kernel import Kernel, Let, Run, Statement
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import children, with_children


def round_handed_on(plan: Plan, operands: Dtype) -> Kernel:
    """Return the plan's kernel with what its windows hand on cast to `operands`."""
    kernel = plan.kernel.kernel
    sums = {r for run, form in plan.kernel.runs if isinstance(form, Window) for r in run.results}
    body: list[Statement] = []
    for statement in kernel.body:
        match statement:
            case Let(target=target, value=value) if _is_sum(value, sums):
                sums.add(target)
                body.append(statement)
            case Let(value=value):
                body.append(evolve(statement, value=_rounded(value, sums, operands)))
            case Run(args=args):
                rounded = tuple(_rounded(arg, sums, operands) for arg in args)
                body.append(evolve(statement, args=rounded))
    outputs = tuple(
        evolve(output, value=_rounded(output.value, sums, operands)) for output in kernel.outputs
    )
    return evolve(kernel, body=tuple(body), outputs=outputs)


def _is_sum(expr: Expr, sums: set[Symbol]) -> bool:
    """Whether an expression is the result of a window, or a field of it."""
    while isinstance(expr, Unpack):
        expr = expr.arg
    return isinstance(expr, Ref) and expr.symbol in sums


def _rounded(expr: Expr, sums: set[Symbol], operands: Dtype) -> Expr:
    if _is_sum(expr, sums) or _is_silu(expr, sums):
        return Cast(operands, expr, expr.type, span=expr.span)
    old = children(expr)
    return (
        with_children(expr, tuple(_rounded(child, sums, operands) for child in old))
        if old
        else expr
    )


def _is_silu(expr: Expr, sums: set[Symbol]) -> bool:
    """Whether an expression is silu of the result of a window."""
    if not (isinstance(expr, Apply) and expr.operator == "mul"):
        return False
    left, right = expr.args
    return any(
        isinstance(gate, Apply)
        and gate.operator == "sigmoid"
        and gate.args == (value,)
        and _is_sum(value, sums)
        for value, gate in ((left, right), (right, left))
    )
