"""Where a state starts and where it goes: tensors, zeros, slots of a pool, accepted tokens.

The rules are those of the serving contract: a slot below 0 or beyond the pool is no slot (and never
wraps to the end of the pool); reads see the pool as at entry; zeros are selected.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from backends.interpreter.axes import Array, Sizes, Value, aligned, from_tensor, spread
from backends.interpreter.bind import Bound, declared_dtype
from backends.interpreter.check import check_index
from backends.interpreter.faults import fault
from backends.interpreter.live import select
from backends.interpreter.precision import Arithmetic
from gdsl.errors import RunError
from gdsl.ir.kernel import Accepted, Kernel, Slots, State
from gdsl.ir.node import Symbol
from gdsl.shapes import tensor_shape


def initial(state: State, kernel: Kernel, bound: Bound, arithmetic: Arithmetic) -> Value:
    """Return the state before the first token, in the computing type."""
    axes, sizes = state.type.axes, bound.sizes
    zero = Value((), np.asarray(0, arithmetic.compute))
    tensor = bound.states.get(state.argument)
    if tensor is None or tensor.size == 0:
        return Value(axes, np.zeros([sizes[axis] for axis in axes], arithmetic.compute))
    value = from_tensor(tensor, state.dims, sizes)
    filled: Value | None = None
    if state.slots is not None:
        value = _read_slots(state.slots, value, bound.names, sizes)
        filled = is_slot(bound.names[state.slots.read], state.slots, sizes)
    if state.accepted is not None:
        value = _after_accepted(state.accepted, value, kernel, bound)
    value = Value(value.axes, arithmetic.computed(value.array))
    value = select(filled, value, zero, axes)
    if state.unless is not None:
        value = select(bound.names[state.unless], value, zero, axes)
    return Value(axes, np.array(spread(value, axes, sizes)))


def is_slot(index: Value, slots: Slots, sizes: Sizes) -> Value:
    """Return which entries of an index name a slot of the pool."""
    return Value(index.axes, (index.array >= 0) & (index.array < sizes[slots.axis]))


def kept_rows(kernel: Kernel, names: Mapping[Symbol, Value], sizes: Sizes) -> tuple[Value, ...]:
    """Return for each pool which rows of the batch do anything: those that read or write a slot."""
    kept = []
    for state in kernel.states:
        if state.slots is not None:
            reads = is_slot(names[state.slots.read], state.slots, sizes)
            writes = _writes(state.slots, names, sizes)
            kept.append(Value(reads.axes, reads.array | writes))
    return tuple(kept)


def check_slots(kernel: Kernel, names: Mapping[Symbol, Value], sizes: Sizes) -> None:
    """Refuse two rows that write one slot, and a row that writes what another one reads."""
    for state in kernel.states:
        slots = state.slots
        if slots is None or slots.write is None:
            continue
        read, write = names[slots.read].array, names[slots.write].array
        writer: dict[int, int] = {}
        for row in np.flatnonzero(_writes(slots, names, sizes)):
            first = writer.setdefault(int(write[row]), int(row))
            if first != row:
                raise _shared(state, int(write[row]), first, "written", int(row))
        for reader, slot in enumerate(read.tolist()):
            if writer.get(slot, reader) != reader:
                raise _shared(state, slot, writer[slot], "read", reader)


def _shared(state: State, slot: int, writer: int, verb: str, other: int) -> RunError:
    return fault(
        "E0709",
        f"slot {slot} of `{state.argument}` is written by row {writer} and {verb} by row {other}",
        state.span,
        help="give each row a slot of its own; rows of one call have no order",
    )


def pool_after(
    state: State, slots: Slots, value: Value, bound: Bound, arithmetic: Arithmetic
) -> Array:
    """Return the pool with final states in the slots that were written, all others bit-identical.

    `value` is the final state of every row of the batch.
    """
    dtype, sizes = declared_dtype(state.dtype, bound.dtypes), bound.sizes
    shape = tensor_shape(state.dims, sizes)
    before = bound.states.get(state.argument, np.zeros(shape, dtype.numpy))
    pool = from_tensor(np.array(arithmetic.stored(before, dtype)), state.dims, sizes)
    place = pool.axes.index(slots.axis)
    rest = tuple(axis for axis in pool.axes if axis != slots.axis)
    rows = spread(value, (slots.batch, *rest), sizes)
    written = _writes(slots, bound.names, sizes)
    if slots.write is not None:
        by_slot = np.moveaxis(pool.array, place, 0)
        by_slot[bound.names[slots.write].array[written]] = arithmetic.stored(rows[written], dtype)
    return pool.array.reshape(shape)


def _writes(slots: Slots, names: Mapping[Symbol, Value], sizes: Sizes) -> Array:
    if slots.write is None:
        return np.zeros(names[slots.read].array.shape, np.bool_)
    return is_slot(names[slots.write], slots, sizes).array


def _read_slots(slots: Slots, pool: Value, names: Mapping[Symbol, Value], sizes: Sizes) -> Value:
    """Return each row's slot; a row without one gets slot 0 here and zeros from the caller."""
    index = names[slots.read]
    place = pool.axes.index(slots.axis)
    safe = np.where(is_slot(index, slots, sizes).array, index.array, 0)
    axes = (*pool.axes[:place], slots.batch, *pool.axes[place + 1 :])
    return Value(axes, np.take(pool.array, safe, axis=place))


def _after_accepted(accepted: Accepted, value: Value, kernel: Kernel, bound: Bound) -> Value:
    """Return each row's state after its number of accepted tokens."""
    count = bound.names[accepted.symbol]
    item = next(item for item in kernel.inputs if item.symbol == accepted.symbol)
    check_index(item, count, bound.sizes[accepted.axis] - 1, f"{accepted.axis} - 1 = ")
    rest = tuple(axis for axis in value.axes if axis not in (accepted.axis, *count.axes))
    array = aligned(value, (*count.axes, accepted.axis, *rest))
    rows = np.indices(count.array.shape, sparse=True)
    return Value((*count.axes, *rest), array[(*rows, count.array)])
