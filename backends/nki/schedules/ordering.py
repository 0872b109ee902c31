"""The order of independent instructions: list scheduling of a straight piece of a tile program.

Engines take their instructions in program order, so an instruction that waits holds up everything
behind it on its engine. Given what is on its way when the piece starts, instructions are placed
where they can start earliest; of those that could start at once the one with the longest way to go
comes first. Times are rough (a width is a whole row or one column) and decide nothing but order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field

from backends.isa.machine import MACHINES, Machine
from backends.nki.program.build import tiles_of
from backends.nki.program.nodes import (
    Access,
    Allocate,
    Comment,
    Instruction,
    Pattern,
    Statement,
    Token,
    View,
)
from backends.nki.program.numbers import Literal

WIDE = 128
"""Elements per partition that stand for any symbolic width."""


@define(eq=False)
class _Node:
    """An instruction with the comments before it."""

    instruction: Instruction
    comments: list[Statement]
    place: int
    engine: str
    busy: float
    latency: float
    needs: set[int] = field(factory=set)
    urgency: float = 0.0


def ordered(
    statements: Sequence[Statement],
    target: str,
    arrivals: Mapping[str, float],
    urgent: Mapping[str, float],
) -> list[Statement]:
    """Return the statements in a better order; tiles are created where they are first used.

    `arrivals`: when tiles from elsewhere are there. `urgent`: what still follows after a tile, for
    tiles that others wait for. Times in nanoseconds.
    """
    nodes = _nodes(statements, MACHINES[target])
    _rank(nodes, urgent)
    created = [s for s in statements if isinstance(s, Allocate)]
    waiting = {s.tile: s for s in created}
    result: list[Statement] = []
    for node in _schedule(nodes, arrivals):
        for tile in sorted(tiles_of(node.instruction), key=lambda t: t.name):
            if tile in waiting:
                result.append(waiting.pop(tile))
        result += [*node.comments, node.instruction]
    # What a later phase fills.
    return result + [s for s in created if s.tile in waiting]


def _nodes(statements: Sequence[Statement], machine: Machine) -> list[_Node]:
    nodes: list[_Node] = []
    comments: list[Statement] = []
    writer: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for statement in statements:
        match statement:
            case Comment():
                comments.append(statement)
            case Instruction():
                node = _node(statement, comments, len(nodes), machine)
                comments = []
                _depend(node, writer, readers)
                nodes.append(node)
            case Allocate():
                pass
            case _:
                raise TypeError(f"not a straight piece of a program: {statement}")
    return nodes


def _depend(node: _Node, writer: dict[str, int], readers: dict[str, list[int]]) -> None:
    """Note what comes before: writers of what it reads, users of what it overwrites."""
    written = _written(node.instruction)
    for name in {tile.name for tile in tiles_of(node.instruction)}:
        if name in writer:
            node.needs.add(writer[name])
        if name in written:
            node.needs.update(readers.get(name, ()))
            writer[name], readers[name] = node.place, []
        else:
            readers.setdefault(name, []).append(node.place)
    node.needs.discard(node.place)


def _written(instruction: Instruction) -> set[str]:
    """Tiles that an instruction writes."""
    results = (value for key, value in instruction.operands if key in ("dst", "reduce_res"))
    return {value.tile.name for value in results if isinstance(value, View | Pattern)}


def _node(
    instruction: Instruction, comments: list[Statement], place: int, machine: Machine
) -> _Node:
    operands = dict(instruction.operands)
    engine = engine_of(instruction.opcode, operands.get("engine"))
    width = max(_width(value) for value in operands.values() if isinstance(value, View | Pattern))
    match engine:
        case "tensor":
            busy = machine["pe_min_cycles"] * 2 / machine["pe_clock"]
            latency = busy + machine["pe_latency"]
        case "scalar":
            busy = (width + machine["scalar_adder_cycles"]) / machine["scalar_clock"]
            latency = width / machine["scalar_clock"] + machine["scalar_latency"]
            if instruction.opcode == "activation_reduce":
                busy += machine["scalar_accumulator_read"]
                latency += machine["scalar_accumulator_read"]
        case "gpsimd":
            busy = (2 * width + machine["gpsimd_adder_cycles"]) / machine["gpsimd_clock"]
            latency = busy + machine["gpsimd_latency"]
        case _:
            work = 8 * width if instruction.opcode == "reciprocal" else width
            busy = (work + machine["vector_adder_cycles"]) / machine["vector_clock"]
            latency = work / machine["vector_clock"] + machine["vector_latency"]
    return _Node(instruction, comments, place, engine, busy, latency)


def engine_of(opcode: str, named: object) -> str:
    """Return the engine of an instruction; `named` is its operand `engine`, if it has one."""
    if isinstance(named, Token):
        return named.text.rsplit(".", 1)[-1]
    return _ENGINES.get(opcode, "vector")


_ENGINES = {
    "nc_matmul": "tensor",
    "nc_transpose": "tensor",
    "activation": "scalar",
    "activation_reduce": "scalar",
    "iota": "gpsimd",
    "affine_select": "gpsimd",
}


def _width(view: Access) -> int:
    last = view.shape[-1]
    return int(last.value) if isinstance(last, Literal) else WIDE


def _rank(nodes: Sequence[_Node], urgent: Mapping[str, float]) -> None:
    """Set how much time follows the start of each instruction."""
    for node in reversed(nodes):
        after = max((urgent.get(name, 0.0) for name in _written(node.instruction)), default=0.0)
        node.urgency = max(node.urgency, after) + node.latency
        for need in node.needs:
            nodes[need].urgency = max(nodes[need].urgency, node.urgency)


def _schedule(nodes: Sequence[_Node], arrivals: Mapping[str, float]) -> list[_Node]:
    """Place every instruction; ties go to the earlier one, so the order is always the same."""
    engine_free: dict[str, float] = {}
    visible: dict[int, float] = {}
    pending = list(nodes)
    placed: list[_Node] = []
    while pending:
        ready = [node for node in pending if node.needs <= visible.keys()]
        starts = {
            node.place: max(
                engine_free.get(node.engine, 0.0),
                *(visible[need] for need in node.needs),
                *(arrivals.get(tile.name, 0.0) for tile in tiles_of(node.instruction)),
                0.0,
            )
            for node in ready
        }
        soonest = min(starts.values())
        node = max(
            (n for n in ready if starts[n.place] <= soonest),
            key=lambda n: (n.urgency, -n.place),
        )
        start = starts[node.place]
        engine_free[node.engine] = start + node.busy
        visible[node.place] = start + node.latency
        pending.remove(node)
        placed.append(node)
    return placed
