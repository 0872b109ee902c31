"""Where a window in front of a rule in chunks rounds, as a rewrite of the typed kernel.

A schedule filters all tokens before the first chunk is read. TensorE weighs 16-bit tokens with fp16
weights, and what it hands on lies in memory in the dtype of the operands: the sum over the window,
or silu of it where the text takes that. Casts at these places make whoever evaluates the kernel
round where the schedule does.
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
    """Return the plan's kernel with casts where its windows round beside 16-bit `operands`."""
    kernel = plan.kernel.kernel
    if operands is Dtype.F32:
        return kernel
    windows = [run for run, form in plan.kernel.runs if isinstance(form, Window)]
    sums = {result for run in windows for result in run.results}
    body: list[Statement] = []
    for statement in kernel.body:
        match statement:
            case Let(target=target, value=value) if _is_sum(value, sums):
                sums.add(target)
                body.append(statement)
            case Let(value=value):
                body.append(evolve(statement, value=_rounded(value, sums, operands)))
            case Run(args=args, axis=axis) if statement in windows:
                weighed = (a if axis in a.type.axes else _cast(a, Dtype.F16) for a in args)
                body.append(evolve(statement, args=tuple(weighed)))
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
        return _cast(expr, operands)
    old = children(expr)
    return (
        with_children(expr, tuple(_rounded(child, sums, operands) for child in old))
        if old
        else expr
    )


def _cast(expr: Expr, dtype: Dtype) -> Cast:
    return Cast(dtype, expr, expr.type, span=expr.span)


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
