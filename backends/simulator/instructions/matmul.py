"""TensorE: products into PSUM with their accumulation rules, transposes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.simulator.accumulation import refused_sum
from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall
from backends.simulator.memory import MATMUL_WROTE, OTHER_WROTE_LAST, WRITTEN
from backends.simulator.numerics import matmul_operand, product
from backends.simulator.tensor import NkiTensor

_GROUP = 32
"""Partitions that share one index list of an indirect TensorE operand."""
FREE_SUMS_FROM = 4
"""The generation from which a matmul may add to elements that no matmul wrote."""


def accumulating(call: BoundCall) -> NDArray[np.bool_] | bool:
    """Which elements of `dst` a matmul adds to; one truth value when all agree.

    `accumulate=None` adds where an earlier matmul wrote since the allocation. Raises Fault S431 for
    `accumulate=True` on an element that no matmul wrote (trn1, trn2).
    """
    dst: NkiTensor = call["dst"]
    asked: bool | None = call["accumulate"]
    if asked is False:
        return False
    state = dst.accumulation_state()
    by_matmul = (state & MATMUL_WROTE) != 0
    everywhere = bool(by_matmul.all())
    if asked and not everywhere:
        _refuse_preset(call, by_matmul)
    overwritten = asked or everywhere
    if not overwritten:
        _look_at_preset(call, dst, state, by_matmul)
    if bool(((state & OTHER_WROTE_LAST) != 0)[by_matmul].any()):
        _report(
            call,
            call.options.accumulate_after_write,
            "accumulation continues onto data that another engine wrote after the last matmul",
        )
    if overwritten:
        return True
    return by_matmul if by_matmul.any() else False


def _refuse_preset(call: BoundCall, by_matmul: NDArray[np.bool_]) -> None:
    if call.target.generation < FREE_SUMS_FROM:
        raise refused_sum(~by_matmul)


def _look_at_preset(
    call: BoundCall, dst: NkiTensor, state: NDArray[np.uint8], by_matmul: NDArray[np.bool_]
) -> None:
    preset = ((state & WRITTEN) != 0) & ~by_matmul
    if preset.any() and bool((dst.load()[preset] != 0).any()):
        _report(
            call,
            call.options.accumulate_preset,
            "the first matmul with `accumulate=None` overwrites non-zero data in `dst`",
        )


def _report(call: BoundCall, severity: str, message: str) -> None:
    if severity == "fault":
        raise Fault("S431", message)
    call.machine.warn("S431", message)


def nc_matmul(call: BoundCall) -> None:
    """`dst (+)= stationary.T @ moving`, adding where `accumulating` found that it does."""
    dst: NkiTensor = call["dst"]
    added: NDArray[np.bool_] | bool = call["accumulate"]
    stationary, moving = _operand(call, "stationary"), _operand(call, "moving")
    if call["is_transpose"] and stationary.dtype != np.float32:
        # Transpose mode moves bits; widening to fp32 and back is exact for every narrower type.
        stationary = stationary.astype(np.float32)
    result = product(stationary, moving).reshape(dst.shape)
    if added is not False:
        with np.errstate(all="ignore"):
            total = dst.load(_GROUP).astype(np.float32) + result
        result = total if added is True else np.where(added, total, result)
    dst.store_f32(result, matmul=True, group=_GROUP)


def _operand(call: BoundCall, name: str) -> NDArray[Any]:
    tile: NkiTensor = call[name]
    values = matmul_operand(tile.load(_GROUP), tile.dtype)
    if call["perf_mode"] == "double_row":
        # (P, 2, M): both rows are contracted, so they join the partitions.
        pairs = values.reshape(tile.partitions, 2, -1)
        return pairs.reshape(2 * tile.partitions, -1)
    return values.reshape(tile.partitions, -1)


def nc_transpose(call: BoundCall) -> None:
    """`dst[f, p] = data[p, f]`. On trn1's TensorE it is a product with the identity."""
    dst: NkiTensor = call["dst"]
    data: NkiTensor = call["data"]
    if call.engine == "tensor" and call.target.generation < 3:
        values = call.f32("data")
        dst.store_f32(product(values, np.eye(data.partitions, dtype=np.float32)), matmul=True)
        return
    dst.store(call.raw("data").T, matmul=call.engine == "tensor")
