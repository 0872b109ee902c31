"""Selection by a ramp, a range or a predicate tile."""

from __future__ import annotations

import numpy as np

from backends.simulator.faults import Fault
from backends.simulator.instructions.accumulators import accumulate, read_out
from backends.simulator.instructions.alu import apply
from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.generate import ramp
from backends.simulator.numerics import round_to
from backends.simulator.tensor import NkiTensor

_FP32_MIN = np.finfo(np.float32).min


def affine_select(call: BoundCall) -> None:
    """`on_true_tile` where `cmp_op(ramp, 0)` holds, else `on_false_value`."""
    dst: NkiTensor = call["dst"]
    on_true: NkiTensor = call["on_true_tile"]
    affine = ramp(call, dst.partitions)
    chosen = apply(call["cmp_op"], affine, np.int32(0)) != 0
    values = call.raw("on_true_tile")
    if on_true.dtype != dst.dtype:
        values = round_to(values.astype(np.float32), dst.dtype, dst.cell)
    otherwise = np.array([call["on_false_value"]], dtype=np.float32)
    dst.store(np.where(chosen, values, round_to(otherwise, dst.dtype, dst.cell)))


def range_select(call: BoundCall) -> None:
    """`on_true_tile` where the index is in range, else the most negative fp32; running maximum."""
    data: NkiTensor = call["on_true_tile"]
    values = call.f32("on_true_tile")
    index = np.float32(call["range_start"]) + np.arange(values.shape[1], dtype=np.float32)
    inside = (apply(call["comp_op0"], index, call.operand("bound0")) != 0) & (
        apply(call["comp_op1"], index, call.operand("bound1")) != 0
    )
    selected = np.where(inside, values, _FP32_MIN)
    accumulate(call, data, selected, call["reduce_op"])
    call.store("dst", selected)
    read_out(call, data)


def select_reduce(call: BoundCall) -> None:
    """`on_true` where the predicate holds, else `on_false`; running maximum."""
    data: NkiTensor = call["on_true"]
    chosen = (call.raw("predicate") != 0) ^ call["reverse_pred"]
    selected = np.where(chosen, call.f32("on_true"), call.operand("on_false"))
    accumulate(call, data, selected, call["reduce_op"])
    call.store("dst", selected)
    read_out(call, data)


def random_draw() -> Fault:
    """Return the fault of what would need a random stream."""
    message = (
        "`dropout` with a probability between 0 and 1 draws from an undocumented random stream"
    )
    return Fault("S109", message)


def dropout(call: BoundCall) -> None:
    """Zeros with probability `prob`; only the certain cases 0 and 1 have a defined result."""
    dst: NkiTensor = call["dst"]
    probability = call.operand("prob")
    if not bool(np.isin(probability, (0.0, 1.0)).all()):
        raise random_draw()
    values = call.raw("data")
    dst.store(np.where(probability == 1.0, values.dtype.type(0), values))
