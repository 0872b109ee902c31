"""Rules of trn3 indirection (`.indirect`): who may take it, and where index and data begin."""

from __future__ import annotations

from collections.abc import Mapping

from backends.isa.dtypes import FP8
from backends.isa.targets import QUADRANT
from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall
from backends.simulator.tensor import NkiTensor

INDIRECT: dict[str, frozenset[str]] = {
    "nc_matmul": frozenset({"dst", "stationary", "moving"}),
    "tensor_tensor": frozenset({"dst", "data1"}),
    "tensor_scalar": frozenset({"dst", "data"}),
    "tensor_reduce": frozenset({"dst", "data"}),
    "tensor_copy": frozenset({"dst", "src"}),
    "tensor_copy_predicated": frozenset({"dst", "predicate"}),
    "tensor_scalar_reduce": frozenset({"dst", "data"}),
    "tensor_scalar_cumulative": frozenset({"dst", "src"}),
    "activation": frozenset({"dst", "data"}),
    "activation_reduce": frozenset({"dst", "data"}),
    "activate2": frozenset({"dst", "data"}),
    "exponential": frozenset({"dst", "src"}),
}
"""Operands that may be indirect on trn3, from the reference of `NkiTensor.indirect`."""
_GROUPS = {"tensor": 32}
"""Partitions that share one list of columns, by engine; 16 elsewhere."""
_GROUP = 16
_MATMUL_TYPES = frozenset({"float16", "bfloat16"}) | FP8


def check_indirect(call: BoundCall) -> None:
    """Targets, starts, lists and modes of indirect operands (S303, S310, S311, S312, S318)."""
    indirect = {
        name: tile
        for name, tile in call.tiles().items()
        if tile.dynamic is not None and tile.dynamic.kind == "columns"
    }
    if not indirect:
        return
    if call.target.generation < 4:
        raise Fault("S303", f"`.indirect` exists on trn3, not on {call.target.name}")
    for name, tile in indirect.items():
        _check_index(call, name, tile)
    dst = indirect.get("dst")
    if call.engine == "scalar" and dst is not None and dst.memory == "psum":
        raise Fault("S307", "ScalarE does not scatter into PSUM")
    if call.row.name == "nc_matmul":
        _check_matmul(call, indirect)


def _check_index(call: BoundCall, name: str, tile: NkiTensor) -> None:
    assert tile.dynamic is not None
    index = tile.dynamic.index
    assert isinstance(index, NkiTensor)
    start = index.partition_start
    if start % QUADRANT:
        raise Fault(
            "S310",
            f"the index of `{name}` starts at partition {start}, not at a quadrant",
            help=f"use a multiple of {QUADRANT}",
        )
    beside = [tile] if name != "dst" else [t for t in call.read().values() if t.memory == "sbuf"]
    for other in beside[:1]:
        if other.partition_start != start:
            raise Fault(
                "S311",
                f"the index of `{name}` starts at partition {start}, the data beside it at "
                f"{other.partition_start}",
            )
    group = min(_GROUPS.get(call.engine, _GROUP), index.partitions)
    listed = group * index.free_size
    if tile.free_size > listed:
        raise Fault(
            "S312",
            f"`{name}` takes {tile.free_size} columns, its index lists {listed} for {group} "
            "partitions",
            help="pass `num_elem`",
        )


def _check_matmul(call: BoundCall, indirect: Mapping[str, NkiTensor]) -> None:
    if call["tile_size"]:
        raise Fault("S318", "an indirect matmul is not tiled")
    if call["is_transpose"] and "moving" in indirect:
        raise Fault("S318", "`moving` of a transpose is not indirect")
    for name in ("stationary", "moving"):
        tile: NkiTensor = call[name]
        if tile.dtype.name not in _MATMUL_TYPES:
            raise Fault(
                "S317",
                f"an indirect matmul takes 16-bit and fp8 operands, `{name}` is {tile.dtype}",
            )
