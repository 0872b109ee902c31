"""Which vectors of every token a chunked kernel brings in for its rule, and where they lie.

Keys and queries lie twice: tokens on partitions, and turned, channels on partitions, as a
stationary operand has them. In a kernel with a length per row a turned copy from HBM would bring
dead tokens along; there those that hold some are turned from what was selected on chip.
"""

from __future__ import annotations

from backends.nki.program.numbers import Number
from backends.nki.schedules.chunked.records import KEYS, VALUES
from backends.nki.schedules.chunked.schedule import Schedule
from gdsl.ir.kernel import Input

Sources = dict[str, tuple[Input, str | None, Number]]
"""Tensor, axis and width of each vector, by the name of its tile."""
Turned = dict[str, tuple[str, Number]]
"""The tile of the turned copy and its first column in a slot, by the name of the vector's tile."""


def vectors_of(schedule: Schedule) -> Sources:
    """Return what the rule takes and is an input."""
    scan, formulas = schedule.scan, schedule.scan.formulas
    found: Sources = {}
    read = (("p_sb", formulas.read, scan.key_axis, KEYS),) if formulas.own_read else ()
    for name, vector, axis, width in (
        ("k_sb", formulas.key, scan.key_axis, KEYS),
        *read,
        ("q_sb", formulas.query, scan.key_axis, KEYS),
        ("v_sb", formulas.value, scan.value_axis, VALUES),
    ):
        if not vector.computed:
            found[name] = (vector.item, axis, width)
    return found


def sources_of(schedule: Schedule) -> Sources:
    """Return what is brought in for a group: for the rule, and for what is computed around it."""
    extra = {e.name: (e.item, e.axis, e.width) for e in schedule.around.extra}
    return {**vectors_of(schedule), **extra}


def turned_of(schedule: Schedule) -> Turned:
    """Return the vectors that are needed turned, too."""
    places = schedule.around.turned
    return {name: places[name] for name in vectors_of(schedule) if name in places}


def turned_on_chip(schedule: Schedule) -> Turned:
    """Return those among them that may hold dead tokens, and are turned once these are gone."""
    held, clean = vectors_of(schedule), schedule.scan.clean
    if schedule.scan.valid is None:
        return {}
    return {n: place for n, place in turned_of(schedule).items() if held[n][0].name not in clean}
