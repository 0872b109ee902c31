"""The decay of a rule: its kind, whether it is constant, and its logarithm found symbolically."""

from __future__ import annotations

from collections.abc import Mapping

from gdsl.canonical.build import Builder
from gdsl.canonical.form import Decay, DecayKind
from gdsl.canonical.refusal import DECAY, refuse
from gdsl.canonical.sources import dependencies, sources
from gdsl.canonical.substitute import bind_arguments
from gdsl.ir.expr import Apply, Expr, Ref
from gdsl.ir.kernel import Kernel, Let, Run
from gdsl.ir.node import Symbol
from gdsl.source import Span


def decay_kind(
    decay: tuple[Expr, ...], key_axis: str, value_axis: str, span: Span | None
) -> DecayKind:
    """Return the kind of a product of factors. Raises CompileError when it has both axes."""
    axes = {axis for factor in decay for axis in factor.type.axes}
    match key_axis in axes, value_axis in axes:
        case True, True:
            return refuse(
                DECAY,
                "the decay varies along both axes of the state",
                span,
                f"carries `{key_axis}` and `{value_axis}`",
                f"use a decay per head, per `{key_axis}` or per `{value_axis}`",
            )
        case True, False:
            return DecayKind.KEY_VECTOR
        case False, True:
            return DecayKind.VALUE_VECTOR
        case _:
            return DecayKind.SCALAR if decay else DecayKind.NONE


def decay_of(
    kernel: Kernel, run: Run, factors: tuple[Expr, ...], kind: DecayKind, builder: Builder
) -> Decay:
    """Return the decay of a run as a node; `factors` refer to the rule's parameters."""
    if not factors:
        return Decay(kind, None, None, constant=True)
    factor = builder.product(factors)
    bound = [bind_arguments(part, run, builder) for part in factors]
    definitions = {s.target: s.value for s in kernel.body if isinstance(s, Let)}
    logs = [symbolic_log(part, definitions, builder) for part in bound]
    known = [log for log in logs if log is not None]
    log = builder.total([(False, part) for part in known]) if len(known) == len(logs) else None
    constant = all(_constant(kernel, run, part) for part in bound)
    return Decay(kind, factor, log, constant, span=factors[0].span)


def symbolic_log(expr: Expr, definitions: Mapping[Symbol, Expr], builder: Builder) -> Expr | None:
    """Return log(expr) without taking a logarithm: log(exp(x)) is x. None where that fails."""
    match expr:
        case Apply(operator="exp", args=(arg,)):
            return arg
        case Apply(operator="sigmoid", args=(arg,)):
            softplus = builder.apply("softplus", builder.negate(arg), span=expr.span)
            return builder.negate(softplus)
        case Apply(operator="mul" | "div" as operator, args=(left, right)):
            logs = [symbolic_log(arg, definitions, builder) for arg in (left, right)]
            known = [log for log in logs if log is not None]
            if len(known) < 2:
                return None
            return builder.total([(False, known[0]), (operator == "div", known[1])])
        case Ref(symbol=symbol) if symbol in definitions:
            return symbolic_log(definitions[symbol], definitions, builder)
        case _:
            return None


def _constant(kernel: Kernel, run: Run, expr: Expr) -> bool:
    if run.axis is not None:
        return run.axis not in expr.type.axes
    inputs = {item.symbol for item in kernel.inputs}
    return inputs.isdisjoint(sources([expr], dependencies(kernel)))
