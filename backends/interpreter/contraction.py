"""`sum` of a product, as a batched matrix product where the operands have axes of their own.

The meaning is `sum[axes](a * b)`; only the order of the additions differs from writing it out.
"""

from __future__ import annotations

from math import prod

import numpy as np

from backends.interpreter.axes import Value, aligned


def contract(a: Value, b: Value, over: tuple[str, ...]) -> Value | None:
    """Return the sum of a * b over axes that both carry, or None where a matrix product is no help.

    The last axis that only `a` has becomes the rows, the last that only `b` has the columns;
    everything else is a batch axis, so no operand is copied to fit.
    """
    if not all(axis in a.axes and axis in b.axes for axis in over):
        return None
    rows = [axis for axis in a.axes if axis not in b.axes][-1:]
    columns = [axis for axis in b.axes if axis not in a.axes][-1:]
    if not rows and not columns:
        return None
    used = {*over, *rows, *columns}
    batch = tuple(axis for axis in dict.fromkeys(a.axes + b.axes) if axis not in used)
    height, width = _extent(a, tuple(rows)), _extent(b, tuple(columns))
    depth = _extent(a, over)
    left = aligned(a, (*batch, *rows, *over))
    right = aligned(b, (*batch, *over, *columns))
    with np.errstate(all="ignore"):
        product = np.matmul(
            left.reshape((*left.shape[: len(batch)], height, depth)),
            right.reshape((*right.shape[: len(batch)], depth, width)),
        )
    if not rows:
        product = product[..., 0, :]
    if not columns:
        product = product[..., 0]
    return Value((*batch, *rows, *columns), product)


def _extent(value: Value, axes: tuple[str, ...]) -> int:
    return prod([value.array.shape[value.axes.index(axis)] for axis in axes])
