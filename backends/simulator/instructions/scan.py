"""Recurrences along the free axis, with fp32 state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.isa.operators import OPERATORS
from backends.simulator.instructions.accumulators import lanes
from backends.simulator.instructions.alu import apply, stage
from backends.simulator.instructions.call import BoundCall
from backends.simulator.tensor import NkiTensor

_RUNNING: dict[str, Any] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
"""Operators whose running value numpy computes one element after the other."""


def tensor_tensor_scan(call: BoundCall) -> None:
    """`r[i] = op1(op0(data0[i], r[i-1]), data1[i])`; the reverse flags swap the operands."""
    data0, data1 = call.f32("data0").T.copy(), call.f32("data1").T.copy()
    state: Any = np.broadcast_to(call.operand("initial"), (data0.shape[1], 1)).reshape(-1)
    result = np.empty_like(data0)
    for i in range(len(data0)):
        state = stage(call["op0"], data0[i], state, call["reverse0"])
        state = stage(call["op1"], state, data1[i], call["reverse1"])
        result[i] = state
    call.store("dst", result.T)


def tensor_scalar_cumulative(call: BoundCall) -> None:
    """`reg = op1(op0(src[i], imm0), reg); dst[i] = reg`; the register survives the call."""
    src: NkiTensor = call["src"]
    values = apply(call["op0"], call.f32("src"), call.operand("imm0"))
    registers = lanes(call, src)
    start = _start(call, registers)
    running = _run(call["op1"], values, start)
    registers[:] = running[:, -1]
    call.store("dst", running)


def _start(call: BoundCall, registers: NDArray[Any]) -> NDArray[Any]:
    if call["reduce_cmd"] == "reduce":
        return registers.copy()
    if call["reduce_cmd"] == "load_reduce":
        return np.broadcast_to(call.operand("imm1"), (len(registers), 1)).reshape(-1)
    return np.full(len(registers), OPERATORS[call["op1"]].identity, dtype=np.float32)


def _run(operator: str, values: NDArray[Any], start: NDArray[Any]) -> NDArray[Any]:
    if operator in _RUNNING:
        with np.errstate(all="ignore"):
            chain = np.concatenate([start[:, None], values], axis=1)
            return np.asarray(_RUNNING[operator].accumulate(chain, axis=1)[:, 1:])
    result = np.empty_like(values)
    state: Any = start
    for i in range(values.shape[1]):
        state = apply(operator, values[:, i], state)
        result[:, i] = state
    return result
