"""`nki.isa` functions as callables: what is known is recorded, the rest goes the whole way.

A run without data takes the short way (`instructions/short_calls.py`) for calls that it knows. With
data a known call saves the checking only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import FrameType
from typing import Any

from backends.isa.instructions import INSTRUCTIONS
from backends.simulator.instructions.binding import by_name
from backends.simulator.instructions.issue import SPECIAL, checked, issue, perform, template_of
from backends.simulator.instructions.plans import Plan
from backends.simulator.instructions.short_calls import Key, ShortCall
from backends.simulator.location import Location, at_frame
from backends.simulator.machine import Machine, current
from backends.simulator.tokens import MemoryRegion

_MOST_PLANS = 4096
"""Plans kept of launches of one kind; a dropped one costs a check more, nothing else."""


@cache
def instruction(name: str) -> Callable[..., Any]:
    """Return the function `nki.isa.<name>`."""
    row = INSTRUCTIONS[name]

    def later(frame: FrameType, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Execute a call that is not known by its place in the kernel."""
        machine, given = current(), by_name(row, args, kwargs)
        kernel, place = _kernel_frame(frame)
        key = None if kernel is None else short.key(kernel, given)
        if kernel is None or place is None or key is None:
            return issue(machine, name, (), given)
        plan = _plan(machine, name, given, key)
        if plan.name is None and _is_simple(machine, plan, given):
            # The template's place means the code it was found in, which must not be forgotten.
            machine.codes[id(kernel.f_code)] = kernel.f_code
            machine.templates[key] = template_of(machine, plan, given, place)
        return perform(machine, plan, given, place)

    def special(*args: Any, **kwargs: Any) -> Any:
        """Execute an instruction that is checked each time."""
        return issue(current(), name, args, kwargs)

    if name in SPECIAL:
        special.__name__ = special.__qualname__ = name
        return special
    short = ShortCall(row, later)
    return short.function


def _kernel_frame(frame: FrameType) -> tuple[FrameType | None, Location | None]:
    """Return the innermost frame of kernel code, from `frame` on, and the line it executes.

    Functions of `nki.language` issue instructions for the line that calls them.
    """
    inner: FrameType | None = frame
    while inner is not None:
        place = at_frame(inner)
        if place is not None:
            return inner, place
        inner = inner.f_back
    return None, None


def _plan(machine: Machine, name: str, given: Mapping[str, Any], key: Key) -> Plan:
    """Return the plan of a call, checked unless an equal one on some line was."""
    everywhere = (given.get("name"), tuple(given), key[2:])
    plan: Plan | None = machine.plans.get(everywhere)
    if plan is None:
        if len(machine.plans) >= _MOST_PLANS:
            machine.plans.clear()
        plan = machine.plans[everywhere] = checked(machine, name, given)
    else:
        for code, message in plan.warnings:
            machine.warn(code, message)
    return plan


def _is_simple(machine: Machine, plan: Plan, given: Mapping[str, Any]) -> bool:
    """Whether the views alone say all that a record of such a call holds.

    Run-time indices are tensors that are read as well, and shared memory is watched for races.
    """
    return not machine.data and all(
        given[name].dynamic is None
        and (machine.pair is None or given[name].layout.region is not MemoryRegion.shared_hbm)
        for name in plan.tiles
    )
