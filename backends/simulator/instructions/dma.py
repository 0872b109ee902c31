"""DMA: copies between memories, by rows found at run time, transposed or added on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.dma_rules import DMA_TRANSPOSES
from backends.simulator.numerics import round_to
from backends.simulator.tensor import NkiTensor


def dma_copy(call: BoundCall) -> None:
    """`dst = src` element by element in row-major order, converted through fp32 if types differ."""
    dst: NkiTensor = call["dst"]
    src: NkiTensor = call["src"]
    skip = call["oob_mode"] == "skip"
    values, legal = src.gather(skip=skip)
    cells = _convert(values, src, dst)
    if legal is not None:
        # Rows whose index led outside leave the destination as it is.
        old = dst.load().reshape(src.shape)
        reached = legal.reshape(-1, *[1] * (len(src.shape) - 1))
        cells = np.where(reached, cells.reshape(src.shape), old)
    dst.store(cells, skip=skip)


def _convert(values: NDArray[Any], src: NkiTensor, dst: NkiTensor) -> NDArray[Any]:
    if src.dtype == dst.dtype:
        return values
    return round_to(values.astype(np.float32), dst.dtype, dst.cell)


def dma_transpose(call: BoundCall) -> None:
    """`dst = src` with its axes permuted; rows found at run time come first."""
    dst: NkiTensor = call["dst"]
    src: NkiTensor = call["src"]
    dst.store(np.transpose(src.load(), DMA_TRANSPOSES[src.ndim]))


def dma_compute(call: BoundCall) -> None:
    """`dst` = sum of the sources in fp32, also onto rows found at run time."""
    dst: NkiTensor = call["dst"]
    skip = call["oob_mode"] == "skip"
    total: NDArray[Any] | None = None
    for source in call["srcs"]:
        values, _ = source.gather(skip=skip)
        addend = values.astype(np.float32).reshape(dst.shape)
        with np.errstate(all="ignore"):
            total = addend if total is None else total + addend
    assert total is not None
    dst.store(round_to(total, dst.dtype, dst.cell), skip=skip)
