"""The interpreter that rounds where a TensorE kernel must: q, k, delta and the state operand.

The second bound on bf16 plans that go token by token (see `gdsl.verification.bounds`) is the error
of the definition itself with these operands rounded. It is got by a rewrite of the typed kernel, so
that the interpreter knows nothing of it: in every rule, both operands of a contraction with the
state and both factors of what is added to the state are cast to bf16.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from attrs import evolve

from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Apply, Cast, Expr, Reduce
from gdsl.ir.kernel import Kernel, Let, Rule, Run, Statement
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import children, symbols, with_children
from gdsl.ir.types import Type
from gdsl.regimes.trial import carried_states


def round_operands(kernel: Kernel) -> Kernel:
    """Return the kernel with bf16 operands in its recurrences and outputs that are not rounded."""
    body = tuple(
        evolve(s, rule=_rounded_rule(s.rule)) if isinstance(s, Run) else s for s in kernel.body
    )
    return evolve(unrounded_outputs(kernel), body=body)


def unrounded_outputs(kernel: Kernel) -> Kernel:
    """Return the kernel with outputs in fp32, except those that the next call takes as states."""
    carried = set(carried_states(kernel).values())
    outputs = tuple(
        output if output.name in carried else evolve(output, dtype=Dtype.F32)
        for output in kernel.outputs
    )
    return evolve(kernel, outputs=outputs)


def _rounded_rule(rule: Rule) -> Rule:
    own = [axis for axis in rule.axes if axis in rule.state_type.axes]
    if len(own) != 2:
        return rule
    states = {rule.state}
    body: list[Statement] = []
    for statement in rule.body:
        match statement:
            case Let(target=target, value=value):
                body.append(evolve(statement, value=_round(value, states, own)))
                if set(own) <= set(value.type.axes) and _mentions(value, states):
                    states.add(target)
            case Run():
                body.append(evolve(statement, rule=_rounded_rule(statement.rule)))
                states.add(statement.state_out)
            case _:
                assert_never(statement)
    return evolve(rule, body=tuple(body))


def _mentions(expr: Expr, states: Iterable[Symbol]) -> bool:
    return any(symbol in states for symbol in symbols(expr))


def _round(expr: Expr, states: set[Symbol], own: list[str]) -> Expr:
    if isinstance(expr, Reduce) and _mentions(expr.arg, states):
        return evolve(expr, arg=_round_contracted(expr.arg, states))
    outer = _outer_product(expr, states, own)
    if outer is not None:
        left, right = (_cast(_round(arg, states, own)) for arg in outer.args)
        return evolve(outer, args=(left, right))
    old = children(expr)
    return with_children(expr, tuple(_round(child, states, own) for child in old)) if old else expr


def _round_contracted(expr: Expr, states: set[Symbol]) -> Expr:
    """Round the state and the vector it is contracted with, each as a whole."""
    if isinstance(expr, Apply) and expr.operator == "mul":
        held = [_mentions(arg, states) for arg in expr.args]
        if held.count(True) == 1:
            return evolve(expr, args=tuple(map(_cast, expr.args)))
    return _cast(expr)


def _outer_product(expr: Expr, states: set[Symbol], own: list[str]) -> Apply | None:
    """Return the product of something along one state axis with something along the other."""
    if not (isinstance(expr, Apply) and expr.operator == "mul"):
        return None
    carried = [set(own) & set(arg.type.axes) for arg in expr.args]
    one_each = all(len(axes) == 1 for axes in carried) and carried[0] != carried[1]
    return expr if one_each else None


def _cast(expr: Expr) -> Expr:
    if isinstance(expr, Cast):
        return expr
    return Cast(Dtype.BF16, expr, Type(expr.type.axes, Dtype.BF16, expr.type.range))
