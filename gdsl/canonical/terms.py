"""Sums of terms: how an expression depends on the state.

A value of a rule's body is a plain expression (no state in it) or a `Linear`: a sum of terms, each
a product of plain factors times at most one atom, a version of the state or a contraction of one.
A product of two atoms has no place here; that is what makes the update affine.
"""

from __future__ import annotations

from attrs import evolve, frozen

from gdsl.canonical.build import Builder
from gdsl.ir.expr import Apply, Expr
from gdsl.source import Span


@frozen
class Version:
    """The state as it was after the n-th rebinding; 0 is the incoming one."""

    index: int


@frozen
class Contraction:
    """sum[axis](vector * version)."""

    vector: Expr
    version: int
    axis: str


Atom = Version | Contraction


@frozen
class Term:
    """(-1 if negative) * product(factors) * atom."""

    negative: bool
    factors: tuple[Expr, ...]
    atom: Atom | None
    span: Span | None


@frozen
class Linear:
    """A sum of terms, at least one of them with an atom."""

    terms: tuple[Term, ...]


Value = Expr | Linear


def factors(expr: Expr) -> tuple[bool, tuple[Expr, ...]]:
    """Split a plain expression into a sign and the factors of its outermost products."""
    match expr:
        case Apply(operator="neg", args=(arg,)):
            negative, inner = factors(arg)
            return not negative, inner
        case Apply(operator="mul", args=(left, right)):
            left_negative, left_factors = factors(left)
            right_negative, right_factors = factors(right)
            return left_negative != right_negative, left_factors + right_factors
        case _:
            return False, (expr,)


def as_terms(value: Value) -> tuple[Term, ...]:
    """Return a value as terms; a plain expression is one term."""
    if isinstance(value, Linear):
        return value.terms
    negative, parts = factors(value)
    return (Term(negative, parts, None, value.span),)


def scaled(term: Term, negative: bool, extra: tuple[Expr, ...], span: Span | None) -> Term:
    """Return the term times further factors, in front."""
    return Term(term.negative != negative, extra + term.factors, term.atom, span or term.span)


def added(left: Value, right: Value, subtract: bool) -> Linear:
    """Return left + right or left - right, one of them a `Linear`."""
    second = tuple(evolve(t, negative=t.negative != subtract) for t in as_terms(right))
    return Linear(as_terms(left) + second)


def times(value: Linear, factor: Expr, span: Span | None) -> Linear:
    """Return the product with a plain expression."""
    negative, parts = factors(factor)
    return Linear(tuple(scaled(term, negative, parts, span) for term in value.terms))


def plain(term: Term, builder: Builder) -> Expr:
    """Return the product of a term's factors, sign left out."""
    return builder.product(term.factors, term.span)


def split(parts: tuple[Expr, ...], axis: str) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Return (factors that carry the axis, factors that do not)."""
    inside = tuple(part for part in parts if axis in part.type.axes)
    outside = tuple(part for part in parts if axis not in part.type.axes)
    return inside, outside
