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
from backends.isa.targets import QUADRANT
from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.dma_rules import (
    check_dma_compute,
    check_dma_copy,
    check_dma_transpose,
)
from backends.simulator.instructions.matmul_rules import check_matmul, check_transpose
from backends.simulator.instructions.select import random_draw
from backends.simulator.instructions.shape_rules import KEEP
from backends.simulator.tensor import NkiTensor

_MAX_PATTERN = 4
_MAX8_RANK = 3
_INT32 = (-(2**31), 2**31 - 1)
_EXACT = 2**24
"""fp32 tells integers apart below this."""
_FP32_MAX = float(np.finfo(np.float32).max) * (1 + 2.0**-25)
"""What rounds to a finite fp32 number."""
_FP32_KINDS = frozenset({Kind.NUMBER, Kind.OPERAND, Kind.IN_OR_NUMBER})
_MASK_LENGTH = QUADRANT
_GATHER_WIDTHS = (1, 2, 4, 8, 16, 32)
_GATHER_INDICES = 4096
_GPSIMD_DMA_BYTES = {4: 1024, 2: 512, 1: 256}
"""Bytes per partition that `dma_engine.gpsimd_dma` moves, by element size."""


def _old_reciprocal(call: BoundCall) -> None:
    if call["op"] == "reciprocal" and call["bias"] is not None and call.target.generation < 3:
        raise Fault("S303", f"`nl.reciprocal` takes no `bias` on {call.target.name}")


def _maxima(call: BoundCall) -> None:
    src: NkiTensor = call["src"]
    if src.ndim > _MAX8_RANK:
        raise Fault("S314", f"`src` of `max8` has rank {src.ndim}; at most {_MAX8_RANK} is allowed")


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
        _report(call, call.options.column_types, "S305", message)


def _report(call: BoundCall, severity: str, code: str, message: str) -> None:
    if severity == "fault":
        raise Fault(code, message)
    call.machine.warn(code, message)


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
        raise Fault("S326", f"a {dst.dtype} tile can only be set to 0, not {value!r}")
    if not dst.dtype.is_integer:
        return
    if not isinstance(value, (int, np.integer)):
        raise Fault(
            "S326",
            f"a {dst.dtype} tile takes an integer, not {value!r}",
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


def _commands(*allowed: str) -> Callable[[BoundCall], None]:
    def rule(call: BoundCall) -> None:
        command = call["reduce_cmd"]
        if command not in allowed:
            raise Fault(
                "S322",
                f"`{call.row.name}` does not take `reduce_cmd.{command}`",
                help=f"it takes {', '.join(allowed)}",
            )

    return rule


def _initial(name: str, unset: object) -> Callable[[BoundCall], None]:
    """`load_reduce` needs its start value and nothing else takes it."""

    def rule(call: BoundCall) -> None:
        loads = call["reduce_cmd"] == "load_reduce"
        value = call[name]
        given = isinstance(value, NkiTensor) or value != unset
        if given and not loads:
            raise Fault("S322", f"`{name}` is read only with `reduce_cmd.load_reduce`")
        if loads and value is None:
            raise Fault("S322", f"`reduce_cmd.load_reduce` needs `{name}`")

    return rule


def _reduction_needs_operator(call: BoundCall) -> None:
    if call["reduce_op"] is None and (
        call["reduce_res"] is not None or call["reduce_cmd"] in ("reduce", "reset_reduce")
    ):
        raise Fault("S322", f"a reduction in `{call.row.name}` needs `reduce_op`")


def _no_reverse(call: BoundCall) -> None:
    if call["reverse0"]:
        raise Fault("S322", f"`reverse0` of `{call.row.name}` is not supported by the hardware yet")


def _pairs(call: BoundCall) -> None:
    pair = (call["op0"], call["op1"])
    if pair not in ACTIVATE2_PAIRS:
        known = ", ".join(f"({a}, {b})" for a, b in sorted(ACTIVATE2_PAIRS))
        raise Fault("S306", f"`activate2` does not take the pair {pair}", help=f"pairs: {known}")


def _mask(call: BoundCall) -> None:
    mask = call["shuffle_mask"]
    legal = all(0 <= entry < QUADRANT or entry == KEEP for entry in mask)
    if len(mask) != _MASK_LENGTH or not legal:
        raise Fault(
            "S327",
            f"`shuffle_mask` must have {_MASK_LENGTH} entries of 0..31 or {KEEP}, it is {mask}",
        )


def _local_gather(call: BoundCall) -> None:
    width, valid = call["num_elem_per_idx"], call["num_valid_indices"]
    index: NkiTensor = call["index"]
    if width not in _GATHER_WIDTHS:
        raise Fault("S314", f"`num_elem_per_idx` must be one of {_GATHER_WIDTHS}, it is {width}")
    available = index.free_size * 16
    count = available if valid is None else valid
    if not 0 < count <= min(available, _GATHER_INDICES):
        raise Fault(
            "S314",
            f"{count} indices per group of 16 partitions; 1 to {min(available, _GATHER_INDICES)} "
            "are possible",
        )
    if count * width != call["dst"].free_size:
        # The 0.6 release notes list wrong results for any other size.
        raise Fault(
            "S312",
            f"`dst` must have {count * width} elements per partition, it has "
            f"{call['dst'].free_size}",
            help="give `num_valid_indices` and `num_elem_per_idx` and size `dst` to their product",
        )


def _dropout(call: BoundCall) -> None:
    """A column of probabilities is looked at when it is read."""
    probability = call["prob"]
    if not isinstance(probability, NkiTensor) and probability not in (0, 1):
        raise random_draw()


def _two_cores(call: BoundCall) -> None:
    if call.machine.num_programs != 2:
        raise Fault(
            "S325",
            f"`{call.row.name}` needs a launch on two cores, this one has "
            f"{call.machine.num_programs}",
        )


def _sendrecv(call: BoundCall) -> None:
    src: NkiTensor = call["src"]
    limit = _GPSIMD_DMA_BYTES.get(src.dtype.bytes, 0)
    size = src.free_size * src.dtype.bytes
    if call["dma_engine"] == "gpsimd_dma" and size > limit:
        raise Fault(
            "S314",
            f"`gpsimd_dma` moves at most {limit} bytes per partition of {src.dtype}, not {size}",
        )
    other = 1 - call.machine.program_id
    if (call["send_to_rank"], call["recv_from_rank"]) != (other, other):
        raise Fault(
            "S325",
            f"core {call.machine.program_id} exchanges with core {other}",
            values={
                "send_to_rank": call["send_to_rank"],
                "recv_from_rank": call["recv_from_rank"],
            },
        )


def _barrier(call: BoundCall) -> None:
    if tuple(sorted(call["cores"])) != (0, 1):
        raise Fault("S325", f"`cores` must be (0, 1), it is {call['cores']}")
    memory = call["data"].memory
    if memory != "shared_hbm":
        message = f"`data` of `core_barrier` should be in shared HBM, it is in {memory}"
        _report(call, call.options.barrier_data, "S304", message)


_RULES: dict[str, tuple[Callable[[BoundCall], None], ...]] = {
    "nc_matmul": (check_matmul,),
    "nc_transpose": (check_transpose,),
    "dma_copy": (check_dma_copy,),
    "dma_transpose": (check_dma_transpose,),
    "dma_compute": (check_dma_compute,),
    "sendrecv": (_two_cores, _sendrecv),
    "core_barrier": (_two_cores, _barrier),
    "scalar_tensor_tensor": (_column_type,),
    "tensor_scalar": (_unary_operand, _operand_types),
    "memset": (_memset,),
    "max8": (_maxima,),
    "iota": (_pattern,),
    "affine_select": (_pattern,),
    "range_select": (_commands("reset_reduce", "reduce", "idle"), _range_constant),
    "select_reduce": (_commands("reset_reduce", "reduce", "idle"),),
    "tensor_scalar_reduce": (
        _unary_operand,
        _no_reverse,
        _commands("reset_reduce", "reduce", "load_reduce"),
        _initial("reduce_init", None),
    ),
    "tensor_scalar_cumulative": (
        _unary_operand,
        _commands("reset_reduce", "reduce", "load_reduce"),
        _initial("imm1", None),
    ),
    "exponential": (
        _commands("idle", "reset_reduce", "reduce", "load_reduce"),
        _initial("reduce_init", 0.0),
    ),
    "activation": (
        _old_reciprocal,
        _commands("idle", "reset", "reduce", "reset_reduce"),
        _reduction_needs_operator,
    ),
    "activation_reduce": (_old_reciprocal,),
    "activate2": (
        _commands("idle", "reset", "reduce", "reset_reduce"),
        _reduction_needs_operator,
        _pairs,
    ),
    "nc_stream_shuffle": (_mask,),
    "local_gather": (_local_gather,),
    "dropout": (_dropout,),
}
