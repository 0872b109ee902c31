"""Choosing inputs so that an expression of a kernel takes wanted values.

`exp(-exp(A_log) * softplus(a + dt_bias))` is to be exactly 1, or exp(-21): one part of the inputs
that reaches the expression element by element is the driver, and its values are found by bisection.
The expression itself is evaluated by the interpreter, as a kernel with that one output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from attrs import evolve, frozen

from gdsl import registry
from gdsl.ir.dims import Atom
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Call, CallArgument, Input, Kernel, Output
from gdsl.ir.traverse import symbols
from gdsl.regimes.parts import Part, assemble, elementwise_parts
from gdsl.runner import Array, RunOptions

Values = dict[Part, Array]
_EXTREME = 1.0e4
"""Ends of the bisection for an unbounded driver: saturates every gate and fits in f16."""
_STEPS = 80


@frozen
class Unreachable:
    """The wanted values cannot be set; `reason` completes 'skipped: '."""

    reason: str


def evaluate(
    kernel: Kernel, expr: Expr, values: Mapping[Part, Array], sizes: Mapping[str, int]
) -> Array:
    """Return the values of `expr` (over inputs and params) in float64, in its own axes."""
    used = set(symbols(expr))
    inputs = tuple(
        evolve(item, dtype=Dtype.F32, range=None) for item in kernel.inputs if item.symbol in used
    )
    params = tuple(param for param in kernel.params if param.symbol in used)
    dims = tuple(Atom(axis) for axis in expr.type.axes)
    names = [*(item.name for item in inputs), *(param.name for param in params)]
    roles = ["input"] * len(inputs) + ["param"] * len(params)
    probe = evolve(
        kernel,
        dtype_vars=(),
        inputs=inputs,
        params=params,
        assumes=(),
        states=(),
        body=(),
        outputs=(Output("probe", Dtype.F32, dims, expr),),
        call=Call(tuple(map(CallArgument, names, roles)), ("probe",)),
    )
    arguments = {item.name: assemble(item.name, item.dims, values, sizes) for item in inputs}
    return registry.interpreter().run(probe, arguments, RunOptions("float64"))["probe"]


def drive(
    kernel: Kernel,
    expr: Expr,
    target: Array | float,
    values: Mapping[Part, Array],
    sizes: Mapping[str, int],
    tolerance: float = 0.05,
) -> Values | Unreachable:
    """Return values in which `expr` is `target`: an array over the expression's axes, or a number.

    The driver is the part with the most axes that reaches the expression without a contraction;
    values of other parts stay. Agreement is judged on the logarithm, relative to `tolerance`;
    0 and 1 must be met exactly.
    """
    wanted = np.broadcast_to(
        np.asarray(target, np.float64), tuple(sizes[axis] for axis in expr.type.axes)
    )
    known = {*(item.symbol for item in kernel.inputs), *(p.symbol for p in kernel.params)}
    if not known.issuperset(symbols(expr)):
        return Unreachable("it is computed from an earlier recurrence")
    reachable = [p for p in elementwise_parts(kernel, expr) if set(p.axes) <= set(expr.type.axes)]
    if not reachable:
        return Unreachable("no input sets it element by element")
    driver = max(reachable, key=lambda part: len(part.axes))
    if len(driver.axes) < sum(sizes[axis] > 1 for axis in expr.type.axes) and np.ptp(wanted) > 0:
        return Unreachable(f"input `{driver.argument}` sets it for all tokens at once")
    found = _bisect(kernel, expr, driver, wanted, values, sizes)
    reached = evaluate(kernel, expr, found, sizes)
    if not _close(reached, wanted, tolerance):
        place = int(np.argmax(np.abs(reached - wanted)))
        return Unreachable(
            f"it cannot be {wanted.ravel()[place]:.3g}, "
            f"only {reached.ravel()[place]:.3g} is within reach of `{driver.argument}`"
        )
    return found


def _bisect(
    kernel: Kernel,
    expr: Expr,
    driver: Part,
    wanted: Array,
    values: Mapping[Part, Array],
    sizes: Mapping[str, int],
) -> Values:
    item = next(item for item in kernel.inputs if item.name == driver.argument)
    dtype = item.dtype if isinstance(item.dtype, Dtype) else item.dtype.choices[0]
    low_end, high_end = _ends(item)
    shape = values[driver].shape
    low, high = np.full(shape, low_end), np.full(shape, high_end)
    spread = _onto(driver, expr)

    def at(x: Array) -> Array:
        stored = x.astype(dtype.numpy).astype(np.float64)
        return evaluate(kernel, expr, {**values, driver: stored}, sizes)

    rising = spread(at(high)) >= spread(at(low))
    goal = spread(wanted)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        too_low = spread(at(middle)) < goal
        up = too_low == rising
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    ends = np.stack([low, high, np.full(shape, low_end), np.full(shape, high_end)])
    misses = np.stack([np.abs(spread(at(end)) - goal) for end in ends])
    best = np.argmin(misses, axis=0)
    return {**values, driver: np.take_along_axis(ends, best[None], axis=0)[0]}


def _ends(item: Input) -> tuple[float, float]:
    if item.range is None:
        return -_EXTREME, _EXTREME
    return max(item.range.lo, -_EXTREME), min(item.range.hi, _EXTREME)


def _onto(driver: Part, expr: Expr) -> Callable[[Array], Array]:
    """Return the map from the expression's axes to the driver's (the mean over the others)."""
    axes = expr.type.axes
    others = tuple(i for i, axis in enumerate(axes) if axis not in driver.axes)
    kept = [axis for axis in axes if axis in driver.axes]
    order = [kept.index(axis) for axis in driver.axes]

    def spread(x: Array) -> Array:
        return np.asarray(np.mean(x, axis=others)).transpose(order)

    return spread


def _close(reached: Array, wanted: Array, tolerance: float) -> bool:
    exact = (wanted == 0) | (wanted == 1)
    if not np.array_equal(reached[exact], wanted[exact]):
        return False
    inside = ~exact
    if not np.all(reached[inside] > 0):
        return False
    logs = np.log(reached[inside]), np.log(wanted[inside])
    return bool(np.all(np.abs(logs[0] - logs[1]) <= tolerance * np.abs(logs[1]) + math.ulp(1.0)))
