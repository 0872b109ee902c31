"""Which elements of a call count. A dead one is padding: it may hold anything, NaN included.

A row of the batch is dead when its slots say so (neither read nor written); a token is dead past
its row's `valid_len`. Dead elements of inputs are never looked at, those of outputs are exactly 0.
Both are *selected*; a flag never multiplies.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from backends.interpreter.axes import Sizes, Value, aligned
from gdsl.ir.kernel import Kernel, Run
from gdsl.ir.node import Symbol


@frozen(eq=False)
class Live:
    """Conditions that must all hold, each a boolean on its own axes."""

    conditions: tuple[Value, ...]

    def on(self, axes: tuple[str, ...]) -> Value | None:
        """Return which elements of a value with these axes are live (None: all of them)."""
        return both(*(c for c in self.conditions if set(c.axes) <= set(axes)))

    def cleared(self, value: Value) -> Value:
        """Return the value with 0 in place of everything dead."""
        zero = Value((), np.asarray(0, value.array.dtype))
        return select(self.on(value.axes), value, zero, value.axes)


def both(*conditions: Value | None) -> Value | None:
    """Return the conjunction; no condition at all is None."""
    given = [condition for condition in conditions if condition is not None]
    if not given:
        return None
    axes = tuple(dict.fromkeys(axis for condition in given for axis in condition.axes))
    array = np.logical_and.reduce(np.broadcast_arrays(*(aligned(c, axes) for c in given)))
    return Value(axes, np.asarray(array))


def select(condition: Value | None, value: Value, other: Value, axes: tuple[str, ...]) -> Value:
    """Return `value` where the condition holds (or there is none), else `other`."""
    if condition is None:
        return value
    axes = tuple(axis for axis in axes if axis in {*value.axes, *other.axes, *condition.axes})
    arrays = (aligned(item, axes) for item in (condition, value, other))
    return Value(axes, np.where(*arrays))


def tokens_within(valid_len: Value, axis: str, sizes: Sizes) -> Value:
    """Return for every token whether it lies before its row's `valid_len`."""
    axes = (*valid_len.axes, axis)
    return Value(axes, np.arange(sizes[axis]) < aligned(valid_len, axes))


def live_elements(
    kernel: Kernel, names: Mapping[Symbol, Value], rows: tuple[Value, ...], sizes: Sizes
) -> Live:
    """Return what counts: rows that their slots keep, and tokens before `valid_len`.

    An axis is masked for inputs and outputs only if every scan over it has the same `valid_len`.
    """
    runs = [s for s in kernel.body if isinstance(s, Run) and s.axis is not None]
    masks: dict[str, set[Symbol | None]] = {}
    for run in runs:
        if run.axis is not None:
            masks.setdefault(run.axis, set()).add(run.valid_len)
    tokens = [
        tokens_within(names[symbol], axis, sizes)
        for axis, found in masks.items()
        if len(found) == 1
        for symbol in found
        if symbol is not None
    ]
    return Live((*rows, *tokens))
