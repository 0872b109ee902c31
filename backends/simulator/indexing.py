"""`tensor[...]`: what integer, slice and ellipsis keys do to a layout.

NKI differs from numpy in three ways: on chip an integer on the partition dimension keeps it at size
1; results keep at least two dimensions on chip and one in HBM; and a slice must lie inside.
"""

from __future__ import annotations

from operator import index as as_integer
from typing import Any

from backends.simulator.faults import Fault
from backends.simulator.geometry import Ints
from backends.simulator.options import active_options


def index_layout(
    shape: Ints, strides: Ints, keys: tuple[Any, ...], on_chip: bool
) -> tuple[Ints, Ints, int]:
    """Return shape and strides of `tensor[keys]`, and how many elements further on it begins.

    Raises Fault S210, S211, S212.
    """
    offset = 0
    rank = len(shape)
    if Ellipsis in keys:
        keys = _expand_ellipsis(keys, rank)
    if len(keys) > rank:
        raise Fault(
            "S211", f"{len(keys)} indices on a tensor of rank {rank}", values={"shape": shape}
        )
    new_shape: list[int] = []
    new_strides: list[int] = []
    for axis, k in enumerate(keys):
        n, s = shape[axis], strides[axis]
        if type(k) is slice:
            start, stop, step = k.start, k.stop, k.step
            start = 0 if start is None else start
            stop = n if stop is None else stop
            # By far the most frequent keys, kept short.
            if step is None and type(start) is type(stop) is int and 0 <= start < stop <= n:
                offset += start * s
                new_shape.append(stop - start)
                new_strides.append(s)
                continue
            start, stop, step = _bounds(k, n, axis, shape, may_be_empty=not on_chip)
            offset += start * s
            n = (stop - start + step - 1) // step
            if step != 1:
                if on_chip and axis == 0 and n > 1 and active_options().partition_step == "fault":
                    raise Fault(
                        "S212",
                        f"a slice with step {step} over the partition dimension",
                        values={"shape": shape},
                        help="take a contiguous range of partitions, or move the data with a "
                        "matmul, a transpose or a dma",
                    )
                s *= step
            new_shape.append(n)
            new_strides.append(s)
            continue
        i = _integer(k, n, axis, shape)
        offset += i * s
        if on_chip and axis == 0:
            new_shape.append(1)
            new_strides.append(s)
    new_shape.extend(shape[len(keys) :])
    new_strides.extend(strides[len(keys) :])
    if len(new_shape) < (2 if on_chip else 1):
        new_shape.append(1)
        new_strides.append(strides[-1])
    return tuple(new_shape), tuple(new_strides), offset


def _expand_ellipsis(keys: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    """Replace the one `...` by full slices."""
    places = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(places) > 1:
        raise Fault("S211", "more than one `...` in an index")
    missing = rank - (len(keys) - 1)
    return (*keys[: places[0]], *[slice(None)] * missing, *keys[places[0] + 1 :])


def _integer(key: Any, size: int, axis: int, shape: Ints) -> int:
    """Return a non-negative index into a dimension."""
    if isinstance(key, bool) or not hasattr(key, "__index__") or hasattr(key, "storage"):
        raise Fault(
            "S211",
            f"`{type(key).__name__}` cannot index dimension {axis}",
            help="use an integer, a slice, `...` or `nl.ds(start, size)`; run-time indices go "
            "through `.select(dim, tensor)` or `.ap(scalar_offset=...)`",
        )
    i = as_integer(key)
    if not -size <= i < size:
        raise Fault(
            "S210",
            f"index {i} is outside dimension {axis} of size {size}",
            values={"shape": shape},
        )
    return i + size if i < 0 else i


def _bounds(
    key: slice, size: int, axis: int, shape: Ints, may_be_empty: bool
) -> tuple[int, int, int]:
    """Return start, stop, step of a slice that lies inside its dimension.

    In HBM a slice may be empty: shipped kernels take the rows of a core that has none.
    """
    start, stop, step = key.start, key.stop, key.step
    start = 0 if start is None else _part(start, axis)
    stop = size if stop is None else _part(stop, axis)
    step = 1 if step is None else _part(step, axis)
    if start < 0:
        start += size
    if stop < 0:
        stop += size
    if step < 1 or not 0 <= start <= stop <= size or (start == stop and not may_be_empty):
        text = f"{key.start}:{key.stop}" + ("" if key.step is None else f":{key.step}")
        raise Fault(
            "S210",
            f"slice `{text}` is empty, reversed or outside dimension {axis} of size {size}",
            values={"shape": shape},
        )
    return start, stop, step


def _part(value: Any, axis: int) -> int:
    """Return a slice bound as an integer."""
    if not hasattr(value, "__index__"):
        raise Fault(
            "S211",
            f"`{type(value).__name__}` cannot bound a slice of dimension {axis}",
            help="slice bounds are integers; run-time starts go through `.ap(scalar_offset=...)`",
        )
    return as_integer(value)
