"""`nki.language` functions that allocate, fill, load and store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.isa.dtypes import Dtype
from backends.simulator.allocation import element_type, ndarray
from backends.simulator.faults import Fault
from backends.simulator.instruction_calls import instruction
from backends.simulator.instructions.enums import ENUMS
from backends.simulator.machine import current
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion

_memset = instruction("memset")
_dma_copy = instruction("dma_copy")
_dma_transpose = instruction("dma_transpose")
_tensor_copy = instruction("tensor_copy")

_SBUF = MemoryRegion.sbuf


def full(
    shape: Sequence[int], fill_value: Any, dtype: Any, buffer: Any = _SBUF, name: str = ""
) -> NkiTensor:
    """Return a tensor of one value: a memset on chip, a dma from a filled element in HBM."""
    tensor = ndarray(shape, dtype, buffer, name)
    # Integer tiles refuse a fraction, as `nisa.memset` does.
    whole = tensor.dtype.is_integer and float(fill_value).is_integer()
    value = int(fill_value) if whole else float(fill_value)
    if tensor.on_chip:
        _memset(dst=tensor, value=value)
        return tensor
    element = ndarray((1, 1), dtype, _SBUF)
    _memset(dst=element, value=value)
    _dma_copy(dst=tensor, src=element.broadcast(1, tensor.size))
    return tensor


def zeros(shape: Sequence[int], dtype: Any, buffer: Any = _SBUF, name: str = "") -> NkiTensor:
    """Return a tensor of zeros."""
    return full(shape, 0, dtype, buffer, name)


def ones(shape: Sequence[int], dtype: Any, buffer: Any = _SBUF, name: str = "") -> NkiTensor:
    """Return a tensor of ones."""
    return full(shape, 1, dtype, buffer, name)


def zeros_like(x: NkiTensor, dtype: Any = None, buffer: Any = None, name: str = "") -> NkiTensor:
    """Return zeros with the shape of `x`, and its dtype and memory unless given."""
    return full(x.shape, 0, dtype or x.dtype, buffer or x.buffer, name)


def empty_like(x: NkiTensor, dtype: Any = None, buffer: Any = None, name: str = "") -> NkiTensor:
    """Return an uninitialised tensor like `x`."""
    return ndarray(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def load(src: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return a new SBUF tile with the contents of an HBM view."""
    tile = ndarray(src.shape, dtype or src.dtype, _SBUF)
    _dma_copy(dst=tile, src=src)
    return tile


def store(dst: NkiTensor, value: NkiTensor) -> None:
    """Copy an SBUF tile to HBM."""
    if not isinstance(value, NkiTensor) or value.memory != "sbuf":
        raise Fault("S104", "`nl.store` takes a tile in SBUF", help="evict PSUM with `nl.copy`")
    _dma_copy(dst=dst, src=value)


def load_transpose2d(src: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return a new SBUF tile with the transpose of a two-dimensional HBM view."""
    rows, columns = src.shape
    tile = ndarray((columns, rows), dtype or src.dtype, _SBUF)
    _dma_transpose(dst=tile, src=src)
    return tile


def copy(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return a copy in a new SBUF tile (VectorE)."""
    tile = ndarray(x.shape, dtype or x.dtype, _SBUF)
    _tensor_copy(dst=tile, src=x, engine=ENUMS["engine"]["vector"])
    return tile


def shared_constant(data: Any, dtype: Any = None, name: str = "") -> NkiTensor:
    """Return an HBM tensor whose contents are part of the program: an array or a `.npy` file."""
    if isinstance(data, (str, Path)):
        data = np.load(data)
    values: NDArray[Any] = np.asarray(data)
    element = element_type(values.dtype if dtype is None else dtype)
    return _constant(values.astype(element.numpy), element, name)


def _constant(values: NDArray[Any], element: Dtype, name: str = "") -> NkiTensor:
    return current().allocate(
        values.shape,
        element,
        MemoryRegion.shared_hbm,
        name=name,
        role="constant",
        values=values,
    )


def shared_identity_matrix(n: int, dtype: Any = "uint8", dst: NkiTensor | None = None) -> NkiTensor:
    """Return an SBUF tile with the n x n identity, loaded from a constant."""
    element = element_type(dtype)
    tile = ndarray((n, n), element, _SBUF) if dst is None else dst
    _dma_copy(dst=tile, src=_constant(np.eye(n).astype(element.numpy), element))
    return tile
