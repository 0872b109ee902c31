"""Issuing an instruction: bind, check, record, and in data mode compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from backends.isa.instructions import INSTRUCTIONS
from backends.isa.schema import Kind
from backends.isa.trace import Attribute
from backends.simulator.faults import Fault
from backends.simulator.instructions import cross_core, register
from backends.simulator.instructions.argument_rules import check_arguments
from backends.simulator.instructions.attributes import attributes
from backends.simulator.instructions.binding import bind, convert
from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.engines import choose
from backends.simulator.instructions.functions import FUNCTIONS
from backends.simulator.instructions.matmul import accumulating
from backends.simulator.instructions.operand_rules import (
    check_addresses,
    check_memories,
    check_operators,
    check_partitions,
    check_target,
    check_types,
)
from backends.simulator.instructions.plans import Plan, key_of, places
from backends.simulator.instructions.shape_rules import KEEP, check_shapes

if TYPE_CHECKING:
    from backends.simulator.machine import Machine


def issue(machine: Machine, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Execute `nki.isa.<name>(*args, **kwargs)` on `machine`; returns the instruction's handle.

    `register_alloc` returns the register. Raises Fault for a call that breaks a rule.
    """
    special = _SPECIAL.get(name)
    if special is not None:
        return special(machine, name, args, kwargs)
    key = key_of(name, args, kwargs)
    plan: Plan | None = machine.plans.get(key) if key is not None else None
    if plan is None:
        call = check(machine, name, args, kwargs)
        plan = _plan(call, args, kwargs)
        if key is not None:
            machine.plans[key] = plan
        values = call.values
    else:
        values = plan.fill(args, kwargs)
    reads = [(operand, values[operand]) for operand in plan.reads]
    writes = [(operand, values[operand]) for operand in plan.writes]
    found: Mapping[str, Attribute] = plan.attributes
    if name == "nc_matmul" or machine.data or name == "dma_compute":
        call = BoundCall(plan.row, values, machine)
        call.engine = plan.engine
        if name == "nc_matmul":
            values["accumulate"] = accumulating(call)
            adds = values["accumulate"] is not False
            reads += writes if adds else []
            found = {**found, "accumulate": adds}
        if name == "dma_compute":
            reads = list(call.read().items())
        handle = machine.emit(plan.engine, name, reads, writes, found, values["name"])
        if machine.data:
            FUNCTIONS[name](call)
        elif name == "nc_matmul":
            values["dst"].storage.written = True
        return handle
    return machine.emit(plan.engine, name, reads, writes, found, values["name"])


def check(machine: Machine, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundCall:
    """The call, bound and found to obey every rule that needs no data."""
    row = INSTRUCTIONS[name]
    call = BoundCall(row, convert(row, bind(row, args, kwargs)), machine)
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
    check_partitions,
    check_shapes,
    check_arguments,
)


def _plan(call: BoundCall, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Plan:
    kept = [
        param.name
        for param in call.row.params
        if param.keeps
        and call.row.name != "nc_matmul"
        and KEEP in call.values.get("shuffle_mask", (KEEP,))
    ]
    single = [param.name for param in call.row.params if param.kind is not Kind.TILES]
    return Plan(
        row=call.row,
        engine=call.engine,
        values=dict(call.values),
        places=places(call.row, args, kwargs),
        reads=(*[name for name in call.read() if name in single], *kept),
        writes=tuple(call.written()),
        attributes=attributes(call),
    )


def _cross_core(machine: Machine, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    call = check(machine, name, args, kwargs)
    number = _CROSS_CORE[name](call)
    if name == "core_barrier":
        reads, writes = [], [("data", call["data"])]
    else:
        reads, writes = [("src", call["src"])], [("dst", call["dst"])]
    return machine.emit(
        call.engine, name, reads, writes, attributes(call), call["name"], barrier=number
    )


def _register(machine: Machine, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    call = check(machine, name, args, kwargs)
    handle = machine.emit(
        call.engine,
        name,
        list(call.read().items()),
        list(call.written().items()),
        {},
        call["name"],
    )
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
_SPECIAL: dict[str, Callable[..., Any]] = dict.fromkeys(_CROSS_CORE, _cross_core) | dict.fromkeys(
    _REGISTERS, _register
)
