"""A window rule (`shift[W]`, the short convolution) in canonical form."""

from __future__ import annotations

from gdsl.canonical.body import Body, Incoming, Shifted
from gdsl.canonical.form import Window, WindowEmit
from gdsl.canonical.refusal import DOES_NOT_FIT, EMIT, refuse
from gdsl.canonical.terms import Contraction, Linear, Version
from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Rule
from gdsl.ir.node import Symbol
from gdsl.source import Span


def window(body: Body, rule: Rule, final: int) -> Window:
    """Return the window form of a rule whose final state is a shift of the incoming one."""
    shifted = body.definitions[final]
    if not isinstance(shifted, Shifted) or not isinstance(
        body.definitions[shifted.version], Incoming
    ):
        return refuse(
            DOES_NOT_FIT,
            "a state with one axis must be a sliding window",
            shifted.span if isinstance(shifted, Shifted) else rule.span,
            "expected one `shift` of the incoming window",
            "write `win = shift[W](win, x)`, or give the state two axes",
        )
    emits = tuple(_emit(body, symbol, final, shifted.axis) for symbol in rule.results)
    return Window(shifted.axis, shifted.value, emits, span=rule.span)


def _emit(body: Body, symbol: Symbol, final: int, axis: str) -> WindowEmit:
    value = body.values[symbol]
    if not isinstance(value, Linear):
        return WindowEmit(symbol, None, value, after=True, span=value.span)
    builder = body.builder
    taps: list[tuple[bool, Expr]] = []
    skips: list[tuple[bool, Expr]] = []
    seen: set[int] = set()
    for term in value.terms:
        match term.atom:
            case None:
                skips.append((term.negative, builder.product(term.factors, term.span)))
            case Contraction(vector=vector, version=version):
                seen.add(version)
                taps.append((term.negative, builder.product((*term.factors, vector), term.span)))
            case Version():
                _not_a_sum(axis, term.span)
    if seen not in ({0}, {final}):
        _not_a_sum(axis, value.terms[-1].span)
    skip = builder.total(skips) if skips else None
    return WindowEmit(symbol, builder.total(taps), skip, seen == {final}, span=value.terms[0].span)


def _not_a_sum(axis: str, span: Span | None) -> None:
    refuse(
        EMIT,
        "an output of a window rule must be one sum over the window, before or after the `shift`",
        span,
        "this reads the window in another way",
        f"write `y = sum[{axis}](win * w)`",
    )
