"""Kernels by text or name, and random arguments drawn from their contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

import gdsl
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input, Kernel
from gdsl.shapes import tensor_shape


@cache
def library(name: str) -> Kernel:
    return gdsl.load(name).kernel


@cache
def text(source: str) -> Kernel:
    return gdsl.loads(source).kernel


@pytest.fixture
def kernel_of() -> Callable[[str], Kernel]:
    """Return the kernel of a text. Raises CompileError."""
    return text


@pytest.fixture
def library_kernel() -> Callable[[str], Kernel]:
    """Return a kernel that ships, by name."""
    return library


@pytest.fixture
def draw() -> Callable[..., dict[str, Any]]:
    """Draw float64 arguments that keep every promise of a kernel: `draw(kernel, sizes, seed)`."""

    def arguments(kernel: Kernel, sizes: Mapping[str, int], seed: int = 0) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        drawn = {item.name: _input(item, sizes, rng) for item in kernel.inputs}
        for state in kernel.states:
            drawn[state.argument] = rng.standard_normal(tensor_shape(state.dims, sizes))
        for name in ("k", "key") if kernel.assumes else ():
            if name in drawn:
                drawn[name] /= np.linalg.norm(drawn[name], axis=-1, keepdims=True)
        return drawn

    return arguments


def _input(item: Input, sizes: Mapping[str, int], rng: np.random.Generator) -> Any:
    shape = tensor_shape(item.dims, sizes)
    if item.dtype is Dtype.I32:
        return rng.integers(0, 4, shape).astype(np.int32)
    if item.dtype is Dtype.BOOL:
        return rng.random(shape) < 0.5
    values = rng.standard_normal(shape)
    if item.range is None:
        return values / np.sqrt(shape[0]) if item.name.startswith("W_") else values
    if np.isfinite(item.range.lo) and np.isfinite(item.range.hi):
        return item.range.lo + rng.random(shape) * (item.range.hi - item.range.lo)
    return item.range.hi - np.abs(values) if np.isfinite(item.range.hi) else np.abs(values)
