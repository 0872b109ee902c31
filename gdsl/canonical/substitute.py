"""Putting expressions in place of names; types are computed again on the way up."""

from __future__ import annotations

from collections.abc import Mapping

from gdsl.canonical.build import Builder
from gdsl.ir.expr import Expr, Ref
from gdsl.ir.kernel import Run
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import children, with_children


def retyped(expr: Expr, new: tuple[Expr, ...], builder: Builder) -> Expr:
    """Return the same node over other subexpressions, typed from them."""
    return builder.typed(with_children(expr, new)) if new else expr


def substitute(expr: Expr, values: Mapping[Symbol, Expr], builder: Builder) -> Expr:
    """Return `expr` with every name in `values` replaced."""
    if isinstance(expr, Ref):
        return values.get(expr.symbol, expr)
    old = children(expr)
    new = tuple(substitute(child, values, builder) for child in old)
    if all(a is b for a, b in zip(old, new, strict=True)):
        return expr
    return retyped(expr, new, builder)


def bind_arguments(expr: Expr, run: Run, builder: Builder) -> Expr:
    """Return an expression over a rule's parameters as one over the names of the run's kernel."""
    return substitute(expr, dict(zip(run.rule.params, run.args, strict=True)), builder)
