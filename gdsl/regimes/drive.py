"""Choosing inputs so that an expression of a kernel takes wanted values.

`exp(-exp(A_log) * softplus(a + dt_bias))` is to be exactly 1, or exp(-21): one part of the inputs
that reaches the expression element by element is the driver, and its values are found by bisection.
The expression itself is evaluated by the interpreter, as a kernel with that one output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import evolve, frozen

from gdsl import registry
from gdsl.ir.dims import Atom
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr, Reduce
from gdsl.ir.kernel import Call, CallArgument, Input, Kernel, Output, Param
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import symbols, walk
from gdsl.ir.types import Type
from gdsl.regimes.parts import Part, assemble, elementwise_parts, input_parts
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
    # The shapes of a few inputs may leave axes open; a param of an axis's name gives its size.
    own = {param.name for param in params}
    params += tuple(_size_param(axis) for axis in sizes if axis not in own)
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
    arguments: dict[str, Any] = {
        item.name: assemble(item.name, item.dims, values, sizes) for item in inputs
    }
    arguments |= {param.name: sizes.get(param.name, param_value(param)) for param in params}
    return registry.interpreter().run(probe, arguments, RunOptions("float64"))["probe"]


def _size_param(axis: str) -> Param:
    return Param(Symbol(axis, -1), axis, "int", None, Type(dtype=Dtype.I32))


def param_value(param: Param) -> float | int | bool:
    """Return the default of a constant, or a neutral value where the text gives none."""
    neutral: dict[str, float | int | bool] = {"float": 1.0, "int": 1, "bool": False}
    return neutral[param.kind] if param.default is None else param.default


def drive(
    kernel: Kernel,
    expr: Expr,
    target: Array | float,
    values: Mapping[Part, Array],
    sizes: Mapping[str, int],
    tolerance: float = 0.05,
) -> Values | Unreachable:
    """Return values in which `expr` is `target`: an array over the expression's axes, or a number.

    The driver is a part that reaches the expression without a contraction, tried from the most
    axes to the fewest; values of other parts stay, except that weights contracted inside the
    expression become 0 where the driver lacks an axis of it. Agreement is judged on the logarithm,
    relative to `tolerance`; 0 and 1 must be met exactly.
    """
    wanted = np.broadcast_to(
        np.asarray(target, np.float64), tuple(sizes[axis] for axis in expr.type.axes)
    )
    known = {*(item.symbol for item in kernel.inputs), *(p.symbol for p in kernel.params)}
    if not known.issuperset(symbols(expr)):
        return Unreachable("it is computed from an earlier recurrence")
    reachable = [p for p in elementwise_parts(kernel, expr) if set(p.axes) <= set(expr.type.axes)]
    outcome: Values | Unreachable = Unreachable("no input sets it element by element")
    for driver in sorted(reachable, key=lambda part: -len(part.axes)):
        outcome = _drive_by(kernel, expr, driver, wanted, values, sizes, tolerance)
        if not isinstance(outcome, Unreachable):
            break
    return outcome


def _drive_by(
    kernel: Kernel,
    expr: Expr,
    driver: Part,
    wanted: Array,
    values: Mapping[Part, Array],
    sizes: Mapping[str, int],
    tolerance: float,
) -> Values | Unreachable:
    shared = [axis for axis in expr.type.axes if axis not in driver.axes and sizes[axis] > 1]
    if shared:
        if np.ptp(wanted) > 0:
            return Unreachable(f"input `{driver.argument}` sets it for all of {shared} at once")
        values = {**values, **_silenced(kernel, expr, values)}
    found = _bisect(kernel, expr, driver, wanted, values, sizes)
    reached = evaluate(kernel, expr, found, sizes)
    if not _close(reached, wanted, tolerance):
        place = int(np.argmax(np.abs(reached - wanted)))
        return Unreachable(
            f"it cannot be {wanted.ravel()[place]:.3g} everywhere; "
            f"`{driver.argument}` brings it to {reached.ravel()[place]:.3g}"
        )
    return found


def _silenced(kernel: Kernel, expr: Expr, values: Mapping[Part, Array]) -> Values:
    """Zero the weights contracted inside an expression: what remains is the same for all tokens."""
    contracted = {
        symbol for node in walk(expr) if isinstance(node, Reduce) for symbol in symbols(node)
    }
    weights = [
        item
        for item in kernel.inputs
        if item.symbol in contracted and not set(item.type.axes) & set(expr.type.axes[:1])
    ]
    return {part: np.zeros_like(values[part]) for item in weights for part in input_parts(item)}


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

    def stored(x: Array) -> Array:
        return x.astype(dtype.numpy).astype(np.float64)

    def at(x: Array) -> Array:
        return evaluate(kernel, expr, {**values, driver: stored(x)}, sizes)

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
    return {**values, driver: stored(np.take_along_axis(ends, best[None], axis=0)[0])}


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
