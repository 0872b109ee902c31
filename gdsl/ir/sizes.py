"""Solving the sizes of a kernel's axes from the shapes of one call.

Every dimension is checked against the solution, so a contradiction names the tensors involved.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import assert_never

from gdsl.ir.dims import Dim
from gdsl.ir.monomials import Monomial, Term, polynomial
from gdsl.ir.size_plan import (
    FromParam,
    FromQuotient,
    FromShapes,
    FromTokens,
    SizePlan,
    Step,
)
from gdsl.ir.text import dim_text

Number = float | int | bool
Shapes = Mapping[str, tuple[int, ...]]


class SizeError(Exception):
    """Shapes that do not fit. `argument` is the tensor or parameter that shows it, if one does."""

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


def solve_sizes(plan: SizePlan, shapes: Shapes, params: Mapping[str, Number]) -> dict[str, int]:
    """Return the size of every atomic axis. Raises SizeError."""
    _check_ranks(plan, shapes)
    values: dict[Monomial, int] = {}
    for step in plan.steps:
        values[step.target] = _value(step, values, shapes, params)
    if plan.open:
        name = plan.open[0]
        raise SizeError(
            f"the shapes do not determine the size of axis `{name}`; "
            f"add `param {name}: int` to kernel `{plan.kernel.name}`"
        )
    sizes = {target[0]: value for target, value in values.items() if len(target) == 1}
    _check_dimensions(plan, shapes, sizes)
    _check_params(plan, params, sizes)
    _check_limits(plan, sizes)
    return sizes


def _check_ranks(plan: SizePlan, shapes: Shapes) -> None:
    for name, dims in plan.tensors:
        if len(shapes[name]) != len(dims):
            wanted = ", ".join(dim_text(dim) for dim in dims)
            raise SizeError(
                f"`{name}` has {len(shapes[name])} dimensions, {shapes[name]}, "
                f"but [{wanted}] is declared",
                name,
            )


def _value(
    step: Step, values: Mapping[Monomial, int], shapes: Shapes, params: Mapping[str, Number]
) -> int:
    match step:
        case FromShapes(target, extents, known, divisor):
            total = sum(e.weight * shapes[e.tensor][e.dim] for e in extents)
            rest = total - sum(_term(term, values) for term in known)
            tensors = " and ".join(f"dimension {e.dim} of `{e.tensor}`" for e in extents)
            where = f"{tensors} ({', '.join(str(shapes[e.tensor][e.dim]) for e in extents)})"
            return _quotient(
                rest, sum(_term(t, values) for t in divisor), target, where, extents[0].tensor
            )
        case FromQuotient(target, product, divisors):
            divisor_value = prod(values[d] for d in divisors)
            where = f"({' '.join(product)}) = {values[product]}"
            return _quotient(values[product], divisor_value, target, where, None)
        case FromParam(_, param):
            if param not in params:
                raise SizeError(f"parameter `{param}` gives an axis its size and is missing", param)
            return _whole(params[param], param)
        case FromTokens(_, tokens, every):
            block = every if isinstance(every, int) else _whole(params[every], every)
            return values[(tokens,)] // block if block else 0
        case _:
            assert_never(step)


def _term(term: Term, values: Mapping[Monomial, int]) -> int:
    return term.factor * prod(values[quantity] for quantity in term.quantities)


def _whole(number: Number, param: str) -> int:
    if number != int(number) or number < 0:
        raise SizeError(f"parameter `{param}` must be a size, not {number}", param)
    return int(number)


def _quotient(rest: int, divisor: int, target: Monomial, where: str, tensor: str | None) -> int:
    """Divide exactly. 0 / 0 (an empty tensor) leaves the size open and is taken as 0."""
    if divisor == rest == 0:
        return 0
    if divisor == 0 or rest % divisor or rest // divisor < 0:
        raise SizeError(
            f"{where} leaves no whole size for `{' '.join(target)}`: {rest} / {divisor}", tensor
        )
    return rest // divisor


# ---- checks of a solution


def _check_dimensions(plan: SizePlan, shapes: Shapes, sizes: Mapping[str, int]) -> None:
    packed = {item.name: item for item in plan.kernel.packed}
    for name, dims in plan.tensors:
        for place, dim in enumerate(dims):
            terms = polynomial(dim, packed)
            size = sum(n * prod(sizes[axis] for axis in term) for term, n in terms.items())
            if size != shapes[name][place]:
                axes = sorted({axis for term in terms for axis in term})
                raise SizeError(
                    f"dimension {place} of `{name}` is {shapes[name][place]}, but "
                    f"{_reason(plan, dim, size, axes, sizes)}",
                    name,
                )


def _reason(plan: SizePlan, dim: Dim, size: int, axes: list[str], sizes: Mapping[str, int]) -> str:
    """Say what the size should be and which tensors say so."""
    if not axes:
        return f"{size} is declared"
    sources = _sources(plan)
    facts = [f"{axis} = {sizes[axis]} from {sources[(axis,)]}" for axis in axes]
    return f"`{dim_text(dim)}` is {size}: {', '.join(facts)}"


def _sources(plan: SizePlan) -> dict[Monomial, str]:
    """Return the tensor or parameter that fixed each quantity."""
    sources: dict[Monomial, str] = {}
    for step in plan.steps:
        match step:
            case FromShapes(target, extents):
                sources[target] = " and ".join(f"`{e.tensor}`" for e in extents)
            case FromQuotient(target, product, divisors):
                named = dict.fromkeys(sources[quantity] for quantity in (product, *divisors))
                sources[target] = " and ".join(named)
            case FromParam(target, param):
                sources[target] = f"parameter `{param}`"
            case FromTokens(target, tokens):
                sources[target] = f"the tokens of `{tokens}`"
            case _:
                assert_never(step)
    return sources


def _check_params(plan: SizePlan, params: Mapping[str, Number], sizes: Mapping[str, int]) -> None:
    for name, size in sizes.items():
        if name in params and params[name] != size:
            raise SizeError(
                f"parameter `{name}` is {params[name]}, but {_sources(plan)[(name,)]} makes axis "
                f"`{name}` {size}",
                name,
            )


def _check_limits(plan: SizePlan, sizes: Mapping[str, int]) -> None:
    sources = _sources(plan)
    for axis in plan.kernel.axes:
        size = sizes.get(axis.name)
        if size is None:
            continue
        origin = f"axis `{axis.name}` is {size} (from {sources[(axis.name,)]}), but"
        if axis.at_most is not None and size > axis.at_most:
            raise SizeError(f"{origin} `{axis.name} <= {axis.at_most}` is declared")
        if size % axis.multiple_of:
            raise SizeError(f"{origin} `{axis.name} % {axis.multiple_of} == 0` is declared")
