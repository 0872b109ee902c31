"""The plain regime: independent Gaussian values, squeezed into what the contract admits.

Every other regime starts from these values and changes what it is about. What no text declares is
taken from the data flow: keys that the kernel does not normalise come normalised, so that the
recurrence is stable; a gate that is read without an activation lies in [0, 1]; weights that are
contracted with an input are scaled by the square root of their fan-in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr, Reduce, Ref
from gdsl.ir.kernel import Input, Kernel, Let, Run
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import inline, walk
from gdsl.ir.types import Interval
from gdsl.regimes.drive import Unreachable, Values, drive
from gdsl.regimes.parts import Part, assemble, elementwise_parts, input_parts, state_parts
from gdsl.regimes.roles import Roles, kernel_roles
from gdsl.runner import Array

Sizes = Mapping[str, int]


def base_values(kernel: Kernel, sizes: Sizes, rng: np.random.Generator) -> Values:
    """Return values for every part of every input and state."""
    values: Values = {}
    fan_in = _fan_in(kernel)
    for item in kernel.inputs:
        for part in input_parts(item):
            values[part] = _input_values(kernel, item, part, sizes, rng)
            axis = fan_in.get(item.symbol)
            if axis is not None:
                values[part] /= np.sqrt(sizes[axis])
    for state in kernel.states:
        for part in state_parts(state):
            values[part] = rng.standard_normal(_shape(part, sizes))
    for roles in kernel_roles(kernel):
        _stabilise(kernel, roles, values, sizes, rng)
    return values


def to_arguments(kernel: Kernel, values: Values, sizes: Sizes) -> dict[str, Array]:
    """Return the tensors of all inputs and states in float64, by argument name."""
    inputs = {item.name: assemble(item.name, item.dims, values, sizes) for item in kernel.inputs}
    states = {
        state.argument: assemble(state.argument, state.dims, values, sizes)
        for state in kernel.states
    }
    return inputs | states


def _shape(part: Part, sizes: Sizes) -> tuple[int, ...]:
    return tuple(sizes[axis] for axis in part.axes)


def _input_values(
    kernel: Kernel, item: Input, part: Part, sizes: Sizes, rng: np.random.Generator
) -> Array:
    shape = _shape(part, sizes)
    if item.dtype == Dtype.BOOL:
        return rng.integers(0, 2, shape).astype(np.float64)
    if item.dtype == Dtype.I32:
        return _indices(kernel, item, shape, sizes, rng)
    return squeeze(rng.standard_normal(shape), item.range)


def squeeze(x: Array, interval: Interval | None) -> Array:
    """Map Gaussian values smoothly into an interval."""
    if interval is None or (np.isinf(interval.lo) and np.isinf(interval.hi)):
        return x
    if np.isinf(interval.lo):
        return np.asarray(interval.hi - np.logaddexp(0, x - 1))
    if np.isinf(interval.hi):
        return np.asarray(interval.lo + np.logaddexp(0, x))
    return np.asarray(interval.lo + (interval.hi - interval.lo) / (1 + np.exp(-x)))


def _indices(
    kernel: Kernel, item: Input, shape: tuple[int, ...], sizes: Sizes, rng: np.random.Generator
) -> Array:
    """Return lengths, slots or counts, by where the kernel uses the input."""
    for statement in kernel.body:
        if isinstance(statement, Run) and statement.valid_len == item.symbol and statement.axis:
            length = sizes[statement.axis]
            lengths = rng.integers(min(1, length), length + 1, shape)
            lengths.flat[:1] = length
            return lengths.astype(np.float64)
    for state in kernel.states:
        if state.slots and item.symbol in (state.slots.read, state.slots.write):
            return _slots(sizes[state.slots.axis], shape)
        if state.accepted and state.accepted.symbol == item.symbol:
            return rng.integers(0, sizes[state.accepted.axis], shape).astype(np.float64)
    return np.zeros(shape)


def _slots(pool: int, shape: tuple[int, ...]) -> Array:
    """Every row its own slot, from the last one down; rows beyond the pool get none (-1)."""
    rows = np.arange(int(np.prod(shape)))
    return np.where(rows < pool, pool - 1 - rows, -1).reshape(shape).astype(np.float64)


def _fan_in(kernel: Kernel) -> dict[Symbol, str]:
    """Return the weights: inputs without rows that are contracted with one that has rows."""
    lets = {s.target: s.value for s in kernel.body if isinstance(s, Let)}
    inputs = {item.symbol for item in kernel.inputs}
    rows = row_axes(kernel)
    found: dict[Symbol, str] = {}
    for expr in _kernel_expressions(kernel):
        for node in walk(inline(expr, lets)):
            if isinstance(node, Reduce) and node.operator == "sum" and rows & {*node.type.axes}:
                for ref in walk(node.arg):
                    if isinstance(ref, Ref) and ref.symbol in inputs:
                        own = set(ref.type.axes)
                        if not own & rows and own & set(node.axes):
                            found[ref.symbol] = next(a for a in node.axes if a in own)
    return found


def hidden_axes(kernel: Kernel) -> dict[str, int]:
    """The axes of a layer's hidden channels, and the smallest size each may have.

    Weights contract them, and the text declares what they are a multiple of.
    """
    contracted = set(_fan_in(kernel).values())
    return {
        axis.name: axis.multiple_of
        for axis in kernel.axes
        if axis.name in contracted and axis.multiple_of > 1
    }


def row_axes(kernel: Kernel) -> set[str]:
    """The axes along which independent rows lie: scanned tokens, and the outermost mapped axis."""
    found: set[str] = set()
    for statement in kernel.body:
        if isinstance(statement, Run):
            mapped = mapped_axes(statement)
            found |= {*mapped[:1]} | ({statement.axis} if statement.axis else set())
    return found


def mapped_axes(run: Run) -> tuple[str, ...]:
    """The axes of a run's state that its rule does not name: batch and heads."""
    return tuple(axis for axis in run.rule.state_type.axes if axis not in run.rule.axes)


def _kernel_expressions(kernel: Kernel) -> Iterator[Expr]:
    for statement in kernel.body:
        if isinstance(statement, Let):
            yield statement.value
        else:
            yield from statement.args
    yield from (output.value for output in kernel.outputs)


def _stabilise(
    kernel: Kernel, roles: Roles, values: Values, sizes: Sizes, rng: np.random.Generator
) -> None:
    """Normalise raw keys and queries, and put raw gates into [0, 1]."""
    key_axis = roles.key_axis
    for expr in (*roles.expressions["key"], *roles.expressions["query"]):
        if _is_raw(expr):
            for part in elementwise_parts(kernel, expr):
                if key_axis in part.axes:
                    values[part] = unit(values[part], part.axes.index(key_axis))
    for expr in roles.expressions["decay"]:
        _gate(kernel, expr, 0.5, values, sizes, rng)
    for expr in roles.expressions["beta"]:
        _gate(kernel, expr, 0.05, values, sizes, rng)


def _is_raw(expr: Expr) -> bool:
    """Whether nothing normalises an expression (a norm contracts it)."""
    return not any(isinstance(node, Reduce) for node in walk(expr))


def _gate(
    kernel: Kernel,
    expr: Expr,
    low: float,
    values: Values,
    sizes: Sizes,
    rng: np.random.Generator,
) -> None:
    if expr.type.range.lo >= 0 and expr.type.range.hi <= 1:
        return
    target = rng.uniform(low, 0.99, tuple(sizes[axis] for axis in expr.type.axes))
    found = drive(kernel, expr, target, values, sizes)
    if not isinstance(found, Unreachable):
        values.update(found)


def unit(x: Array, axis: int) -> Array:
    """Scale vectors along an axis to length 1 (just below, so that rounding stays within it)."""
    length = np.sqrt(np.sum(x * x, axis=axis, keepdims=True))
    return np.asarray(x / (length * (1 + 2**-9)))
