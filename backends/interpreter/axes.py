"""Values on named axes: dimensions have names and are aligned by name, never by position.

This is the whole of broadcasting: a value lacks an axis, so it is the same along it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from gdsl.ir.dims import Atom, Dim, Packed, Product, Unit
from gdsl.shapes import dim_size, tensor_shape

Array = NDArray[Any]
Sizes = Mapping[str, int]


@frozen(eq=False)
class Value:
    """An array; dimension i of `array` is the axis `axes[i]`."""

    axes: tuple[str, ...]
    array: Array


def aligned(value: Value, axes: tuple[str, ...]) -> Array:
    """Return a view with exactly these axes in this order, of size 1 where the value lacks one."""
    if value.axes == axes:
        return value.array
    order, places = _alignment(value.axes, axes)
    array = value.array if order is None else value.array.transpose(order)
    return array[places]


@lru_cache(maxsize=4096)
def _alignment(
    have: tuple[str, ...], wanted: tuple[str, ...]
) -> tuple[list[int] | None, tuple[slice | None, ...]]:
    """Return the order of dimensions (None: as they are), and the index that adds the missing."""
    order = [have.index(axis) for axis in wanted if axis in have]
    places = tuple(slice(None) if axis in have else None for axis in wanted)
    return None if order == sorted(order) else order, places


def spread(value: Value, axes: tuple[str, ...], sizes: Sizes) -> Array:
    """Return a read-only view of full size on all of these axes."""
    return np.broadcast_to(aligned(value, axes), tuple(sizes[axis] for axis in axes))


def union(axes: tuple[str, ...], values: list[Value]) -> tuple[str, ...]:
    """Return those of `axes` that some value carries, in the order of `axes`."""
    return _carried(axes, tuple([value.axes for value in values]))


@lru_cache(maxsize=4096)
def _carried(axes: tuple[str, ...], found: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    return tuple(axis for axis in axes if any(axis in carried for carried in found))


def at(value: Value, axis: str, index: int) -> Value:
    """Return the value at one index of an axis; one without the axis is the same everywhere."""
    if axis not in value.axes:
        return value
    place = value.axes.index(axis)
    return Value(
        value.axes[:place] + value.axes[place + 1 :],
        value.array[(slice(None),) * place + (index,)],
    )


# ---- tensors: ordered dimensions that may be products of axes


def atoms(dim: Dim) -> tuple[str, ...]:
    """Return the axes a dimension is made of, slowest first; a packed one counts as one axis."""
    match dim:
        case Unit():
            return ()
        case Atom(axis):
            return (axis,)
        case Packed(name):
            return (name,)
        case Product(parts):
            return tuple(axis for part in parts for axis in atoms(part))


def tensor_axes(dims: tuple[Dim, ...]) -> tuple[str, ...]:
    """Return the axes of a tensor in the order they lie in memory."""
    return tuple(axis for dim in dims for axis in atoms(dim))


def from_tensor(array: Array, dims: tuple[Dim, ...], sizes: Sizes) -> Value:
    """Split the dimensions of a tensor into its axes."""
    axes = tensor_axes(dims)
    return Value(axes, array.reshape([sizes[axis] for axis in axes]))


def to_tensor(value: Value, dims: tuple[Dim, ...], sizes: Sizes) -> Array:
    """Lay a value out as a tensor (the inverse of `from_tensor`); the result is a fresh array."""
    full = spread(value, tensor_axes(dims), sizes)
    return np.array(full).reshape(tensor_shape(dims, sizes))


def field(value: Value, packed: Packed, name: str, sizes: Sizes) -> Value:
    """Return one field of a packed axis; the axes of the field stand where the packed one stood."""
    place = value.axes.index(packed.name)
    start = 0
    for label, dim in packed.fields:
        inner, length = atoms(dim), dim_size(dim, sizes)
        if label == name:
            cut = value.array[(slice(None),) * place + (slice(start, start + length),)]
            shape = value.array.shape
            split = (*shape[:place], *(sizes[axis] for axis in inner), *shape[place + 1 :])
            return Value(
                (*value.axes[:place], *inner, *value.axes[place + 1 :]), cut.reshape(split)
            )
        start += length
    raise KeyError(name)
