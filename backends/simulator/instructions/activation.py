"""ScalarE functions with their fused scale, bias and row sums; the exponential of VectorE."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.isa.activations import ACTIVATIONS, PRELU
from backends.simulator.faults import Fault
from backends.simulator.instructions.accumulators import accumulate, read_out
from backends.simulator.instructions.alu import stage
from backends.simulator.instructions.call import BoundCall
from backends.simulator.numerics import sin_with_extrapolation
from backends.simulator.tensor import NkiTensor

Array = NDArray[Any]


def evaluate(call: BoundCall, name: str, values: Array) -> Array:
    """The ScalarE function `name` of fp32 `values`; reports inputs outside its valid range."""
    function = ACTIVATIONS[name]
    if name == "sin":
        return sin_with_extrapolation(values)
    _check_range(call, name, values)
    with np.errstate(all="ignore"):
        return function.meaning(values)


def _check_range(call: BoundCall, name: str, values: Array) -> None:
    function = ACTIVATIONS[name]
    if function.valid_magnitude is not None:
        (low, high), checked = function.valid_magnitude, np.abs(values)
    elif np.isfinite(function.valid[0]):
        (low, high), checked = function.valid, values
    else:
        return
    outside = (checked < low) | (checked > high)
    if not outside.any():
        return
    example = float(values[outside].flat[0])
    message = f"`nl.{name}` of {example:.6g} is outside its valid range {low:.4g} to {high:.4g}"
    if call.options.activation_range == "fault":
        raise Fault("S432", message, values={"elements outside": int(outside.sum())})
    call.machine.warn("S432", f"`nl.{name}` gets values outside {low:.4g} to {high:.4g}")


def activation(call: BoundCall) -> None:
    """`op(data * scale + bias)`, and the row sums of the fp32 result when asked for."""
    data: NkiTensor = call["data"]
    values = call.f32("data")
    with np.errstate(all="ignore"):
        scale = call.operand("scale")
        if isinstance(call["scale"], NkiTensor) or scale != 1:
            values = values * scale
        if call["bias"] is not None:
            values = values + call.operand("bias")
    result = evaluate(call, call["op"], values)
    accumulate(call, data, result, call["reduce_op"])
    call.store("dst", result)
    read_out(call, data)


def activate2(call: BoundCall) -> None:
    """`op((data op0 imm0) op1 imm1)`, and a fold of the fp32 result when asked for."""
    data: NkiTensor = call["data"]
    values: Array = call.f32("data")
    for operator, name, reverse in (
        (call["op0"], "imm0", call["reverse0"]),
        (call["op1"], "imm1", call["reverse1"]),
    ):
        if operator != "bypass":
            values = stage(operator, values, call.operand(name), reverse)
    if call["op"] == PRELU:
        result = np.where(values >= 0, values, np.float32(call["relu_param"]) * values)
    else:
        result = evaluate(call, call["op"], values)
    accumulate(call, data, result, call["reduce_op"])
    call.store("dst", result)
    read_out(call, data)


def exponential(call: BoundCall) -> None:
    """`exp(src - max_value)` with a running row sum."""
    src: NkiTensor = call["src"]
    with np.errstate(all="ignore"):
        result = np.exp(call.f32("src") - call.operand("max_value"))
    accumulate(call, src, result, "add", call.operand("reduce_init"))
    call.store("dst", result)
    read_out(call, src)
