"""Rules that belong to single instructions: constants, patterns, commands, modes."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod

import numpy as np

from backends.isa.dtypes import PACKED
from backends.isa.operators import OPERATORS
from backends.isa.rows.activation import ACTIVATE2_PAIRS
from backends.isa.schema import Kind
from backends.simulator.faults import Fault
from backends.simulator.instructions import movement_rules, reduction_rules
from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.dma_rules import (
    check_dma_compute,
    check_dma_copy,
    check_dma_transpose,
)
from backends.simulator.instructions.matmul_rules import check_matmul, check_transpose
from backends.simulator.instructions.select import random_draw
from backends.simulator.tensor import NkiTensor

_MAX_PATTERN = 4
_INT32 = (-(2**31), 2**31 - 1)
_EXACT = 2**24
"""fp32 tells integers apart below this."""
_FP32_MAX = float(np.finfo(np.float32).max) * (1 + 2.0**-25)
"""What rounds to a finite fp32 number."""
_FP32_KINDS = frozenset({Kind.NUMBER, Kind.OPERAND, Kind.IN_OR_NUMBER})


def _old_reciprocal(call: BoundCall) -> None:
    if call["op"] == "reciprocal" and call["bias"] is not None and call.target.generation < 3:
        raise Fault("S303", f"`nl.reciprocal` takes no `bias` on {call.target.name}")


def check_constants(call: BoundCall) -> None:
    """Numbers are fp32 in the instruction (S326)."""
    for param in call.row.params:
        value = call.values[param.name]
        if type(value) not in (int, float) or param.kind not in _FP32_KINDS:
            continue
        if math.isfinite(value) and abs(value) > _FP32_MAX:
            raise Fault(
                "S326",
                f"`{param.name}` of `{call.row.name}` is {value!r}, beyond the range of fp32",
            )


def check_arguments(call: BoundCall) -> None:
    """The rules of `call`'s own instruction, in the order of the table."""
    if call.row.multi_core:
        movement_rules.two_cores(call)
    for rule in _RULES.get(call.row.name, ()):
        rule(call)


def _unary_operand(call: BoundCall) -> None:
    """A unary operator ignores its operand, which is None or 0; a binary one needs it."""
    for slot, operand in (("op0", "operand0"), ("op0", "imm0"), ("op1", "operand1")):
        operator, value = call.values.get(slot), call.values.get(operand)
        if operand not in call.values:
            continue
        if operator is None and value is not None:
            raise Fault("S301", f"`{operand}` of `{call.row.name}` needs `{slot}`")
        if operator is None:
            continue
        arity = OPERATORS[operator].arity
        if arity == 2 and value is None:
            raise Fault("S301", f"`nl.{operator}` of `{call.row.name}` needs `{operand}`")
        if arity == 1 and (isinstance(value, NkiTensor) or value not in (None, 0)):
            raise Fault("S302", f"`nl.{operator}` has one operand; `{operand}` must be None or 0")


def _operand_types(call: BoundCall) -> None:
    """Arithmetic takes fp32 columns, bit operators take integers (S305)."""
    for slot, name in (("op0", "operand0"), ("op1", "operand1")):
        operator, value = call.values[slot], call.values[name]
        if operator is None or value is None:
            continue
        arithmetic = OPERATORS[operator].group == "arithmetic"
        if isinstance(value, NkiTensor):
            fits = value.dtype.name == "float32" if arithmetic else value.dtype.is_integer
            if not fits:
                wanted = "float32" if arithmetic else "an integer"
                raise Fault(
                    "S305",
                    f"`{name}` of `nl.{operator}` must be {wanted} type, it is {value.dtype}",
                    help="convert the column with `nisa.tensor_copy` first",
                )
        elif not arithmetic and not isinstance(value, (int, np.integer)):
            raise Fault("S326", f"`nl.{operator}` takes an integer, not {value!r}")


def _column_type(call: BoundCall) -> None:
    """A column of another type than fp32, about which the documents disagree (S305)."""
    column = call["operand0"]
    if isinstance(column, NkiTensor) and column.dtype.name != "float32":
        message = f"`operand0` of `{call.row.name}` is {column.dtype}; float32 is the safe type"
        call.report(call.options.column_types, "S305", message)


def _pattern(call: BoundCall) -> None:
    pattern, dst = call["pattern"], call["dst"]
    numbers = (call["offset"], call["channel_multiplier"], *(step for step, _ in pattern))
    if any(not _INT32[0] <= number <= _INT32[1] for number in numbers):
        raise Fault("S323", f"`{call.row.name}` counts in int32, {max(numbers, key=abs)} is beyond")
    count = prod(count for _, count in pattern)
    if not pattern or len(pattern) > _MAX_PATTERN or count != dst.free_size:
        raise Fault(
            "S323",
            f"`pattern` {[list(pair) for pair in pattern]} describes {count} elements, `dst` has "
            f"{dst.free_size} per partition",
        )


def _memset(call: BoundCall) -> None:
    dst, value = call["dst"], call["value"]
    if dst.dtype.name in PACKED and value != 0:
        raise Fault("S326", f"a tile of {dst.dtype} can only be set to 0, not {value!r}")
    if not dst.dtype.is_integer:
        return
    if not isinstance(value, (int, np.integer)):
        raise Fault(
            "S326",
            f"a tile of {dst.dtype} takes an integer, not {value!r}",
            help=f"write `{int(value)}`" if float(value).is_integer() else None,
        )
    if not dst.dtype.minimum <= value <= dst.dtype.maximum:
        raise Fault("S326", f"{value} does not fit into {dst.dtype}")


def _range_constant(call: BoundCall) -> None:
    if call["range_start"] + call["dst"].free_size > _EXACT:
        raise Fault(
            "S326",
            f"`range_select` counts in fp32, which is exact below {_EXACT} only",
            values={"range_start": call["range_start"], "elements": call["dst"].free_size},
        )
    if np.float32(call["on_false_value"]) != np.finfo(np.float32).min:
        raise Fault(
            "S326",
            f"`on_false_value` of `range_select` must be {np.finfo(np.float32).min}, it is "
            f"{call['on_false_value']!r}",
        )


def _pairs(call: BoundCall) -> None:
    pair = (call["op0"], call["op1"])
    if pair not in ACTIVATE2_PAIRS:
        known = ", ".join(f"({a}, {b})" for a, b in sorted(ACTIVATE2_PAIRS))
        raise Fault("S306", f"`activate2` does not take the pair {pair}", help=f"pairs: {known}")


def _dropout(call: BoundCall) -> None:
    """A column of probabilities is looked at when it is read."""
    probability = call["prob"]
    if not isinstance(probability, NkiTensor) and probability not in (0, 1):
        raise random_draw()


_RULES: dict[str, tuple[Callable[[BoundCall], None], ...]] = {
    "nc_matmul": (check_matmul,),
    "nc_transpose": (check_transpose,),
    "dma_copy": (check_dma_copy,),
    "dma_transpose": (check_dma_transpose,),
    "dma_compute": (check_dma_compute,),
    "sendrecv": (movement_rules.sendrecv,),
    "core_barrier": (movement_rules.core_barrier,),
    "scalar_tensor_tensor": (_column_type,),
    "tensor_scalar": (_unary_operand, _operand_types),
    "memset": (_memset,),
    "max8": (reduction_rules.rank_of_maxima,),
    "iota": (_pattern,),
    "affine_select": (_pattern,),
    "range_select": (reduction_rules.commands("reset_reduce", "reduce", "idle"), _range_constant),
    "select_reduce": (reduction_rules.commands("reset_reduce", "reduce", "idle"),),
    "tensor_scalar_reduce": (
        _unary_operand,
        reduction_rules.no_reverse,
        reduction_rules.commands("reset_reduce", "reduce", "load_reduce"),
        reduction_rules.initial_value("reduce_init", None),
    ),
    "tensor_scalar_cumulative": (
        _unary_operand,
        reduction_rules.commands("reset_reduce", "reduce", "load_reduce"),
        reduction_rules.initial_value("imm1", None),
    ),
    "exponential": (
        reduction_rules.commands("idle", "reset_reduce", "reduce", "load_reduce"),
        reduction_rules.initial_value("reduce_init", 0.0),
    ),
    "activation": (
        _old_reciprocal,
        reduction_rules.commands("idle", "reset", "reduce", "reset_reduce"),
        reduction_rules.needs_operator,
    ),
    "activation_reduce": (_old_reciprocal,),
    "activate2": (
        reduction_rules.commands("idle", "reset", "reduce", "reset_reduce"),
        reduction_rules.needs_operator,
        _pairs,
    ),
    "nc_stream_shuffle": (movement_rules.shuffle_mask,),
    "local_gather": (movement_rules.local_gather,),
    "dropout": (_dropout,),
}
