"""Arithmetic on tiles: one or two operator stages in fp32, or bit operators on integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.isa.operators import BITVEC
from backends.simulator.instructions.alu import apply, stage
from backends.simulator.instructions.call import BoundCall
from backends.simulator.tensor import NkiTensor


def _store_integers(call: BoundCall, values: NDArray[Any]) -> None:
    dst: NkiTensor = call["dst"]
    dst.store(values.astype(dst.dtype.numpy, copy=False))


def tensor_tensor(call: BoundCall) -> None:
    """`data1 op data2`."""
    operator = call["op"]
    native_integers = call.engine == "gpsimd" and call.runs_on_integers()
    if operator in BITVEC or native_integers:
        data1, data2 = call.raw("data1"), call.raw("data2")
        _store_integers(call, apply(operator, data1, data2.astype(data1.dtype, copy=False)))
        return
    call.store("dst", apply(operator, call.f32("data1"), call.f32("data2")))


def tensor_scalar(call: BoundCall) -> None:
    """`(data op0 operand0) op1 operand1`, each stage reversible."""
    bits = call["op0"] in BITVEC
    value: Any = call.raw("data") if bits else call.f32("data")
    for slot, name, reverse in (
        ("op0", "operand0", "reverse0"),
        ("op1", "operand1", "reverse1"),
    ):
        if call[slot] is not None:
            operand = _bit_operand(call, name, value) if bits else _operand(call, name)
            value = stage(call[slot], value, operand, call[reverse])
    if bits:
        _store_integers(call, value)
    else:
        call.store("dst", value)


def _operand(call: BoundCall, name: str) -> Any:
    return np.float32(0) if call[name] is None else call.operand(name)


def _bit_operand(call: BoundCall, name: str, data: NDArray[Any]) -> Any:
    operand = call[name]
    if isinstance(operand, NkiTensor):
        return operand.load().reshape(-1, 1).astype(data.dtype, copy=False)
    # A mask such as 0xFFFFFFFF is written as an unsigned number whatever the tile's sign.
    bits = 8 * data.dtype.itemsize
    pattern = np.array([int(operand or 0) % (1 << bits)], dtype=np.uint64)
    return pattern.astype(f"u{data.dtype.itemsize}").view(data.dtype)


def scalar_tensor_tensor(call: BoundCall) -> None:
    """`(data op0 operand0) op1 operand1` with a full tile as the second operand."""
    value = stage(call["op0"], call.f32("data"), call.operand("operand0"), call["reverse0"])
    call.store("dst", stage(call["op1"], value, call.f32("operand1"), call["reverse1"]))


def reciprocal(call: BoundCall) -> None:
    """`1 / data`."""
    call.store("dst", apply("reciprocal", call.f32("data"), None))
