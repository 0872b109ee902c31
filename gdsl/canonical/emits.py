"""The outputs of a rule: which state they read, along which vector, and what is added."""

from __future__ import annotations

from gdsl.canonical.body import Body
from gdsl.canonical.build import Builder, is_number
from gdsl.canonical.form import Emit
from gdsl.canonical.linear import BaseRead, BaseState, Piece, term_pieces
from gdsl.canonical.refusal import EMIT, refuse
from gdsl.canonical.terms import Contraction, Linear, Term, Version
from gdsl.ir.expr import Expr
from gdsl.ir.node import Symbol
from gdsl.source import Span


def emit(body: Body, result: Symbol, final: int, state_axes: tuple[str, str]) -> Emit:
    """Return the canonical form of one result of a rule.

    An output that reads only the final state is taken after the write; any other one is rewritten
    as a read of the incoming state plus a skip. Raises CompileError for what is neither.
    """
    value = body.values[result]
    if not isinstance(value, Linear):
        return Emit(result, None, value, after=True, axis=state_axes[0], span=value.span)
    reads = [term for term in value.terms if term.atom is not None]
    if any(isinstance(term.atom, Version) for term in reads):
        _whole_state(reads[0].span)
    if all(isinstance(t.atom, Contraction) and t.atom.version == final for t in reads):
        return _after(body.builder, result, value.terms, state_axes)
    pieces = tuple(piece for term in value.terms for piece in term_pieces(body, term))
    return _before(body.builder, result, pieces, state_axes)


def _after(
    builder: Builder, result: Symbol, terms: tuple[Term, ...], state_axes: tuple[str, str]
) -> Emit:
    parts: list[tuple[bool, tuple[Expr, ...], Expr, str, Span | None]] = []
    skips: list[tuple[bool, Expr]] = []
    for term in terms:
        if isinstance(term.atom, Contraction):
            parts.append((term.negative, term.factors, term.atom.vector, term.atom.axis, term.span))
        else:
            skips.append((term.negative, builder.product(term.factors, term.span)))
    return _emit(builder, result, parts, skips, True, state_axes)


def _before(
    builder: Builder, result: Symbol, pieces: tuple[Piece, ...], state_axes: tuple[str, str]
) -> Emit:
    parts: list[tuple[bool, tuple[Expr, ...], Expr, str, Span | None]] = []
    skips: list[tuple[bool, Expr]] = []
    for piece in pieces:
        match piece.base:
            case BaseRead(vector=vector, axis=axis, decay=decay):
                factors = (*piece.factors, *decay)
                parts.append((piece.negative, factors, vector, axis, piece.span))
            case BaseState():
                _whole_state(piece.span)
            case None:
                skips.append((piece.negative, builder.product(piece.factors, piece.span)))
    return _emit(builder, result, parts, skips, False, state_axes)


def _emit(
    builder: Builder,
    result: Symbol,
    parts: list[tuple[bool, tuple[Expr, ...], Expr, str, Span | None]],
    skips: list[tuple[bool, Expr]],
    after: bool,
    state_axes: tuple[str, str],
) -> Emit:
    axes = {axis for _, _, _, axis, _ in parts}
    if len(axes) > 1:
        refuse(
            EMIT,
            "an output contracts both axes of the state",
            parts[-1][4],
            "this read contracts the other axis",
            "return them as two results",
        )
    (axis,) = axes
    other = next(name for name in state_axes if name != axis)
    for _, factors, _, _, span in parts:
        for factor in factors:
            if other in factor.type.axes:
                refuse(
                    EMIT,
                    f"an output scales what it reads along `{other}`",
                    factor.span or span,
                    f"carries `{other}`",
                    "apply this factor to the result, outside of the rule",
                )
    query = builder.total(
        [
            (neg, builder.product((*factors, vector), span))
            for neg, factors, vector, _, span in parts
        ]
    )
    skips = [(negative, skip) for negative, skip in skips if not is_number(skip, 0.0)]
    skip = builder.total(skips) if skips else None
    return Emit(result, query, skip, after=after, axis=axis, span=parts[0][4])


def _whole_state(span: Span | None) -> None:
    refuse(
        EMIT,
        "an output carries both axes of the state",
        span,
        "this is the state itself, or scaled",
        "contract one axis, `o = sum[K](q * S)`; the state is returned anyway",
    )
