"""Rules every operand obeys by itself or with the others: memory, type, partitions, operators.

What an operand may be is read from the instruction's row; the rules here are the same for all rows.
"""

from __future__ import annotations

from backends.isa.dtypes import UNPACKED
from backends.isa.operators import OPERATORS
from backends.isa.schema import Instruction, Kind, Param, Shape
from backends.isa.targets import GENERATION_NAMES, PARTITIONS, start_partitions
from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall, space
from backends.simulator.instructions.indirect_rules import INDIRECT
from backends.simulator.tensor import NkiTensor

_FREE_OF_ENGINE_RULES = frozenset(
    {Shape.DMA, Shape.DMA_TRANSPOSE, Shape.DMA_COMPUTE, Shape.CROSS_CORE, Shape.REGISTER}
)
"""Shapes of instructions that no compute engine executes: any start partition."""
MOST_ELEMENTS = 2**16
"""Elements of a partition that one instruction of an engine accesses."""
_RUN_TIME_ADDRESSES = frozenset({"tensor_copy"})
"""Compute instructions that take scalar run-time addresses."""


def check_target(call: BoundCall) -> None:
    """The target has the instruction, its operators and its scalar immediates (S303)."""
    row, target = call.row, call.target
    if target.generation not in row.generations:
        names = " and ".join(GENERATION_NAMES[generation] for generation in row.generations)
        raise Fault("S303", f"`{row.name}` exists on {names}, not on {target.name}")
    for param in row.operator_slots:
        name = call.values[param.name]
        operator = OPERATORS.get(name) if name is not None else None
        if operator is not None and operator.generation > target.generation:
            first = GENERATION_NAMES[operator.generation]
            raise Fault("S303", f"`nl.{name}` as `{param.name}` exists from {first} on")
    for param in row.params:
        value = call.values[param.name]
        is_number = param.kind is Kind.OPERAND and isinstance(value, (int, float))
        if is_number and param.default != value and target.generation < param.number_from:
            raise Fault(
                "S303",
                f"`{param.name}` of `{row.name}` must be a (P, 1) tile on {target.name}",
            )


def check_memories(call: BoundCall) -> None:
    """Each tile has elements (S312) and lives where its argument says (S304), at most one of a
    pair in PSUM (S308).
    """
    tiles = call.tiles()
    for name, tile in tiles.items():
        param = _param(call.row, name)
        if 0 in tile.shape:
            raise Fault(
                "S312",
                f"`{name}` of `{call.row.name}` is an empty view {tuple(tile.shape)}",
                help="skip the instruction when there is nothing to do",
            )
        if space(tile) not in param.spaces:
            allowed = " or ".join(sorted(param.spaces))
            raise Fault(
                "S304",
                f"`{name}` of `{call.row.name}` must be in {allowed}, it is in {tile.memory}",
                help=_way_out(tile, param),
            )
    for group in call.row.one_psum:
        inside = [name for name in group if name in tiles and tiles[name].memory == "psum"]
        if len(inside) > 1:
            both = " and ".join(f"`{name}`" for name in inside)
            raise Fault(
                "S308",
                f"{both} of `{call.row.name}` are both in PSUM",
                help="copy one of them to SBUF with `nisa.tensor_copy` first",
            )


def _way_out(tile: NkiTensor, param: Param) -> str | None:
    if tile.memory == "psum":
        return "copy it to SBUF with `nisa.tensor_copy` first"
    if space(tile) == "hbm":
        return "bring it to SBUF with `nisa.dma_copy` first"
    return None


def _param(row: Instruction, name: str) -> Param:
    return row.by_name[name.partition("[")[0]]


def check_types(call: BoundCall) -> None:
    """Each tile has an element type its argument takes; pairs agree where they must (S305)."""
    tiles = call.tiles()
    for name, tile in tiles.items():
        param = _param(call.row, name)
        allowed = UNPACKED if param.dtypes is None else param.dtypes
        if tile.dtype.name not in allowed:
            raise Fault(
                "S305",
                f"`{name}` of `{call.row.name}` cannot have type {tile.dtype}",
                help=f"it takes {', '.join(sorted(allowed))}",
            )
    for group in call.row.same_dtype:
        members = [(name, tiles[name]) for name in group if name in tiles]
        for name, tile in members[1:]:
            first_name, first = members[0]
            if tile.dtype != first.dtype:
                raise Fault(
                    "S305",
                    f"`{first_name}` and `{name}` of `{call.row.name}` must have one element type",
                    values={first_name: first.dtype, name: tile.dtype},
                )


def check_operators(call: BoundCall) -> None:
    """Arithmetic or bit operators, not both; bit operators on integers of one width."""
    groups = {
        OPERATORS[name].group for name in call.operators() if name is not None and name in OPERATORS
    }
    if len(groups) > 1:
        raise Fault(
            "S306", f"`{call.row.name}` mixes arithmetic and bit operators: {call.operators()}"
        )
    if groups != {"bitvec"}:
        return
    tiles = call.tiles()
    for name, tile in tiles.items():
        if not tile.dtype.is_integer:
            raise Fault("S305", f"bit operators take integers, `{name}` is {tile.dtype}")
    if len({tile.dtype.bytes for tile in tiles.values()}) > 1:
        types = {name: tile.dtype for name, tile in tiles.items()}
        raise Fault("S305", "bit operators take integers of one width", values=types)


def check_partitions(call: BoundCall) -> None:
    """Partition counts, sizes and start partitions of engine accesses (S309, S310, S311, S314)."""
    for name, tile in call.tiles().items():
        if not tile.on_chip:
            continue
        if tile.partition_start + tile.partitions > PARTITIONS:
            raise Fault(
                "S309",
                f"`{name}` of `{call.row.name}` covers {tile.partitions} partitions from "
                f"{tile.partition_start}, beyond {PARTITIONS}",
            )
        if call.row.shape in _FREE_OF_ENGINE_RULES:
            continue
        if tile.free_size > MOST_ELEMENTS:
            raise Fault(
                "S314",
                f"`{name}` of `{call.row.name}` has {tile.free_size} elements per partition; one "
                f"instruction reaches {MOST_ELEMENTS}",
            )
        legal = start_partitions(tile.partitions)
        if tile.partition_start not in legal:
            raise Fault(
                "S310",
                f"`{name}` of `{call.row.name}` covers {tile.partitions} partitions from "
                f"{tile.partition_start}",
                help=f"{tile.partitions} partitions may start at {' or '.join(map(str, legal))}",
            )
    if call.row.shape not in _FREE_OF_ENGINE_RULES:
        _check_equal_starts(call)


def _check_equal_starts(call: BoundCall) -> None:
    inputs = [(name, tile) for name, tile in call.read().items() if tile.memory == "sbuf"]
    for name, tile in inputs[1:]:
        first_name, first = inputs[0]
        if tile.partition_start != first.partition_start:
            raise Fault(
                "S311",
                f"`{first_name}` and `{name}` of `{call.row.name}` start at partitions "
                f"{first.partition_start} and {tile.partition_start}",
                help="copy one of them to the partitions of the other first",
            )


def check_addresses(call: BoundCall) -> None:
    """Run-time addresses only where an instruction takes them (S324)."""
    if call.row.shape in _FREE_OF_ENGINE_RULES:
        return
    for name, tile in call.tiles().items():
        dynamic = tile.dynamic
        if dynamic is None or (dynamic.kind == "scalar" and call.row.name in _RUN_TIME_ADDRESSES):
            continue
        if dynamic.kind == "columns" and name in INDIRECT.get(call.row.name, ()):
            continue
        raise Fault(
            "S324",
            f"`{name}` of `{call.row.name}` has a run-time address",
            help="copy the part you need with `nisa.dma_copy` or `nisa.tensor_copy` first",
        )
