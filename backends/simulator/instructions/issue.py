"""Issuing an instruction: bind, check, record, and in data mode compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from backends.isa.instructions import INSTRUCTIONS
from backends.simulator.faults import Fault
from backends.simulator.instructions import cross_core, register
from backends.simulator.instructions.argument_rules import check_arguments, check_constants
from backends.simulator.instructions.attributes import attributes
from backends.simulator.instructions.binding import bind, by_name, convert
from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.engines import choose
from backends.simulator.instructions.functions import FUNCTIONS
from backends.simulator.instructions.indirect_rules import check_indirect
from backends.simulator.instructions.matmul import FREE_SUMS_FROM, accumulating
from backends.simulator.instructions.operand_rules import (
    check_addresses,
    check_memories,
    check_operators,
    check_partitions,
    check_target,
    check_types,
)
from backends.simulator.instructions.plans import Plan, plan_of
from backends.simulator.instructions.shape_rules import check_shapes
from backends.simulator.location import Location, here
from backends.simulator.record_template import Template

if TYPE_CHECKING:
    from backends.simulator.machine import Machine


def issue(machine: Machine, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Execute `nki.isa.<name>(*args, **kwargs)` on `machine`; returns the instruction's handle.

    `register_alloc` returns the register. Raises Fault for a call that breaks a rule.
    """
    given = by_name(INSTRUCTIONS[name], args, kwargs)
    special = SPECIAL.get(name)
    if special is not None:
        return special(machine, name, given)
    return perform(machine, checked(machine, name, given), given, here())


def checked(machine: Machine, name: str, given: Mapping[str, Any]) -> Plan:
    """The plan of a call, which obeys every rule that needs no data. Raises Fault."""
    said: list[tuple[str, str]] = []
    machine.said = said
    call = check(machine, name, given)
    machine.said = None
    return plan_of(call, given, said)


def template_of(
    machine: Machine, plan: Plan, given: Mapping[str, Any], place: Location
) -> Template:
    """What a checked call on the kernel line `place` comes to without data."""
    layouts = [view.layout.rules for view in plan.views(given)]
    return plan.template(place, layouts, strict=machine.target.generation < FREE_SUMS_FROM)


def perform(machine: Machine, plan: Plan, given: Mapping[str, Any], place: Location) -> Any:
    """Execute a checked call that stands on the kernel line `place`."""
    name = plan.row.name
    if not machine.data:
        return machine.record(template_of(machine, plan, given, place), plan.views(given))
    call = plan.call(machine, given)
    reads, attributes = plan.reads, plan.attributes
    if name == "nc_matmul":
        # It reads its destination when it accumulates, which only the moment can tell.
        added = call.values["accumulate"] = accumulating(call)
        adds = added is not False
        reads = (*reads, *plan.writes) if adds else reads
        attributes = {**attributes, "accumulate": adds}
    handle = machine.emit(
        plan.engine,
        name,
        [(tile, given[tile]) for tile in reads],
        [(tile, given[tile]) for tile in plan.writes],
        attributes,
        plan.name,
        place=place,
    )
    FUNCTIONS[name](call)
    return handle


def check(machine: Machine, name: str, given: Mapping[str, Any]) -> BoundCall:
    """The call, bound and found to obey every rule that needs no data."""
    row = INSTRUCTIONS[name]
    call = BoundCall(row, convert(row, bind(row, given)), machine)
    for rule in _RULES:
        rule(call)
    if row.not_simulated is not None:
        raise Fault("S109", f"`{name}` is not simulated: {row.not_simulated}")
    return call


def _choose_engine(call: BoundCall) -> None:
    call.engine = choose(call)


# In this order, so that the first fault is the most basic one.
_RULES: tuple[Callable[[BoundCall], None], ...] = (
    check_target,
    check_memories,
    check_types,
    check_operators,
    _choose_engine,
    check_addresses,
    check_indirect,
    check_partitions,
    check_shapes,
    check_constants,
    check_arguments,
)


def _emit(machine: Machine, call: BoundCall, barrier: int | None = None) -> Any:
    """Record a call that is checked each time."""
    reads, writes = list(call.read().items()), list(call.written().items())
    if call.row.name == "core_barrier":
        # What it orders counts as written: nothing may move across.
        reads, writes = [], reads
    name = call.values.get("name")
    return machine.emit(
        call.engine, call.row.name, reads, writes, attributes(call), name, barrier=barrier
    )


def _cross_core(machine: Machine, name: str, given: Mapping[str, Any]) -> Any:
    call = check(machine, name, given)
    return _emit(machine, call, barrier=_CROSS_CORE[name](call))


def _dma_compute(machine: Machine, name: str, given: Mapping[str, Any]) -> Any:
    call = check(machine, name, given)
    handle = _emit(machine, call)
    if machine.data:
        FUNCTIONS[name](call)
    return handle


def _register(machine: Machine, name: str, given: Mapping[str, Any]) -> Any:
    call = check(machine, name, given)
    handle = _emit(machine, call)
    result = _REGISTERS[name](call)
    return handle if result is None else result


_CROSS_CORE: dict[str, Callable[[BoundCall], int]] = {
    "sendrecv": cross_core.sendrecv,
    "core_barrier": cross_core.core_barrier,
}
_REGISTERS: dict[str, Callable[[BoundCall], Any]] = {
    "register_alloc": register.register_alloc,
    "register_move": register.register_move,
    "register_load": register.register_load,
    "register_store": register.register_store,
}
# Calls that are few, or whose tiles come in a list: checked each time.
SPECIAL: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_CROSS_CORE, _cross_core),
    **dict.fromkeys(_REGISTERS, _register),
    "dma_compute": _dma_compute,
}
