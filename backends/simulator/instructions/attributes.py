"""What timing depends on beyond the accesses, as attributes of a trace record."""

from __future__ import annotations

from backends.isa.schema import Kind
from backends.isa.trace import Attribute
from backends.simulator.instructions.call import BoundCall

_WORDS = frozenset({Kind.OPERATOR, Kind.FUNCTION})
_NUMBERS = ("value", "n", "dma_engine")
"""Further arguments that timing asks for: of memset, topk and sendrecv."""
_DESCRIPTOR_WRITERS = {"swdge": "gpsimd"}
"""Which engine issues a DMA whose call does not name one."""


def attributes(call: BoundCall) -> dict[str, Attribute]:
    """Operators by slot, flags that are on, modes that differ from the default, DMA details."""
    found: dict[str, Attribute] = {}
    for param in call.row.params:
        value = call.values[param.name]
        if param.kind in _WORDS and value is not None:
            found[param.name] = value
        elif param.kind is Kind.FLAG and value and param.name != "accumulate":
            found[param.name] = True
    found |= {name: call.values[name] for name in _NUMBERS if name in call.row.by_name}
    if call.values.get("perf_mode", "none") != "none":
        found["perf_mode"] = call["perf_mode"]
    if call.values.get("reduce_res") is not None:
        found["reduce"] = True
    if call.engine == "dma" and call.row.family == "dma":
        found |= _dma(call)
    return found


def _dma(call: BoundCall) -> dict[str, Attribute]:
    mode = call.values.get("dge_mode", "unknown")
    engine = call.values.get("engine", "unknown")
    queue = engine if engine != "unknown" else _DESCRIPTOR_WRITERS.get(mode)
    accesses = [tile.dynamic for tile in call.tiles().values() if tile.dynamic is not None]
    return {
        "dge_mode": mode,
        "queue": queue,
        "indirect": any(access.kind != "scalar" for access in accesses),
        "dynamic": any(access.kind == "scalar" for access in accesses),
        "transpose": call.row.name == "dma_transpose",
    }
