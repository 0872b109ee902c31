"""The update of the state, sorted into decay, read, write and erase."""

from __future__ import annotations

from collections import Counter

from attrs import frozen

from gdsl.canonical.build import Builder, is_number
from gdsl.canonical.decay import decay_kind
from gdsl.canonical.erase import read_and_erase
from gdsl.canonical.form import DecayKind, RankOne, Read
from gdsl.canonical.linear import BaseRead, BaseState, Piece, state_factor
from gdsl.canonical.outer import sorted_factors
from gdsl.canonical.refusal import DOES_NOT_FIT, refuse
from gdsl.ir.expr import Expr
from gdsl.source import Span


@frozen
class Update:
    """The parts of an update; `decay` is a product, empty for none."""

    decay: tuple[Expr, ...]
    kind: DecayKind
    key_axis: str
    value_axis: str
    read: Read | None
    erase: Expr | None
    write: RankOne | None


def sort_update(
    pieces: tuple[Piece, ...],
    state_axes: tuple[str, str],
    read_axis: str | None,
    builder: Builder,
    span: Span | None,
) -> Update:
    """Sort the pieces of the final state.

    `read_axis` is the axis that outputs contract, the key axis when the update itself reads none.
    Raises CompileError with the term underlined that does not fit.
    """
    states = tuple(piece for piece in pieces if isinstance(piece.base, BaseState))
    if not states:
        refuse(
            DOES_NOT_FIT,
            "the new state does not contain the old one",
            span,
            "the old state is overwritten",
            "add the old state: `S = decay * S + k * v`",
        )
    decay = state_factor(pieces, builder)
    decay = tuple(factor for factor in decay if not is_number(factor, 1.0))
    reads = [(p, p.base) for p in pieces if isinstance(p.base, BaseRead)]
    key_axis = reads[0][1].axis if reads else (read_axis or state_axes[0])
    value_axis = next(axis for axis in state_axes if axis != key_axis)
    kind = decay_kind(decay, key_axis, value_axis, states[-1].span or span)
    writes = [p for p in pieces if p.base is None]
    return Update(
        decay,
        kind,
        key_axis,
        value_axis,
        *read_and_erase(reads, decay, (key_axis, value_axis), builder),
        _write(writes, key_axis, value_axis, builder),
    )


def _write(writes: list[Piece], key_axis: str, value_axis: str, builder: Builder) -> RankOne | None:
    if not writes:
        return None
    terms = [sorted_factors(piece, key_axis, value_axis) for piece in writes]
    first = terms[0]
    if all(Counter(term.key) == Counter(first.key) for term in terms):
        value = builder.total(
            [(t.negative, builder.product((*t.scalar, *t.value), t.span)) for t in terms]
        )
        return RankOne(builder.product(first.key, first.span), value, span=first.span)
    if all(Counter(term.value) == Counter(first.value) for term in terms):
        key = builder.total(
            [(t.negative, builder.product((*t.scalar, *t.key), t.span)) for t in terms]
        )
        return RankOne(key, builder.product(first.value, first.span), span=first.span)
    other = next(term for term in terms if Counter(term.key) != Counter(first.key))
    return refuse(
        DOES_NOT_FIT,
        "the update writes two different outer products in one token",
        other.span,
        "a second key and a second value",
        "use ordered sub-steps, `S = scan[N] ...`, for several writes per token",
        (first.span, "the first outer product"),
    )
