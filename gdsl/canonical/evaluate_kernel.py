"""A whole kernel evaluated on arrays, with the runs left to a function.

The serving contract (slots, reset, padding, accepted tokens) is that of the interpreter, written
again from `gdsl.ir.kernel`: agreement with it is evidence, so nothing of it is used here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from gdsl.canonical.bind import Bound, bind, tensor_axes
from gdsl.canonical.evaluate import RunInput, RunOutput, zeroed
from gdsl.canonical.values import Named, Scope, evaluate
from gdsl.ir.dims import Dim
from gdsl.ir.kernel import Kernel, Let, Output, Run, Slots, State
from gdsl.ir.node import Symbol
from gdsl.shapes import tensor_shape

Array = NDArray[Any]
RunOne = Callable[[Run, RunInput, Mapping[Symbol, Named], Scope], RunOutput]


@frozen
class Arithmetic:
    """`dtype` of all arithmetic; `declared` rounds casts and outputs as the text says."""

    dtype: np.dtype[Any]
    declared: bool


FLOAT64 = Arithmetic(np.dtype(np.float64), declared=False)
FLOAT32 = Arithmetic(np.dtype(np.float32), declared=False)
DECLARED = Arithmetic(np.dtype(np.float32), declared=True)


def evaluate_kernel(
    kernel: Kernel,
    arguments: Mapping[str, Array | float | int | bool],
    run_one: RunOne,
    arithmetic: Arithmetic,
) -> dict[str, Array]:
    """Return the outputs by name; `run_one` gives the results of each run.

    `arguments` are by argument name, optional ones may be missing. Raises SizeError when shapes do
    not fit.
    """
    bound = bind(kernel, arguments, arithmetic.dtype, arithmetic.declared)
    values = dict(bound.values)
    for statement in kernel.body:
        match statement:
            case Let(target=target, value=value):
                values[target] = evaluate(value, values, bound.scope)
            case Run():
                values |= _run(statement, values, bound, run_one)
            case _:
                assert_never(statement)
    return {
        output.name: _output(kernel, output, values, bound, arithmetic) for output in kernel.outputs
    }


def _run(
    run: Run, values: Mapping[Symbol, Named], bound: Bound, run_one: RunOne
) -> dict[Symbol, Named]:
    arguments = {
        parameter: evaluate(argument, values, bound.scope)
        for parameter, argument in zip(run.rule.params, run.args, strict=True)
    }
    valid = values[run.valid_len] if run.valid_len is not None else None
    every = run.every
    if isinstance(every, Symbol):
        every = int(values[every].data)
    given = RunInput(arguments, values[run.state], valid, every or 0)
    made = run_one(run, given, values, bound.scope)
    found = dict(zip(run.results, made.results, strict=True))
    found[run.state_out] = made.state
    if run.states is not None and run.states_axis is not None:
        found[run.states] = _states(made, run.states_axis, given.state)
    return found


def _states(made: RunOutput, axis: str, like: Named) -> Named:
    rows = [state.over(like.axes) for state in made.states]
    data = np.stack(rows) if rows else np.zeros((0, *like.data.shape), like.data.dtype)
    return Named((axis, *like.axes), data)


def _output(
    kernel: Kernel,
    output: Output,
    values: Mapping[Symbol, Named],
    bound: Bound,
    arithmetic: Arithmetic,
) -> Array:
    value = evaluate(output.value, values, bound.scope)
    states = {state.name: state for state in kernel.states}
    state = states.get(output.state or "")
    dtype = bound.dtype(output.dtype).numpy if arithmetic.declared else arithmetic.dtype
    if state is not None and state.slots is not None:
        return _pool(state, state.slots, value, values, bound, dtype)
    value = _selected(kernel, output, value, values, bound)
    return _tensor(value, output.dims, bound).astype(dtype)


def _selected(
    kernel: Kernel,
    output: Output,
    value: Named,
    values: Mapping[Symbol, Named],
    bound: Bound,
) -> Named:
    """Zero what belongs to dead tokens of a scan, and to rows that own no slot."""
    axes = tensor_axes(output.dims)
    full = Named(axes, np.broadcast_to(value.over(axes), [bound.scope.sizes[a] for a in axes]))
    for run in kernel.body:
        if isinstance(run, Run) and run.valid_len is not None and run.axis in axes:
            valid = values[run.valid_len]
            tokens = np.arange(bound.scope.sizes[run.axis])
            full = zeroed(Named((*valid.axes, run.axis), valid.data[..., None] > tokens), full)
    for state in kernel.states:
        if state.slots is not None and state.slots.batch in axes:
            full = zeroed(bound.rows_in_use(state.slots, values), full)
    return full


def _tensor(value: Named, dims: tuple[Dim, ...], bound: Bound) -> Array:
    axes = tensor_axes(dims)
    full = np.broadcast_to(value.over(axes), [bound.scope.sizes[axis] for axis in axes])
    return full.reshape(tensor_shape(dims, bound.scope.sizes))


def _pool(
    state: State,
    slots: Slots,
    value: Named,
    values: Mapping[Symbol, Named],
    bound: Bound,
    dtype: np.dtype[Any],
) -> Array:
    """The pool with the final state of each row in the slot it writes."""
    axes = tensor_axes(state.dims)
    sizes = bound.scope.sizes
    before = bound.tensors.get(state.argument)
    shape = [sizes[axis] for axis in axes]
    pool = np.zeros(shape, dtype) if before is None else before.reshape(shape).astype(dtype)
    if slots.write is not None:
        rest = tuple(axis for axis in axes if axis != slots.axis)
        rows = value.over((slots.batch, *rest))
        by_slot = np.moveaxis(pool, axes.index(slots.axis), 0)
        for row, slot in enumerate(values[slots.write].data):
            if 0 <= slot < sizes[slots.axis]:
                by_slot[slot] = rows[row]
    return pool.reshape(tensor_shape(state.dims, sizes))
