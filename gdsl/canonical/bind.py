"""The arguments of a call as arrays with named axes; the states before the first token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from gdsl.canonical.evaluate import zeroed
from gdsl.canonical.values import Named, Scope
from gdsl.ir.dims import Atom, Dim, Packed, Product, Unit
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel, Slots, State
from gdsl.ir.node import Symbol
from gdsl.ir.size_plan import size_plan
from gdsl.ir.sizes import solve_sizes
from gdsl.ir.types import DtypeVar
from gdsl.shapes import dim_size

Array = NDArray[Any]


@frozen(eq=False)
class Bound:
    """One call: the values of inputs, params and initial states, and what evaluation needs."""

    scope: Scope
    values: Mapping[Symbol, Named]
    tensors: Mapping[str, Array]
    dtypes: Mapping[str, Dtype]

    def dtype(self, declared: Dtype | DtypeVar) -> Dtype:
        """The element type a declaration has in this call."""
        return self.dtypes[declared.name] if isinstance(declared, DtypeVar) else declared

    def rows_in_use(self, slots: Slots, values: Mapping[Symbol, Named]) -> Named:
        """Which rows of the batch read or write a slot."""
        size = self.scope.sizes[slots.axis]
        use = is_slot(values[slots.read], size)
        if slots.write is None:
            return use
        return Named(use.axes, use.data | is_slot(values[slots.write], size).data)


def bind(
    kernel: Kernel,
    arguments: Mapping[str, Array | float | int | bool],
    dtype: np.dtype[Any],
    casts: bool,
) -> Bound:
    """Return the values a call begins with; floats in `dtype`. Raises SizeError."""
    names = {item.name for item in kernel.inputs} | {state.argument for state in kernel.states}
    tensors = {name: np.asarray(arguments[name]) for name in names if name in arguments}
    params = {
        param.name: arguments.get(param.name, param.default if param.default is not None else 0)
        for param in kernel.params
    }
    numbers = {name: value for name, value in params.items() if not isinstance(value, np.ndarray)}
    shapes = {name: array.shape for name, array in tensors.items()}
    sizes = solve_sizes(size_plan(kernel, set(tensors)), shapes, numbers)
    packed = {item.name: item for item in kernel.packed}
    sizes |= {name: dim_size(item, sizes) for name, item in packed.items()}
    scope = Scope(sizes, packed, dtype, casts)
    values = {param.symbol: Named((), np.asarray(params[param.name])) for param in kernel.params}
    for item in kernel.inputs:
        if item.name in tensors:
            values[item.symbol] = _named(tensors[item.name], item.dims, scope)
        elif isinstance(item.default, str):
            values[item.symbol] = Named((), np.asarray(sizes[item.default]))
        else:
            values[item.symbol] = Named((), np.asarray(item.default, dtype))
    for state in kernel.states:
        values[state.symbol] = _initial(state, tensors, values, scope)
    return Bound(scope, values, tensors, _dtypes(kernel, tensors))


def is_slot(index: Named, size: int) -> Named:
    """Where an index names a slot of a pool: not negative, not past its end."""
    return Named(index.axes, (index.data >= 0) & (index.data < size))


def tensor_axes(dims: tuple[Dim, ...]) -> tuple[str, ...]:
    """The axes of a tensor's values: the atomic ones, and packed ones as they stand."""
    return tuple(axis for dim in dims for axis in _axes(dim))


def _axes(dim: Dim) -> tuple[str, ...]:
    match dim:
        case Packed(name=name):
            return (name,)
        case Product(parts=parts):
            return tensor_axes(parts)
        case Atom(axis=axis):
            return (axis,)
        case Unit():
            return ()
        case _:
            assert_never(dim)


def _named(tensor: Array, dims: tuple[Dim, ...], scope: Scope) -> Named:
    axes = tensor_axes(dims)
    data = tensor.reshape([scope.sizes[axis] for axis in axes])
    exact = data.dtype.kind in "biu"
    return Named(axes, data if exact else data.astype(scope.dtype))


def _initial(
    state: State, tensors: Mapping[str, Array], values: Mapping[Symbol, Named], scope: Scope
) -> Named:
    axes = state.type.axes
    shape = [scope.sizes[axis] for axis in axes]
    tensor = tensors.get(state.argument)
    if tensor is None:
        return Named(axes, np.zeros(shape, scope.dtype))
    value = _named(tensor, state.dims, scope)
    if state.slots is not None:
        value = _gathered(value, state.slots, values[state.slots.read], scope)
    if state.accepted is not None:
        count = values[state.accepted.symbol]
        value = _picked(value, state.accepted.axis, count.axes[0], count.data)
    full = Named(axes, np.broadcast_to(value.over(axes), shape))
    return full if state.unless is None else zeroed(values[state.unless], full)


def _gathered(pool: Named, slots: Slots, read: Named, scope: Scope) -> Named:
    """Each row's slot; zeros for a row that reads no slot."""
    valid = is_slot(read, scope.sizes[slots.axis])
    index = np.where(valid.data, read.data, 0)
    place = pool.axes.index(slots.axis)
    axes = tuple(slots.batch if axis == slots.axis else axis for axis in pool.axes)
    return zeroed(valid, Named(axes, np.take(pool.data, index, axis=place)))


def _picked(value: Named, axis: str, batch: str, index: Array) -> Named:
    """Per row of the batch, the entry of an axis."""
    rest = tuple(name for name in value.axes if name not in (axis, batch))
    rows = value.over((batch, axis, *rest))
    return Named((batch, *rest), rows[np.arange(len(index)), index])


def _dtypes(kernel: Kernel, tensors: Mapping[str, Array]) -> dict[str, Dtype]:
    """What each dtype variable is in this call: that of the first tensor declared with it."""
    found: dict[str, Dtype] = {}
    for name, declared in (
        *((item.name, item.dtype) for item in kernel.inputs),
        *((state.argument, state.dtype) for state in kernel.states),
    ):
        if isinstance(declared, DtypeVar) and name in tensors:
            matching = (c for c in declared.choices if c.numpy == tensors[name].dtype)
            found.setdefault(declared.name, next(matching, Dtype.F32))
    for variable in kernel.dtype_vars:
        found.setdefault(variable.name, variable.choices[0])
    return found
