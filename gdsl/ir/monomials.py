"""Tensor dimensions as polynomials over axis sizes: `q:(Hk K) | k:(Hk K)` is 2 Hk K.

A monomial is a sorted tuple of axis names; a quantity is a monomial whose value is known, which may
be a product (`Hk G`) none of whose factors is known on its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import assert_never

from attrs import frozen

from gdsl.ir.dims import Atom, Dim, Packed, Product, Unit

Monomial = tuple[str, ...]
Polynomial = dict[Monomial, int]


def polynomial(dim: Dim, packed: Mapping[str, Packed]) -> Polynomial:
    """Return the size of a dimension over atomic axes; `packed` are the kernel's packed axes."""
    match dim:
        case Unit():
            return {(): 1}
        case Atom(axis):
            return polynomial(packed[axis], packed) if axis in packed else {(axis,): 1}
        case Product(parts):
            result: Polynomial = {(): 1}
            for part in parts:
                result = _times(result, polynomial(part, packed))
            return result
        case Packed(fields=fields):
            total: Counter[Monomial] = Counter()
            for _, part in fields:
                total.update(polynomial(part, packed))
            return dict(total)
        case _:
            assert_never(dim)


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    product: Counter[Monomial] = Counter()
    for left, m in a.items():
        for right, n in b.items():
            product[tuple(sorted(left + right))] += m * n
    return dict(product)


@frozen
class Term:
    """`factor` times the product of known `quantities`."""

    factor: int
    quantities: tuple[Monomial, ...]


@frozen
class Extent:
    """`weight` times dimension `dim` of a tensor."""

    tensor: str
    dim: int
    weight: int = 1


@frozen
class Equation:
    """A sum of extents equals a polynomial (an original one has a single extent)."""

    extents: tuple[Extent, ...]
    terms: tuple[tuple[Monomial, int], ...]


def divide(monomial: Monomial, known: Iterable[Monomial]) -> tuple[tuple[Monomial, ...], Monomial]:
    """Split a monomial into known quantities and what remains unknown, single axes first."""
    rest = Counter(monomial)
    quantities = []
    for quantity in sorted(known, key=lambda q: (len(q) > 1, -len(q), q)):
        need = Counter(quantity)
        while quantity and all(rest[axis] >= n for axis, n in need.items()):
            rest -= need
            quantities.append(quantity)
    return tuple(quantities), tuple(sorted(rest.elements()))


def eliminated(first: Equation, second: Equation, monomial: Monomial) -> Equation:
    """Return the combination of two equations in which the monomial cancels."""
    a, b = dict(first.terms)[monomial], dict(second.terms)[monomial]
    extents = [Extent(e.tensor, e.dim, b * e.weight) for e in first.extents]
    extents += [Extent(e.tensor, e.dim, -a * e.weight) for e in second.extents]
    terms: Counter[Monomial] = Counter()
    for weight, equation in ((b, first), (-a, second)):
        for term, factor in equation.terms:
            terms[term] += weight * factor
    return Equation(tuple(extents), tuple((term, n) for term, n in terms.items() if n))
