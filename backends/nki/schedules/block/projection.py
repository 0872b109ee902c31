"""Projections in the typed IR: `sum[Hid](activation * weight)`, recognised by structure.

A sum over one axis of a product of two factors that share no other axis is a projection. The weight
is the factor that is a tensor argument of two dimensions, the first of which is that axis; what is
left of it are its *channels*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from backends.nki.refusal import refuse
from gdsl.ir.dims import Atom, Dim
from gdsl.ir.expr import Apply, Expr, Reduce, Ref
from gdsl.ir.kernel import Input, Kernel, Let, Run
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import walk


@frozen
class Projection:
    """One contraction of an activation with a weight."""

    expr: Reduce
    axis: str
    """The contracted axis: the rows of the weight."""
    activation: Expr
    weight: Input

    @property
    def channels(self) -> Dim:
        """The dimension of the weight's columns."""
        return self.weight.dims[1]


def projections_of(kernel: Kernel) -> tuple[Projection, ...]:
    """Return every projection of a kernel once, in the order of its text, inner ones first.

    Raises CompileError for a contraction whose weight is shaped otherwise.
    """
    inputs = {item.symbol: item for item in kernel.inputs}
    found: dict[Expr, Projection] = {}
    for root in _roots(kernel):
        for expr in reversed(list(walk(root))):
            projection = _projection(expr, inputs)
            if projection is not None:
                found.setdefault(expr, projection)
    return tuple(found.values())


def _roots(kernel: Kernel) -> Iterator[Expr]:
    for statement in kernel.body:
        match statement:
            case Let(value=value):
                yield value
            case Run(args=args):
                yield from args
    for output in kernel.outputs:
        yield output.value


def _projection(expr: Expr, inputs: Mapping[Symbol, Input]) -> Projection | None:
    match expr:
        case Reduce(operator="sum", axes=(axis,), arg=Apply(operator="mul", args=(a, b))):
            pass
        case _:
            return None
    if {*a.type.axes} & {*b.type.axes} != {axis} or 1 in (len(a.type.axes), len(b.type.axes)):
        return None
    for weight, activation in ((b, a), (a, b)):
        if isinstance(weight, Ref) and weight.symbol in inputs:
            item = inputs[weight.symbol]
            if len(item.dims) == 2 and isinstance(item.dims[0], Atom) and item.dims[0].axis == axis:
                return Projection(expr, axis, activation, item)
    raise refuse(
        f"no factor of this sum over `{axis}` is a weight",
        expr.span,
        label=f"a weight is a tensor argument `[{axis}, channels]`",
    )
