"""Every instruction of `nki.isa`, one row each (rows live by family in `rows/`)."""

from __future__ import annotations

from backends.isa.rows import activation, dma, elementwise, matmul, movement, reduction
from backends.isa.schema import Instruction

INSTRUCTIONS: dict[str, Instruction] = {
    row.name: row
    for family in (matmul, dma, elementwise, reduction, activation, movement)
    for row in family.ROWS
}

ENUMERATIONS: dict[str, dict[str, int]] = {
    "engine": {
        "unknown": 0,
        "tensor": 1,
        "scalar": 2,
        "gpsimd": 3,
        "dma": 4,
        "vector": 5,
        "sync": 6,
    },
    "reduce_cmd": {"idle": 0, "reset": 1, "reduce": 2, "reset_reduce": 3, "load_reduce": 4},
    "dge_mode": {"unknown": 0, "swdge": 1, "hwdge": 2, "none": 3},
    "oob_mode": {"error": 0, "skip": 1},
    "matmul_perf_mode": {"none": 0, "double_row": 1},
    "dma_engine": {"dma": 1, "gpsimd_dma": 2},
    "nc_version": {"gen2": 2, "gen3": 3, "gen4": 4},
}
"""The enumerations of `nki.isa`: member name to value. Arguments are members, never integers."""

ENGINE_ALIASES: dict[str, str] = {
    f"{engine}_engine": engine for engine in ("tensor", "scalar", "gpsimd", "vector")
} | {"unknown_engine": "unknown"}
"""Deprecated module-level names of `nki.isa` for members of `engine`."""
