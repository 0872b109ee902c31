"""How sizes of axes follow from shapes of tensors: a static plan, solved here and in kernels.

Every dimension of every argument is an equation linear in monomials of axis sizes. The plan lists
the steps that solve them one by one; what no step reaches is `open` and needs a `param` of the
axis's name. `gdsl.ir.sizes` runs a plan on shapes; the emitter prints it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import combinations

from attrs import frozen

from gdsl.ir.dims import Dim
from gdsl.ir.kernel import Kernel, Run
from gdsl.ir.monomials import (
    Equation,
    Extent,
    Monomial,
    Term,
    divide,
    eliminated,
    polynomial,
)


@frozen
class FromShapes:
    """`target` = (sum of `extents` - sum of `known`) / sum of `divisor`."""

    target: Monomial
    extents: tuple[Extent, ...]
    known: tuple[Term, ...] = ()
    divisor: tuple[Term, ...] = (Term(1, ()),)


@frozen
class FromQuotient:
    """`target` = `product` / the product of `divisors`."""

    target: Monomial
    product: Monomial
    divisors: tuple[Monomial, ...]


@frozen
class FromParam:
    """`target` is the value of a parameter of the axis's name."""

    target: Monomial
    param: str


@frozen
class FromTokens:
    """`target` = number of whole blocks of `every` tokens along axis `tokens` (a param's name)."""

    target: Monomial
    tokens: str
    every: int | str


Step = FromShapes | FromQuotient | FromParam | FromTokens


@frozen
class SizePlan:
    """Steps in order, what they leave open, and the dimensions that must agree afterwards."""

    kernel: Kernel
    steps: tuple[Step, ...]
    open: tuple[str, ...]
    tensors: tuple[tuple[str, tuple[Dim, ...]], ...]


def size_plan(kernel: Kernel, present: Collection[str] | None = None) -> SizePlan:
    """Return how sizes follow from shapes. `present`: the arguments given (None: all of them)."""
    return _planned(kernel, None if present is None else frozenset(present))


@lru_cache(maxsize=256)
def _planned(kernel: Kernel, present: frozenset[str] | None) -> SizePlan:
    tensors = tuple(
        (name, dims)
        for name, dims in (
            *((item.name, item.dims) for item in kernel.inputs),
            *((state.argument, state.dims) for state in kernel.states),
        )
        if present is None or name in present
    )
    packed = {item.name: item for item in kernel.packed}
    equations = [
        Equation((Extent(name, place),), tuple(polynomial(dim, packed).items()))
        for name, dims in tensors
        for place, dim in enumerate(dims)
    ]
    axes = [axis.name for axis in kernel.axes if axis.name not in packed]
    steps = list(_steps(kernel, axes, equations))
    known = {step.target for step in steps}
    return SizePlan(kernel, tuple(steps), tuple(a for a in axes if (a,) not in known), tensors)


# ---- planning


def _steps(kernel: Kernel, axes: list[str], equations: list[Equation]) -> Iterator[Step]:
    known: set[Monomial] = set()
    params = {param.name for param in kernel.params}
    while True:
        step = (
            _from_equations(equations, known)
            or _from_products(known)
            or _from_equations(list(_combined(equations, known)), known)
            or next((FromParam((a,), a) for a in axes if a in params and (a,) not in known), None)
            or _from_tokens(kernel, known)
        )
        if step is None:
            return
        known.add(step.target)
        yield step


def _unknown(equation: Equation, known: set[Monomial]) -> set[Monomial]:
    return {rest for term, _ in equation.terms if (rest := divide(term, known)[1])}


def _from_equations(equations: list[Equation], known: set[Monomial]) -> Step | None:
    """Return the solution of the simplest equation that has one unknown monomial."""
    solvable = [e for e in equations if len(_unknown(e, known)) == 1]
    if not solvable:
        return None
    equation = min(solvable, key=lambda e: (len(e.terms), len(next(iter(_unknown(e, known))))))
    (target,) = _unknown(equation, known)
    summands: list[Term] = []
    divisor: list[Term] = []
    for monomial, factor in equation.terms:
        quantities, rest = divide(monomial, known)
        (divisor if rest else summands).append(Term(factor, quantities))
    return FromShapes(target, equation.extents, tuple(summands), tuple(divisor))


def _from_products(known: set[Monomial]) -> Step | None:
    """Return a new quantity as the quotient of known ones, such as B from (B Hv) and Hv."""
    for product in sorted(known):
        quantities, rest = divide(product, known - {product})
        if len(product) > 1 and quantities and rest and rest not in known:
            return FromQuotient(rest, product, quantities)
    return None


def _combined(equations: list[Equation], known: set[Monomial]) -> Iterator[Equation]:
    """Combine pairs of equations with two unknown monomials so that one of them cancels."""
    pairs = [e for e in equations if len(_unknown(e, known)) == 2]
    for first, second in combinations(pairs, 2):
        for monomial in sorted({m for m, _ in first.terms} & {m for m, _ in second.terms}):
            if divide(monomial, known)[1]:
                yield eliminated(first, second, monomial)


def _from_tokens(kernel: Kernel, known: set[Monomial]) -> Step | None:
    names = {param.symbol: param.name for param in kernel.params}
    for run in kernel.body:
        if not isinstance(run, Run) or run.states_axis is None or run.axis is None:
            continue
        if (run.states_axis,) not in known and (run.axis,) in known and run.every is not None:
            every = run.every if isinstance(run.every, int) else names[run.every]
            return FromTokens((run.states_axis,), run.axis, every)
    return None
