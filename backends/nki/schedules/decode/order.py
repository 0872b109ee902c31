"""The order inside the phases that have a choice: what is loaded first, what is computed first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.nki.program.mentions import used
from backends.nki.program.nodes import Allocate, Statement, Tile
from backends.nki.schedules.ordering import ordered

if TYPE_CHECKING:
    from backends.nki.schedules.decode.phases import Phases

FIRST_ARRIVAL, NEXT_ARRIVAL = 1220.0, 500.0
"""Nanoseconds until the first vector is there, and between two of them on one queue."""
_AFTER = {
    "read_head": 4000.0,
    "spread_decay": 3000.0,
    "group_deltas": 3000.0,
    "group_outputs": 1000.0,
    "finish_rows": 500.0,
}
"""Nanoseconds of work that follow a phase for the first tile of rows, roughly."""


def order_loads(phases: Phases) -> None:
    """Bring in first what most of the work waits for."""
    block = phases.blocks["load_vectors"]
    chunks: list[tuple[Tile, list[Statement]]] = []
    for statement in block.statements:
        if isinstance(statement, Allocate):
            chunks.append((statement.tile, [statement]))
        else:
            chunks[-1][1].append(statement)
    rank = {leaf: place for place, leaf in enumerate(phases.step.loads)}
    chunks.sort(key=lambda chunk: rank[phases.selector.loaded[chunk[0]]])
    block.statements = [statement for _, chunk in chunks for statement in chunk]


def order_preparation(phases: Phases) -> None:
    """Let gates and norms fill each other's gaps; what deltas need comes first."""
    block, others = phases.blocks["prepare_rows"], dict(phases.blocks)
    del others["prepare_rows"]
    order = {leaf: place for place, leaf in enumerate(phases.step.loads)}
    arrivals = {
        tile.name: FIRST_ARRIVAL + NEXT_ARRIVAL * order[leaf]
        for tile, leaf in phases.selector.loaded.items()
    }
    urgent = {
        name: _AFTER[phase]
        for phase in (
            "group_outputs",
            "finish_rows",
            "read_head",
            "spread_decay",
            "group_deltas",
        )
        for name in used(others[phase].statements)
    }
    block.statements = ordered(block.statements, phases.target, arrivals, urgent)
