"""Where the elements of a tensor argument lie: strides per axis, and DMA patterns for rows.

A *row* enumerates the mapped axes of the state (batch, heads) with the last cycling fastest. An
argument may lack some of them (`A_log[Hv]`), repeat them (`q[B, Hk, K]` for heads `(Hk G)`) or
order them differently; its rows then lie at one or two strides.
"""

from __future__ import annotations

from collections.abc import Sequence
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
class Level:
    """Consecutive row axes with one stride: index i of `count` lies at i * step."""

    count: Number
    step: Number


def strides(dims: Sequence[Dim]) -> Strides:
    """Return the strides of a row-major tensor with these dimensions."""
    steps: list[tuple[str, tuple[Number, ...]]] = []
    inner: tuple[Number, ...] = ()
    for axis in reversed(_atoms(dims)):
        steps.append((axis, inner))
        inner = (Name(axis), *inner)
    return Strides(tuple(reversed(steps)))


def axes_of(dims: Sequence[Dim]) -> list[str]:
    """Return the atomic axes of a tensor, outermost first."""
    return _atoms(dims)


def _atoms(dims: Sequence[Dim]) -> list[str]:
    found: list[str] = []
    for dim in dims:
        match dim:
            case Unit():
                pass
            case Atom(axis=axis):
                found.append(axis)
            case Product(parts=parts):
                found += _atoms(parts)
            case Packed(name=name):
                raise refuse(f"the packed axis `{name}` is not emitted yet", dim.span)
            case _:
                assert_never(dim)
    return found


def row_levels(tensor: Strides, row_axes: Sequence[str]) -> tuple[Level, ...]:
    """Return the strides of the row index, outermost first; neighbours that continue are one."""
    groups: list[tuple[tuple[Number, ...], tuple[Number, ...] | None]] = []
    for axis in row_axes:
        step = tensor.factors(axis)
        size = Name(axis)
        if groups and groups[-1][1] == (None if step is None else (size, *step)):
            groups[-1] = ((*groups[-1][0], size), step)
        else:
            groups.append(((size,), step))
    return tuple(
        Level(product(sizes), ZERO if step is None else product(step)) for sizes, step in groups
    )
