"""Reductions along the free axes or over the partitions."""

from __future__ import annotations

import numpy as np

from backends.isa.operators import BITVEC
from backends.simulator.instructions.accumulators import accumulate, read_out
from backends.simulator.instructions.alu import fold, stage
from backends.simulator.instructions.call import BoundCall
from backends.simulator.tensor import NkiTensor


def tensor_reduce(call: BoundCall) -> None:
    """Fold the trailing free axes of `data`; `negate` changes the sign of the result."""
    dst: NkiTensor = call["dst"]
    bits = call["op"] in BITVEC
    values = call.raw("data") if bits else call.f32("data")
    folded = fold(call["op"], values.reshape(dst.partitions, dst.free_size, -1))
    if call["negate"]:
        folded = -folded
    if bits:
        dst.store(folded)
    else:
        call.store("dst", folded)


def tensor_partition_reduce(call: BoundCall) -> None:
    """Fold over the partitions of `data` into one partition."""
    dst: NkiTensor = call["dst"]
    bits = call["op"] in BITVEC
    values = call.raw("data") if bits else call.f32("data")
    folded = fold(call["op"], np.ascontiguousarray(values.T))
    if bits:
        dst.store(folded.astype(dst.dtype.numpy, copy=False))
    else:
        call.store("dst", folded)


def tensor_scalar_reduce(call: BoundCall) -> None:
    """`dst = data op0 operand0`, folded into the accumulator before it is rounded to `dst`."""
    data: NkiTensor = call["data"]
    values = stage(call["op0"], call.f32("data"), call.operand("operand0"), False)
    initial = None if call["reduce_init"] is None else call.operand("reduce_init")
    accumulate(call, data, values, call["reduce_op"], initial)
    call.store("dst", values)
    read_out(call, data, negate=call["reduce_res_negate"])
