"""Equal partitions and element counts: what the shape rules of many instructions ask."""

from __future__ import annotations

from collections.abc import Iterable

from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall
from backends.simulator.tensor import NkiTensor


def equal_partitions(call: BoundCall, names: Iterable[str]) -> None:
    tiles = [(name, call.values[name]) for name in names]
    first_name, first = tiles[0]
    for name, tile in tiles[1:]:
        if tile.partitions != first.partitions:
            raise Fault(
                "S309",
                f"`{first_name}` and `{name}` of `{call.row.name}` cover {first.partitions} and "
                f"{tile.partitions} partitions",
                values={first_name: tuple(first.shape), name: tuple(tile.shape)},
            )


def expect_free(call: BoundCall, name: str, expected: int) -> None:
    tile: NkiTensor = call.values[name]
    if tile.free_size != expected:
        raise Fault(
            "S312",
            f"`{name}` of `{call.row.name}` must have {expected} elements per partition, it has "
            f"{tile.free_size}",
        )
