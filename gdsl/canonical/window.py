"""A window rule (`shift[W]`, the short convolution) in canonical form."""

from __future__ import annotations

from gdsl.canonical.body import Body, Incoming, Shifted
from gdsl.canonical.form import Window
from gdsl.canonical.refusal import DOES_NOT_FIT, EMIT, refuse
from gdsl.canonical.terms import Contraction, Linear, split
from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Rule
from gdsl.ir.node import Symbol


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
    axis = shifted.axis
    results = tuple(_result(body, symbol, final, axis) for symbol in rule.results)
    return Window(axis, shifted.value, results, span=rule.span)


def _result(
    body: Body, symbol: Symbol, final: int, axis: str
) -> tuple[Symbol, Expr | None, Expr | None]:
    value = body.values[symbol]
    if not isinstance(value, Linear):
        return symbol, None, value
    builder = body.builder
    taps: list[tuple[bool, Expr]] = []
    skips: list[tuple[bool, Expr]] = []
    for term in value.terms:
        match term.atom:
            case None:
                skips.append((term.negative, builder.product(term.factors, term.span)))
            case Contraction(vector=vector, version=version) if version == final:
                _, outside = split(term.factors, axis)
                taps.append((term.negative, builder.product((*outside, vector), term.span)))
            case _:
                refuse(
                    EMIT,
                    "an output of a window rule must be a sum over the shifted window",
                    term.span,
                    "this reads the window in another way",
                    f"write `y = sum[{axis}](win * w)` after the `shift`",
                )
    return symbol, builder.total(taps), builder.total(skips) if skips else None
