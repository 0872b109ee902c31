"""sum[axis](...) of a sum of terms."""

from __future__ import annotations

from attrs import frozen

from gdsl.canonical.build import Builder
from gdsl.canonical.refusal import READ, refuse
from gdsl.canonical.terms import Contraction, Linear, Term, Value, Version, split
from gdsl.source import Span


@frozen
class StateAxes:
    """The axes of a rule's state: its own (K and V, or a window's W) and all, mapped included."""

    own: tuple[str, ...]
    all: tuple[str, ...]


def contracted(
    value: Value, axis: str, state: StateAxes, builder: Builder, span: Span | None
) -> Value:
    """Return sum[axis](value) as terms.

    Raises CompileError when a state is summed over an axis that is not its own, or over a second
    one after the first.
    """
    if not isinstance(value, Linear):
        return builder.reduce_sum(axis, value, span)
    return Linear(tuple(_term(term, axis, state, builder, span) for term in value.terms))


def _term(term: Term, axis: str, state: StateAxes, builder: Builder, span: Span | None) -> Term:
    inside, outside = split(term.factors, axis)
    match term.atom:
        case Version(index=index) if axis in state.own:
            vector = builder.product(inside, span)
            return Term(term.negative, outside, Contraction(vector, index, axis), span or term.span)
        case Contraction(axis=first) if axis in state.own and axis != first:
            return refuse(
                READ,
                "the state is contracted over both of its axes",
                span,
                f"`{first}` is already summed",
                "contract one axis; the result is a vector along the other one",
            )
        case Version() | Contraction() if axis in _carried(term.atom, state):
            own = ", ".join(f"`{name}`" for name in state.own)
            return refuse(
                READ,
                f"the state is summed over `{axis}`, which is not an axis of this rule's state",
                span,
                f"the rule's state has the axes {own}",
                "contract one of the state's own axes",
            )
        case _:
            total = builder.reduce_sum(axis, builder.product(inside, span), span)
            return Term(term.negative, (*outside, total), term.atom, span or term.span)


def _carried(atom: Version | Contraction, state: StateAxes) -> set[str]:
    """The axes along which an atom itself varies."""
    if isinstance(atom, Version):
        return set(state.all)
    return (set(state.all) | set(atom.vector.type.axes)) - {atom.axis}
