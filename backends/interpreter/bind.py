"""From a caller's arguments to values on named axes: names, dtypes, sizes, defaults.

What the values may be (ranges, stated facts) is checked later, in `check`, since it depends on
which elements are live.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen

from backends.interpreter.axes import Array, Value, from_tensor
from backends.interpreter.faults import fault
from backends.interpreter.precision import Arithmetic
from gdsl.ir.dtypes import Dtype
from gdsl.ir.interval import contains, show
from gdsl.ir.kernel import Input, Kernel, Param, State
from gdsl.ir.node import Symbol
from gdsl.ir.size_plan import size_plan
from gdsl.ir.sizes import SizeError, solve_sizes
from gdsl.ir.types import DtypeVar
from gdsl.shapes import dim_size, tensor_shape
from gdsl.suggest import did_you_mean

Arguments = Mapping[str, Any]

_KINDS = {Dtype.I32: "integers", Dtype.BOOL: "booleans"}
_BY_NUMPY = {dtype.numpy: dtype for dtype in Dtype}


@frozen(eq=False)
class Bound:
    """Arguments by meaning. `states` holds the argument tensors of states as they came in."""

    names: dict[Symbol, Value]
    states: dict[str, Array]
    sizes: dict[str, int]
    dtypes: dict[str, Dtype]
    params: dict[Symbol, float | int | bool]


def bind(kernel: Kernel, arguments: Arguments, arithmetic: Arithmetic) -> Bound:
    """Bind arguments by name. Raises RunError where a name, dtype or shape does not fit."""
    params, tensors = _given(kernel, arguments)
    dtypes = _dtypes(kernel, tensors, arithmetic)
    sizes = _sizes(kernel, tensors, params)
    names: dict[Symbol, Value] = {}
    for symbol, number in params.items():
        dtype = np.bool_ if isinstance(number, bool) else arithmetic.compute
        names[symbol] = Value((), np.asarray(number, dtype))
    for item in kernel.inputs:
        names[item.symbol] = _value(item, tensors.get(item.name), sizes, arithmetic)
    states = {s.argument: tensors[s.argument] for s in kernel.states if s.argument in tensors}
    return Bound(names, states, sizes, dtypes, params)


def _given(
    kernel: Kernel, arguments: Arguments
) -> tuple[dict[Symbol, float | int | bool], dict[str, Array]]:
    """Return parameters and tensors; nothing that is required is missing."""
    arguments = _declared_names(kernel, arguments)
    params = {param.symbol: _param(param, arguments) for param in kernel.params}
    tensors = {
        item_name: np.asarray(arguments[item_name])
        for item_name, _ in _tensors(kernel)
        if arguments.get(item_name) is not None
    }
    for name, item in _tensors(kernel):
        if name not in tensors and not _may_be_missing(item):
            raise fault("E0702", f"argument `{name}` of `{kernel.name}` is missing", item.span)
    return params, tensors


def declared_dtype(dtype: Dtype | DtypeVar, dtypes: Mapping[str, Dtype]) -> Dtype:
    """Return the element type of a tensor, given what the caller fixed variables to."""
    return dtypes[dtype.name] if isinstance(dtype, DtypeVar) else dtype


def _may_be_missing(item: Input | State) -> bool:
    return item.optional if isinstance(item, State) else item.default is not None


def _tensors(kernel: Kernel) -> list[tuple[str, Input | State]]:
    """Return every tensor argument by the name it has in a call."""
    inputs: list[tuple[str, Input | State]] = [(item.name, item) for item in kernel.inputs]
    return [*inputs, *((state.argument, state) for state in kernel.states)]


def _declared_names(kernel: Kernel, arguments: Arguments) -> Arguments:
    """Return the arguments under the names of their declarations, which a call line may change."""
    declared = [name for name, _ in _tensors(kernel)] + [param.name for param in kernel.params]
    known = {name: name for name in declared}
    known |= {a.name: a.key or a.name for a in kernel.call.arguments}
    for name in arguments:
        if name not in known:
            raise fault(
                "E0703",
                f"`{kernel.name}` has no argument `{name}`{did_you_mean(name, known)}",
                kernel.span,
                help=f"it takes {', '.join(f'`{k}`' for k in known)}",
            )
    return {known[name]: value for name, value in arguments.items()}


def _param(param: Param, arguments: Arguments) -> float | int | bool:
    given = arguments.get(param.name, param.default)
    if given is None:
        raise fault("E0702", f"parameter `{param.name}` has no value and no default", param.span)
    number = np.asarray(given)
    fits = {"float": number.dtype.kind in "fiu", "int": number.dtype.kind in "iu"}
    if number.ndim != 0 or not fits.get(param.kind, number.dtype.kind == "b"):
        raise fault(
            "E0705", f"parameter `{param.name}` must be one {param.kind}, not `{given}`", param.span
        )
    if not contains(param.type.range, float(number)):
        raise fault(
            "E0706",
            f"parameter `{param.name}` is {number:g}, outside its declared range "
            f"{show(param.type.range)}",
            param.span,
        )
    plain: float | int | bool = number.item()
    return plain


# ---- dtypes


def _dtypes(
    kernel: Kernel, tensors: Mapping[str, Array], arithmetic: Arithmetic
) -> dict[str, Dtype]:
    """Check every tensor's dtype and return what the variables are fixed to."""
    fixed: dict[str, tuple[Dtype, str]] = {}
    for name, item in _tensors(kernel):
        if name in tensors:
            _check_kind(name, item, tensors[name])
            if arithmetic.rounds:
                _check_exact(name, item, tensors[name], fixed)
    variables = {variable.name: variable.choices[0] for variable in kernel.dtype_vars}
    return variables | {name: dtype for name, (dtype, _) in fixed.items()}


def _check_kind(name: str, item: Input | State, array: Array) -> None:
    wanted = None if isinstance(item.dtype, DtypeVar) else _KINDS.get(item.dtype)
    given = _BY_NUMPY.get(array.dtype)
    is_float = array.dtype.kind == "f" or (given is not None and given.is_float)
    kind = {"i": "integers", "u": "integers", "b": "booleans"}.get(array.dtype.kind)
    if (wanted is None and not is_float) or (wanted is not None and kind != wanted):
        raise fault(
            "E0705",
            f"`{name}` holds {array.dtype}, but {wanted or 'real numbers'} are declared",
            item.span,
        )


def _check_exact(
    name: str, item: Input | State, array: Array, fixed: dict[str, tuple[Dtype, str]]
) -> None:
    given = _BY_NUMPY.get(array.dtype)
    shown = given.value if given is not None else str(array.dtype)
    if not isinstance(item.dtype, DtypeVar):
        if given is not item.dtype:
            raise fault(
                "E0705",
                f"`{name}` is {shown}, but {item.dtype.value} is declared",
                item.span,
                help=f"convert it to {item.dtype.value}; nothing is reinterpreted or cast silently",
            )
        return
    if given is None or given not in item.dtype.choices:
        choices = ", ".join(choice.value for choice in item.dtype.choices)
        raise fault(
            "E0705", f"`{name}` is {shown}, but `{item.dtype.name}` is one of {choices}", item.span
        )
    dtype, first = fixed.setdefault(item.dtype.name, (given, name))
    if dtype is not given:
        raise fault(
            "E0705",
            f"`{name}` is {shown}, but `{first}` fixes `{item.dtype.name}` to {dtype.value}",
            item.span,
        )


# ---- sizes


def _sizes(
    kernel: Kernel, tensors: Mapping[str, Array], params: Mapping[Symbol, float | int | bool]
) -> dict[str, int]:
    """Solve the size of every axis from the shapes; a packed axis is the sum of its fields."""
    try:
        shapes = {name: array.shape for name, array in tensors.items()}
        numbers = {param.name: params[param.symbol] for param in kernel.params}
        sizes = solve_sizes(size_plan(kernel, shapes), shapes, numbers)
    except SizeError as error:
        spans = dict(_tensors(kernel))
        item = spans.get(error.argument) if error.argument else None
        raise fault("E0704", str(error), item.span if item else kernel.span) from error
    for packed in kernel.packed:
        sizes[packed.name] = sum(dim_size(dim, sizes) for _, dim in packed.fields)
    return sizes


# ---- values


def _value(
    item: Input, array: Array | None, sizes: Mapping[str, int], arithmetic: Arithmetic
) -> Value:
    if array is None:
        filler = sizes[item.default] if isinstance(item.default, str) else item.default
        array = np.full(tensor_shape(item.dims, sizes), filler, _plain(item.dtype, arithmetic))
    value = from_tensor(array, item.dims, sizes)
    if array.dtype.kind in "iub":
        return value
    return Value(value.axes, arithmetic.computed(value.array))


def _plain(dtype: Dtype | DtypeVar, arithmetic: Arithmetic) -> np.dtype[Any]:
    if isinstance(dtype, DtypeVar) or dtype.is_float:
        return arithmetic.compute
    return dtype.numpy
