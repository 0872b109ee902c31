"""Where the elements of a tensor argument lie: strides per axis, and DMA patterns for rows.

A *row* enumerates the mapped axes of the state (batch, heads) with the last cycling fastest. An
argument may lack some of them (`A_log[Hv]`), repeat them (`q[B, Hk, K]` for heads `(Hk G)`) or
order them differently; its rows then lie at one or two strides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from attrs import frozen

from backends.nki.program.numbers import ZERO, Name, Number, product
from backends.nki.refusal import refuse
from gdsl.ir.dims import Atom, Dim, Packed, Product, Unit


@frozen
class Strides:
    """Elements between neighbours along each axis that the tensor has, and its element count."""

    steps: tuple[tuple[str, tuple[Number, ...]], ...]
    """(axis, factors of the stride), outermost first."""

    def factors(self, axis: str) -> tuple[Number, ...] | None:
        """The stride of an axis as factors; None when the tensor does not have it."""
        return next((factors for name, factors in self.steps if name == axis), None)

    def of(self, axis: str) -> Number:
        """The stride of an axis; 0 when the tensor does not have it."""
        factors = self.factors(axis)
        return ZERO if factors is None else product(factors)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes the tensor has, outermost first."""
        return tuple(axis for axis, _ in self.steps)


@frozen
class Share:
    """The part of an axis that this core has: its first index and how many."""

    first: Number
    count: Number


@frozen
class Level:
    """Consecutive row axes with one stride: index i of `count` lies at i * step."""

    count: Number
    step: Number


def strides(dims: Sequence[Dim]) -> Strides:
    """Return the strides of a row-major tensor with these dimensions."""
    return field_strides(dims, {})[0]


def field_strides(dims: Sequence[Dim], fields: Mapping[str, str]) -> tuple[Strides, Number]:
    """Return the strides of a tensor, and its first element, for one field of each packed axis.

    `fields` names the field of each packed axis; the axes of that field stand for the packed one.
    """
    steps: list[tuple[str, tuple[Number, ...]]] = []
    inner: tuple[Number, ...] = ()
    first: Number = ZERO
    for dim in reversed(_flat(dims)):
        match dim:
            case Atom(axis=axis):
                steps.append((axis, inner))
                inner = (Name(axis), *inner)
            case Packed(name=name, fields=parts):
                if name not in fields:
                    raise refuse(f"the packed axis `{name}` as a whole is not emitted", dim.span)
                place = [part for part, _ in parts].index(fields[name])
                within = inner
                for axis in reversed(axes_of((parts[place][1],))):
                    steps.append((axis, within))
                    within = (Name(axis), *within)
                first = first + _size(parts[:place]) * product(inner)
                inner = (_size(parts), *inner)
            case _:
                raise TypeError(f"not a flat dimension: {dim}")
    return Strides(tuple(reversed(steps))), first


def _size(parts: Sequence[tuple[str, Dim]]) -> Number:
    """Channels of some fields."""
    total: Number = ZERO
    for _, dim in parts:
        total = total + product(tuple(Name(axis) for axis in axes_of((dim,))))
    return total


def _flat(dims: Sequence[Dim]) -> list[Dim]:
    """Dimensions without products and units, outermost first."""
    found: list[Dim] = []
    for dim in dims:
        match dim:
            case Unit():
                pass
            case Product(parts=parts):
                found += _flat(parts)
            case Atom() | Packed():
                found.append(dim)
            case _:
                assert_never(dim)
    return found


def axes_of(dims: Sequence[Dim]) -> list[str]:
    """Return the atomic axes of a tensor, outermost first. Raises CompileError for packed ones."""
    found: list[str] = []
    for dim in _flat(dims):
        if not isinstance(dim, Atom):
            name = dim.name if isinstance(dim, Packed) else "?"
            raise refuse(f"the packed axis `{name}` is not emitted yet", dim.span)
        found.append(dim.axis)
    return found


def row_levels(
    tensor: Strides, row_axes: Sequence[str], sizes: Mapping[str, Number] | None = None
) -> tuple[Level, ...]:
    """Return the strides of the row index, outermost first; neighbours that continue are one.

    `sizes` says how much of an axis the rows enumerate, where it is not all of it.
    """
    groups: list[tuple[tuple[Number, ...], tuple[Number, ...] | None]] = []
    for axis in row_axes:
        step = tensor.factors(axis)
        size = (sizes or {}).get(axis, Name(axis))
        if groups and groups[-1][1] == (None if step is None else (size, *step)):
            groups[-1] = ((*groups[-1][0], size), step)
        else:
            groups.append(((size,), step))
    return tuple(
        Level(product(factors), ZERO if step is None else product(step)) for factors, step in groups
    )
