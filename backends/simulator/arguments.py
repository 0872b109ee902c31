"""From the caller's values to a kernel's arguments, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from backends.isa.dtypes import DTYPES, Dtype, find_dtype
from backends.simulator.faults import Fault
from backends.simulator.layouts import whole_layout
from backends.simulator.location import NOWHERE, Location
from backends.simulator.memory import Allocation, Storage, form_of
from backends.simulator.nki_object import NKIObject
from backends.simulator.options import SimOptions
from backends.simulator.registers import VirtualRegister
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion, OpToken


@frozen
class TensorSpec:
    """A tensor known by shape and dtype only: an argument of a shape-only run, or a result."""

    shape: tuple[int, ...]
    dtype: Dtype


@frozen
class TensorArgument:
    """A tensor argument in HBM and the name to report it by: `x`, `pair[0]`, `config.weights`."""

    name: str
    storage: Storage
    given: NDArray[Any] | None = None
    """The caller's array; of a torch tensor on the CPU, an array that shares its memory."""


def bind(
    function: Callable[..., Any],
    values: Sequence[Any] | Mapping[str, Any],
    place: Location = NOWHERE,
) -> inspect.BoundArguments:
    """Return the call's arguments by parameter, defaults applied. Raises Fault S104."""
    try:
        signature = inspect.signature(function)
        by_name = values if isinstance(values, Mapping) else {}
        bound = signature.bind(*(() if isinstance(values, Mapping) else values), **by_name)
    except TypeError as error:
        message = f"the kernel cannot be called so: {error}"
        raise Fault("S104", message, location=place) from None
    bound.apply_defaults()
    return bound


@frozen
class ArgumentMaker:
    """Turns caller values into kernel values, placing arrays in HBM."""

    options: SimOptions
    region: MemoryRegion
    place: Location
    tensors: list[TensorArgument]

    def convert(self, name: str, value: Any) -> Any:
        """Return the kernel's value of one argument. Raises Fault S104."""
        if isinstance(value, TensorSpec):
            return self._tensor(name, value.shape, value.dtype, None)
        if (array := as_array(value)) is not None:
            return self._tensor(name, array.shape, _dtype_of(name, array.dtype), array)
        if isinstance(value, tuple):
            return tuple(self.convert(f"{name}[{i}]", item) for i, item in enumerate(value))
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {key: self.convert(f"{name}.{key}", item) for key, item in value.items()}
        if isinstance(value, NKIObject):
            return self._object(name, value)
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.dtype):
            return _dtype_of(name, value)
        if value is None or isinstance(value, _CONSTANTS) or callable(value):
            return value
        raise Fault(
            "S104",
            f"argument `{name}` is a `{type(value).__name__}`",
            help="pass a tuple" if isinstance(value, list) else _ACCEPTED,
            location=self.place,
        )

    def _object(self, name: str, value: NKIObject) -> NKIObject:
        copy: NKIObject = object.__new__(type(value))
        for field_name, item in vars(value).items():
            converted = self.convert(f"{name}.{field_name}", item)
            object.__setattr__(copy, field_name, converted)
        return copy

    def _tensor(
        self, name: str, shape: tuple[int, ...], dtype: Dtype, array: NDArray[Any] | None
    ) -> NkiTensor:
        if not shape:
            raise Fault(
                "S104",
                f"argument `{name}` has no dimensions",
                help="pass shape (1,)",
                location=self.place,
            )
        form = form_of(shape, dtype, self.region, widen=self.options.widen_to_fp32)
        storage = Storage(Allocation(form, name, self.place, role="input"))
        if not self.options.shape_only:
            storage.fill(array, with_flags=self.options.uninitialized == "fault")
        self.tensors.append(TensorArgument(name, storage, array))
        return NkiTensor(storage, whole_layout(storage), 0)


_CONSTANTS = (bool, int, float, str, Enum, Dtype, OpToken, VirtualRegister)
_ACCEPTED = "arguments are arrays, numbers, strings, None, dtypes, enumerations, tuples, NKIObjects"


def as_array(value: Any) -> NDArray[Any] | None:
    """Return an array-like argument as numpy (torch bfloat16 and fp8 by their bits), else None."""
    if isinstance(value, np.ndarray):
        return value
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        return _from_torch(value)
    if isinstance(value, np.generic) or not hasattr(value, "__array__"):
        return None
    return np.asarray(value)


_TORCH_BITS = {1: "uint8", 2: "int16"}


def _from_torch(tensor: Any) -> NDArray[Any]:
    """Return a torch CPU tensor as numpy with the same element type."""
    tensor = tensor.detach().cpu().contiguous()
    name = str(tensor.dtype).removeprefix("torch.")
    dtype = DTYPES.get(name)
    if dtype is None or dtype.numpy.isbuiltin == 1:
        return np.asarray(tensor.numpy())
    import torch

    bits = tensor.view(getattr(torch, _TORCH_BITS[dtype.bytes])).numpy()
    return np.asarray(bits).view(dtype.numpy)


def _dtype_of(name: str, dtype: np.dtype[Any]) -> Dtype:
    try:
        return find_dtype(dtype)
    except ValueError:
        raise Fault(
            "S104",
            f"argument `{name}` has dtype `{dtype}`, which the machine does not have",
            help="convert it to a 32-bit type first",
        ) from None


def result_array(view: NkiTensor) -> NDArray[Any]:
    """Return a returned tensor as an array of the caller's own."""
    values = view.load()
    return values.astype(np.bool_) if view.dtype.kind == "bool" else np.array(values)


def copy_back(argument: TensorArgument) -> None:
    """Give the caller's array the contents that the kernel left, where it can be written."""
    given = argument.given
    if argument.storage.written and given is not None and given.flags.writeable:
        given[...] = storage_array(argument.storage)


def storage_array(storage: Storage) -> NDArray[Any]:
    """Return an argument's contents after the run."""
    values = storage.values()
    return values.astype(np.bool_) if storage.form.dtype.kind == "bool" else values
