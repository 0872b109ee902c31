"""The independent pieces of a kernel's tensors, and how they are put together.

A tensor argument is one part, or one part per field of its packed axis. Parts carry atomic axes by
name; `assemble` turns them into the tensor: products flattened, fields side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from attrs import frozen

from gdsl.ir.dims import Atom, Dim, Packed, Product, Unit
from gdsl.ir.expr import Apply, Cast, Expr, Ref, Rename, Unpack
from gdsl.ir.kernel import Input, Kernel, State
from gdsl.ir.node import Symbol
from gdsl.runner import Array
from gdsl.shapes import tensor_shape

Position = Atom | Packed
"""What stands at one place of a tensor once its products are spelled out."""


@frozen
class Part:
    """One argument, or one field of it. `axes` are the dimensions of its values, in order."""

    argument: str
    fields: tuple[str, ...]
    axes: tuple[str, ...]


def input_parts(item: Input) -> tuple[Part, ...]:
    """Return the parts of an input."""
    return tuple(_parts(item.name, (), positions(item.dims)))


def symbol_part(kernel: Kernel, symbol: Symbol) -> Part:
    """Return the first part of the input that a symbol stands for."""
    return input_parts(next(item for item in kernel.inputs if item.symbol == symbol))[0]


def state_parts(state: State) -> tuple[Part, ...]:
    """Return the parts of a state's argument (with its pool or checkpoint axis)."""
    return tuple(_parts(state.argument, (), positions(state.dims)))


def assemble(
    name: str, dims: tuple[Dim, ...], values: Mapping[Part, Array], sizes: Mapping[str, int]
) -> Array:
    """Return the tensor argument `name` from the values of its parts."""
    return _join(name, (), positions(dims), values, sizes).reshape(tensor_shape(dims, sizes))


def elementwise_parts(kernel: Kernel, expr: Expr) -> tuple[Part, ...]:
    """Return the parts whose elements set those of `expr` one by one: no contraction in between."""
    inputs = {item.symbol: item for item in kernel.inputs}
    return tuple(dict.fromkeys(_reached(expr, inputs)))


def _reached(expr: Expr, inputs: Mapping[Symbol, Input]) -> Iterator[Part]:
    match expr:
        case Ref(symbol=symbol) if symbol in inputs:
            yield from input_parts(inputs[symbol])
        case Apply(args=args):
            for arg in args:
                yield from _reached(arg, inputs)
        case Cast(arg=arg) | Rename(arg=arg):
            yield from _reached(arg, inputs)
        case Unpack(field=field, arg=arg):
            # The outermost field comes last in an Unpack chain and first in a part's fields.
            depth = _unpack_depth(arg)
            for part in _reached(arg, inputs):
                if len(part.fields) > depth and part.fields[depth] == field:
                    yield part
        case _:
            return


def _unpack_depth(expr: Expr) -> int:
    return 1 + _unpack_depth(expr.arg) if isinstance(expr, Unpack) else 0


def positions(dims: tuple[Dim, ...]) -> tuple[Position, ...]:
    """Return what stands at each place once products are spelled out and units dropped."""
    found: list[Position] = []
    for dim in dims:
        match dim:
            case Unit():
                pass
            case Product(parts=parts):
                found += positions(parts)
            case Atom() | Packed():
                found.append(dim)
    return tuple(found)


def _first_packed(places: tuple[Position, ...]) -> int | None:
    return next((i for i, p in enumerate(places) if isinstance(p, Packed)), None)


def _parts(name: str, fields: tuple[str, ...], places: tuple[Position, ...]) -> Iterator[Part]:
    at = _first_packed(places)
    if at is None:
        yield Part(name, fields, tuple(p.axis for p in places if isinstance(p, Atom)))
        return
    packed = places[at]
    assert isinstance(packed, Packed)
    for field, dim in packed.fields:
        inner = (*places[:at], *positions((dim,)), *places[at + 1 :])
        yield from _parts(name, (*fields, field), inner)


def _join(
    name: str,
    fields: tuple[str, ...],
    places: tuple[Position, ...],
    values: Mapping[Part, Array],
    sizes: Mapping[str, int],
) -> Array:
    """Return an array with one dimension per position."""
    at = _first_packed(places)
    if at is None:
        axes = tuple(p.axis for p in places if isinstance(p, Atom))
        return values[Part(name, fields, axes)]
    packed = places[at]
    assert isinstance(packed, Packed)
    pieces = []
    for field, dim in packed.fields:
        own = positions((dim,))
        inner = (*places[:at], *own, *places[at + 1 :])
        array = _join(name, (*fields, field), inner, values, sizes)
        width = math.prod(array.shape[at : at + len(own)])
        pieces.append(array.reshape(*array.shape[:at], width, *array.shape[at + len(own) :]))
    return np.concatenate(pieces, axis=at)
