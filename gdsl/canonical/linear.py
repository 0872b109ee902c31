"""Every version of the state, and every contraction of one, in terms of the incoming state.

The result is a sum of products of plain factors with the incoming state, with a `BaseRead` (a
contraction of the incoming state after a pure decay), or with nothing.
"""

from __future__ import annotations

from typing import NoReturn, assert_never

from attrs import frozen

from gdsl.canonical.body import Body, Incoming, Rebound, Shifted, Substeps
from gdsl.canonical.build import Builder
from gdsl.canonical.refusal import SUBSTEPS, refuse
from gdsl.canonical.terms import Contraction, Term, Version, split
from gdsl.ir.expr import Expr
from gdsl.source import Span


@frozen
class BaseState:
    """The incoming state."""


@frozen
class BaseRead:
    """sum[axis](vector * product(decay) * incoming state)."""

    vector: Expr
    axis: str
    decay: tuple[Expr, ...]


@frozen
class Piece:
    """(-1 if negative) * product(factors) * base."""

    negative: bool
    factors: tuple[Expr, ...]
    base: BaseState | BaseRead | None
    span: Span | None


def version_pieces(body: Body, index: int) -> tuple[Piece, ...]:
    """Return a version of the state in terms of the incoming one.

    Raises CompileError for a state in the middle of sub-steps, which has no such form.
    """
    match body.definitions[index]:
        case Incoming():
            return (Piece(False, (), BaseState(), None),)
        case Rebound(terms=terms):
            return tuple(piece for term in terms for piece in term_pieces(body, term))
        case Substeps(run=run):
            return _not_last(run.span)
        case Shifted(span=span):
            return _not_last(span)
        case other:
            assert_never(other)


def term_pieces(body: Body, term: Term) -> tuple[Piece, ...]:
    """Return one term in terms of the incoming state."""
    match term.atom:
        case None:
            return (Piece(term.negative, term.factors, None, term.span),)
        case Version(index=index):
            inner = version_pieces(body, index)
        case Contraction() as read:
            inner = _read_pieces(body, read, term.span)
        case _:
            assert_never(term.atom)
    return tuple(
        Piece(
            term.negative != piece.negative,
            term.factors + piece.factors,
            piece.base,
            term.span or piece.span,
        )
        for piece in inner
    )


def pure_decay(pieces: tuple[Piece, ...], builder: Builder) -> tuple[Expr, ...] | None:
    """Return the factors by which these pieces scale the incoming state, None if they do more."""
    if not all(isinstance(piece.base, BaseState) for piece in pieces):
        return None
    return state_factor(pieces, builder)


def state_factor(pieces: tuple[Piece, ...], builder: Builder) -> tuple[Expr, ...]:
    """Return the factors of the incoming state among the pieces."""
    states = [piece for piece in pieces if isinstance(piece.base, BaseState)]
    match states:
        case [Piece(negative=False, factors=factors)]:
            return factors
        case _:
            terms = [(p.negative, builder.product(p.factors, p.span)) for p in states]
            return (builder.total(terms),)


def _read_pieces(body: Body, read: Contraction, span: Span | None) -> tuple[Piece, ...]:
    builder = body.builder
    pieces = version_pieces(body, read.version)
    decay = pure_decay(pieces, builder)
    if decay is not None:
        return (Piece(False, (), BaseRead(read.vector, read.axis, decay), span),)
    return tuple(_contract(piece, read, builder, span) for piece in pieces)


def _contract(piece: Piece, read: Contraction, builder: Builder, span: Span | None) -> Piece:
    """sum[axis](vector * piece); a read does not carry the axis any more, so it moves outside."""
    if isinstance(piece.base, BaseState):
        base = BaseRead(read.vector, read.axis, piece.factors)
        return Piece(piece.negative, (), base, span)
    inside, outside = split(piece.factors, read.axis)
    vector = (read.vector,) if read.axis in read.vector.type.axes else ()
    scalar = () if vector else (read.vector,)
    total = builder.reduce_sum(read.axis, builder.product((*vector, *inside), span), span)
    return Piece(piece.negative, (*scalar, *outside, total), piece.base, span)


def _not_last(span: Span | None) -> NoReturn:
    refuse(
        SUBSTEPS,
        "the state is used again after its sub-steps",
        span,
        "the sub-steps must be the last update of the state",
        "move the decay before the sub-steps and read their result only in outputs",
    )
