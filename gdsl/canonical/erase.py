"""The delta read of an update, and the vector along which it is erased."""

from __future__ import annotations

from collections import Counter

from attrs import evolve, frozen

from gdsl.canonical.build import Builder
from gdsl.canonical.form import Read, ReadWhen
from gdsl.canonical.linear import BaseRead, Piece
from gdsl.canonical.outer import sorted_factors
from gdsl.canonical.refusal import DOES_NOT_FIT, READ, refuse
from gdsl.canonical.terms import factors as split_factors
from gdsl.ir.expr import Expr
from gdsl.source import Span

Factors = tuple[Expr, ...]


@frozen
class _Erase:
    """(-1 if negative) * product(key) * product(scalar) * sum[K](product(vector) * S)."""

    negative: bool
    key: Factors
    scalar: Factors
    vector: Factors
    when: ReadWhen
    span: Span | None


def read_and_erase(
    reads: list[tuple[Piece, BaseRead]],
    decay: Factors,
    state_axes: tuple[str, str],
    builder: Builder,
) -> tuple[Read | None, Expr | None]:
    """Return the one read and its erase vector; (None, None) when the update reads nothing.

    `state_axes` is (key, value). Several reads are joined when they have the same vector or erase
    along the same direction. Raises CompileError otherwise.
    """
    if not reads:
        return None, None
    terms = [_erase(piece, read, decay, state_axes) for piece, read in reads]
    if len({term.when for term in terms}) > 1:
        terms = [_before_decay(term, decay) for term in terms]
    first = terms[0]
    if all(Counter(term.vector) == Counter(first.vector) for term in terms):
        vector = builder.product(first.vector, first.span)
        erase = builder.total(
            [(not t.negative, builder.product((*t.key, *t.scalar), t.span)) for t in terms]
        )
    elif all(Counter(term.key) == Counter(first.key) for term in terms):
        vector = builder.total(
            [(not t.negative, builder.product((*t.scalar, *t.vector), t.span)) for t in terms]
        )
        erase = builder.product(first.key, first.span)
    else:
        other = next(term for term in terms if Counter(term.vector) != Counter(first.vector))
        refuse(
            READ,
            "the update reads the state along two different vectors",
            other.span,
            "a second delta read",
            "use one read per token, or ordered sub-steps `S = scan[N] ...`",
            (first.span, "the first delta read"),
        )
    return Read(vector, first.when if len(terms) == 1 else terms[0].when, span=first.span), erase


def _erase(piece: Piece, read: BaseRead, decay: Factors, state_axes: tuple[str, str]) -> _Erase:
    key_axis, value_axis = state_axes
    if read.axis != key_axis:
        refuse(
            READ,
            f"the update reads the state over `{key_axis}` and over `{read.axis}`",
            piece.span,
            f"this read contracts `{read.axis}`",
            f"contract `{key_axis}` in every delta read",
        )
    coefficient = sorted_factors(piece, key_axis, value_axis)
    if coefficient.value:
        refuse(
            DOES_NOT_FIT,
            f"what is read is scaled along `{value_axis}` before it is erased",
            coefficient.value[0].span or piece.span,
            f"carries `{value_axis}`",
            f"scale what is written instead, `k * (w * v - r)`, or the read with a `{key_axis}` "
            "vector",
        )
    negative, vector = split_factors(read.vector)
    term = _Erase(
        coefficient.negative != negative,
        coefficient.key,
        coefficient.scalar,
        vector,
        ReadWhen.PRE,
        piece.span,
    )
    if Counter(read.decay) == Counter(decay):
        return evolve(term, when=ReadWhen.POST)
    return _with_decay_recognised(_after(term, read.decay, value_axis), decay)


def _after(term: _Erase, decay: Factors, value_axis: str) -> _Erase:
    """A read after another decay than the update's is a read before it, along a scaled vector."""
    if any(value_axis in factor.type.axes for factor in decay):
        refuse(
            READ,
            f"the state is read after a decay along `{value_axis}` that is not the whole decay",
            term.span,
            "this read sees a partly decayed state",
            "read before the decay or after all of it",
        )
    return evolve(term, vector=(*decay, *term.vector))


def _with_decay_recognised(term: _Erase, decay: Factors) -> _Erase:
    """A read before the decay that is scaled by all of it is a read after it."""
    missing = Counter(decay) - Counter(term.scalar) - Counter(term.vector)
    if missing or not decay:
        return term
    scalar, rest = _without(term.scalar, Counter(decay))
    vector, _ = _without(term.vector, rest)
    return evolve(term, scalar=scalar, vector=vector, when=ReadWhen.POST)


def _without(factors: Factors, unwanted: Counter[Expr]) -> tuple[Factors, Counter[Expr]]:
    """Return the factors without the unwanted ones, and what is still unwanted."""
    rest, kept = Counter(unwanted), []
    for factor in factors:
        if rest[factor]:
            rest[factor] -= 1
        else:
            kept.append(factor)
    return tuple(kept), rest


def _before_decay(term: _Erase, decay: Factors) -> _Erase:
    if term.when is ReadWhen.PRE:
        return term
    return evolve(term, vector=(*decay, *term.vector), when=ReadWhen.PRE)
