"""Issuing an instruction: bind, check, record, and in data mode compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from backends.isa.instructions import INSTRUCTIONS
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
    special = SPECIAL.get(name)
    if special is not None:
        return special(machine, name, args, kwargs)
    key = key_of(name, args, kwargs)
    plan: Plan | None = machine.plans.get(key) if key is not None else None
    if plan is None:
        plan = _plan(check(machine, name, args, kwargs), args, kwargs)
        if key is not None:
            machine.plans[key] = plan
    if name == "nc_matmul":
        return _matmul(machine, plan, args, kwargs)
    handle = machine.emit(
        plan.engine,
        name,
        plan.tiles(plan.reads, args, kwargs),
        plan.tiles(plan.writes, args, kwargs),
        plan.attributes,
        plan.name,
    )
    if machine.data:
        FUNCTIONS[name](plan.call(machine, args, kwargs))
    return handle


def _matmul(machine: Machine, plan: Plan, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A matmul reads its destination when it accumulates, which only the moment can tell."""
    reads = plan.tiles(plan.reads, args, kwargs)
    writes = plan.tiles(plan.writes, args, kwargs)
    if not machine.data:
        storage = writes[0][1].storage
        adds = storage.written if plan.values["accumulate"] is None else plan.values["accumulate"]
        storage.written = True
    else:
        call = plan.call(machine, args, kwargs)
        added = accumulating(call)
        adds = added is not False
        call.values["accumulate"] = added
    handle = machine.emit(
        plan.engine,
        "nc_matmul",
        reads + writes if adds else reads,
        writes,
        {**plan.attributes, "accumulate": adds},
        plan.name,
    )
    if machine.data:
        FUNCTIONS["nc_matmul"](call)
    return handle


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
    sometimes = KEEP in call.values.get("shuffle_mask", ())
    kept = [
        param.name
        for param in call.row.params
        if param.keeps == "always" or (param.keeps == "sometimes" and sometimes)
    ]
    found = places(call.row, args, kwargs)
    return Plan(
        row=call.row,
        engine=call.engine,
        values=dict(call.values),
        places=found,
        reads=tuple((operand, found[operand]) for operand in (*call.read(), *kept)),
        writes=tuple((operand, found[operand]) for operand in call.written()),
        attributes=attributes(call),
        name=call["name"],
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


def _dma_compute(
    machine: Machine, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    call = check(machine, name, args, kwargs)
    handle = machine.emit(
        call.engine,
        name,
        list(call.read().items()),
        list(call.written().items()),
        attributes(call),
        call["name"],
    )
    if machine.data:
        FUNCTIONS[name](call)
    return handle


def _register(machine: Machine, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    call = check(machine, name, args, kwargs)
    handle = machine.emit(
        call.engine,
        name,
        list(call.read().items()),
        list(call.written().items()),
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
# Calls that are few, or whose tiles come in a list: checked each time.
SPECIAL: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_CROSS_CORE, _cross_core),
    **dict.fromkeys(_REGISTERS, _register),
    "dma_compute": _dma_compute,
}
