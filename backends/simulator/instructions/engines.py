"""Which engine runs a call: the first use of the row that fits, or the one that was asked for."""

from __future__ import annotations

from backends.isa.schema import Engine, EngineUse
from backends.isa.targets import GENERATION_NAMES
from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall, space


def choose(call: BoundCall) -> Engine:
    """The engine that executes `call`.

    Raises Fault S307 (S303 when only a later target could) naming what stands in the way.
    """
    requested: str = call.values.get("engine", "unknown")
    if call.row.engines[0].engine == "dma":
        return "dma"  # its `engine` names the queue that triggers it: see `dma_rules`
    uses = [
        use
        for use in call.row.engines
        if (use.engine == requested if requested != "unknown" else not use.on_request)
    ]
    obstacles = []
    for use in uses:
        obstacle = _obstacle(call, use)
        if obstacle is None:
            return use.engine
        obstacles.append(obstacle)
    if not uses:
        engines = ", ".join(dict.fromkeys(use.engine for use in call.row.engines))
        raise Fault(
            "S307", f"`{call.row.name}` does not run on {requested}", help=f"it runs on {engines}"
        )
    # A use that the target has says more than one that came later.
    code, message = min(obstacles, key=lambda obstacle: obstacle[0] == "S303")
    raise Fault(code, f"`{call.row.name}` cannot run: {message}")


def _obstacle(call: BoundCall, use: EngineUse) -> tuple[str, str] | None:
    """Why `use` does not fit, as fault code and text; None when it does."""
    if call.target.generation not in use.generations:
        names = ", ".join(GENERATION_NAMES[generation] for generation in use.generations)
        return "S303", f"on {use.engine} it exists on {names}, not on {call.target.name}"
    tiles = call.tiles()
    written = call.written()
    for name, tile in tiles.items():
        narrower = use.out_spaces if name in written else use.in_spaces
        allowed = use.spaces if narrower is None else narrower
        if space(tile) not in allowed:
            where = " or ".join(sorted(allowed))
            return "S307", f"{use.engine} needs `{name}` in {where}, it is in {tile.memory}"
    for name, tile in tiles.items():
        if use.dtypes is not None and tile.dtype.name not in use.dtypes:
            return "S307", f"{use.engine} does not take `{name}` of type {tile.dtype}"
    operators = call.operators()
    if use.forms is not None and operators not in use.forms:
        forms = ", ".join(" then ".join(op for op in form if op is not None) for form in use.forms)
        return "S307", f"{use.engine} takes only {forms}"
    for operator in operators:
        if use.operators is not None and operator is not None and operator not in use.operators:
            return "S307", f"{use.engine} has no operator `{operator}`"
    return None
