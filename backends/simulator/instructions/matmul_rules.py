"""Rules of `nc_matmul` and of transposes on TensorE."""

from __future__ import annotations

from backends.isa.dtypes import DTYPES, FP8, FP8_E4, FP32_FAMILY
from backends.isa.targets import GENERATION_NAMES, PARTITIONS
from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall
from backends.simulator.tensor import NkiTensor


def check_matmul(call: BoundCall) -> None:
    """Types, modes, tiling and placement of a matmul (S303, S316, S317, S318)."""
    _types(call)
    _double_row(call)
    _tiling(call)
    _one_bank(call)


def check_transpose(call: BoundCall) -> None:
    """A transpose on TensorE writes inside one bank like a matmul."""
    if call.engine == "tensor":
        _one_bank(call)


def _types(call: BoundCall) -> None:
    dst, stationary, moving = (call[name] for name in ("dst", "stationary", "moving"))
    names = {stationary.dtype.name, moving.dtype.name}
    shown = {"stationary": stationary.dtype, "moving": moving.dtype}
    for name in names:
        first = DTYPES[name].matmul_from
        if first is None or first > call.target.generation:
            since = "" if first is None else f" before {GENERATION_NAMES[first]}"
            raise Fault("S303", f"matmul operands cannot be {name}{since}", values=shown)
    if names & FP32_FAMILY and not names <= FP32_FAMILY:
        raise Fault(
            "S317",
            f"`stationary` is {stationary.dtype} and `moving` {moving.dtype}",
            values=shown,
            help="bring both to float32 or both to 16 bits with `nisa.tensor_copy`",
        )
    if names >= FP8_E4:
        raise Fault("S317", "float8_e4m3 and float8_e4m3fn cannot be multiplied", values=shown)
    if call["is_transpose"]:
        if dst.dtype != moving.dtype and dst.dtype != stationary.dtype:
            raise Fault(
                "S317",
                f"`dst` of a transpose has the operands' type {stationary.dtype}, not {dst.dtype}",
            )
        return
    allowed = ("float32",) if call.target.generation < 4 else ("float32", "bfloat16")
    if dst.dtype.name not in allowed:
        raise Fault(
            "S317",
            f"`dst` of a matmul must be {' or '.join(allowed)} on {call.target.name}, it is "
            f"{dst.dtype}",
        )


def _double_row(call: BoundCall) -> None:
    if call["perf_mode"] != "double_row":
        return
    if call.target.generation < 3:
        raise Fault("S303", f"`double_row` exists from trn2 on, not on {call.target.name}")
    names = {call["stationary"].dtype.name, call["moving"].dtype.name}
    if not names <= FP8:
        raise Fault("S318", f"`double_row` takes fp8 operands, not {', '.join(sorted(names))}")
    if call["is_transpose"] or (call["tile_size"] and call["tile_size"][1] != PARTITIONS):
        raise Fault("S318", "`double_row` goes with neither column tiling nor `is_transpose`")


def _tiling(call: BoundCall) -> None:
    stationary: NkiTensor = call["stationary"]
    moving: NkiTensor = call["moving"]
    dst: NkiTensor = call["dst"]
    size, position = call["tile_size"], call["tile_position"]
    if bool(size) != bool(position):
        raise Fault("S318", "`tile_size` and `tile_position` must be given together")
    if not size:
        _row_start(call, stationary.partition_start, 0)
        return
    columns = stationary.free_size // (2 if call["perf_mode"] == "double_row" else 1)
    for extent, start, needed, what in zip(
        size, position, (stationary.partitions, columns), ("row", "column"), strict=True
    ):
        if needed > extent:
            raise Fault("S318", f"{needed} {what}s do not fit a tile of {extent}")
        if start % extent or start + extent > PARTITIONS:
            raise Fault(
                "S318",
                f"{what} position {start} must be a multiple of {extent} that ends by {PARTITIONS}",
            )
    _row_start(call, moving.partition_start, position[0])
    if position[1] != dst.partition_start and columns < PARTITIONS:
        raise Fault(
            "S318",
            f"column position {position[1]} writes PSUM partitions from {position[1]}, `dst` "
            f"starts at {dst.partition_start}",
        )


def _row_start(call: BoundCall, start: int, row: int) -> None:
    """Operands sit at the partitions that feed the rows of the array they use."""
    if call.options.matmul_operand_start == "zero" and start != row:
        raise Fault(
            "S310",
            f"matmul operands start at partition {start}, the array rows they feed at {row}",
            help="copy the operand to the partitions of its rows",
        )


def _one_bank(call: BoundCall) -> None:
    dst: NkiTensor = call["dst"]
    if not call.target.matmul_in_one_bank:
        return
    first, last = dst.banks()
    if first != last:
        raise Fault(
            "S316",
            f"`dst` reaches from bank {first} to bank {last} of its tensor",
            values={"dst": tuple(dst.shape), "type": dst.dtype},
            help="split the moving operand so that each product stays inside 2048 bytes",
        )
