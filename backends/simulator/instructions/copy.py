"""Copies between on-chip tiles."""

from __future__ import annotations

import numpy as np

from backends.simulator.instructions.call import BoundCall
from backends.simulator.numerics import round_to
from backends.simulator.tensor import NkiTensor


def tensor_copy(call: BoundCall) -> None:
    """`dst = src`: bits when the types are equal, otherwise through fp32."""
    dst: NkiTensor = call["dst"]
    src: NkiTensor = call["src"]
    if src.dtype == dst.dtype:
        dst.store(src.load())
    else:
        dst.store_f32(src.load())


def tensor_copy_predicated(call: BoundCall) -> None:
    """`dst = src` where the predicate is not zero (is zero, when reversed)."""
    dst: NkiTensor = call["dst"]
    src = call["src"]
    chosen = (call.raw("predicate") != 0) ^ call["reverse_pred"]
    if isinstance(src, NkiTensor):
        values = call.raw("src")
    else:
        values = round_to(np.array([[src]], dtype=np.float32), dst.dtype, dst.cell)
    dst.store(np.where(chosen, values, call.raw("dst")))
