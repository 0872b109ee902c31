"""The factors of one term of the update, sorted by the axis of the state they carry."""

from __future__ import annotations

from attrs import frozen

from gdsl.canonical.linear import Piece
from gdsl.canonical.refusal import DOES_NOT_FIT, refuse
from gdsl.ir.expr import Expr
from gdsl.source import Span


@frozen
class SortedFactors:
    """The factors of a term: with the key axis, with the value axis, with neither."""

    negative: bool
    key: tuple[Expr, ...]
    value: tuple[Expr, ...]
    scalar: tuple[Expr, ...]
    span: Span | None


def sorted_factors(piece: Piece, key_axis: str, value_axis: str) -> SortedFactors:
    """Sort a term's factors. Raises CompileError for a factor that carries both axes."""
    both = [f for f in piece.factors if {key_axis, value_axis} <= set(f.type.axes)]
    if both:
        refuse(
            DOES_NOT_FIT,
            "the update writes a full matrix, not an outer product",
            both[0].span or piece.span,
            f"carries both `{key_axis}` and `{value_axis}`",
            f"write a product of a `{key_axis}` vector and a `{value_axis}` vector",
        )
    return SortedFactors(
        piece.negative,
        tuple(f for f in piece.factors if key_axis in f.type.axes),
        tuple(f for f in piece.factors if value_axis in f.type.axes),
        tuple(f for f in piece.factors if not {key_axis, value_axis} & set(f.type.axes)),
        piece.span,
    )
