"""How far the figure moves when the assumed numbers do.

In program order time is monotone in every duration, so all assumed durations at their favourable
ends and all at their unfavourable ends bound the figure for every combination in between. Assumed
choices (how many rings, who makes descriptors) are not durations; each end is tried with them as
assumed and at the end as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from backends.cost.program import Program
from backends.cost.timeline import MICROSECOND, program_order
from backends.isa.machine import ROWS, Machine
from gdsl.profiler import Case

_ENDS: tuple[Literal["favourable", "unfavourable"], ...] = ("favourable", "unfavourable")
_CHOICES = frozenset({"rings", "flag"})
"""Units of facts that are no quantity of time."""
_MORE_IS_FASTER = frozenset({"bytes/ns", "fraction", "rings", "TFLOPS"})
_UNITS = {row.key: row.unit for row in ROWS}
_NOT_IN_A_TIMELINE = frozenset({"launch", "peak_fp8"})


def extreme(
    machine: Machine, end: Literal["favourable", "unfavourable"], *, choices: bool = True
) -> Machine:
    """Return the machine with every assumed number at one end of its range.

    Without `choices` only durations and rates move.
    """
    values = {}
    for key in machine.assumed:
        fact = machine.facts[key]
        assert fact.low is not None
        assert fact.high is not None
        if choices or _UNITS[key] not in _CHOICES:
            takes_low = (_UNITS[key] in _MORE_IS_FASTER) != (end == "favourable")
            values[key] = fact.low if takes_low else fact.high
    return machine.replaced(values)


def extremes(machine: Machine) -> tuple[Machine, ...]:
    """Return the machines between which the figure lies, the given one first."""
    return (
        machine,
        *(extreme(machine, end, choices=choices) for end in _ENDS for choices in (False, True)),
    )


def bounds_over_assumptions(programs: Sequence[Program], machine: Machine) -> tuple[float, float]:
    """Return the least and the greatest program-order time. Nanoseconds."""
    ends = [program_order(programs, at).end for at in extremes(machine)]
    return min(ends), max(ends)


def single_changes(machine: Machine) -> Iterator[Machine]:
    """Yield the machine with one assumed number at a time at either end of its range."""
    for key, value in _ends(machine):
        yield machine.replaced({key: value})


def sweep(programs: Sequence[Program], machine: Machine) -> tuple[Case, ...]:
    """Re-run with one assumed number at a time at either end of its range."""
    return tuple(
        Case(key, value, program_order(programs, machine.replaced({key: value})).end / MICROSECOND)
        for key, value in _ends(machine)
    )


def _ends(machine: Machine) -> Iterator[tuple[str, float]]:
    for key in machine.assumed:
        if key not in _NOT_IN_A_TIMELINE:
            fact = machine.facts[key]
            for value in (fact.low, fact.high):
                if value is not None and value != fact.value:
                    yield key, value
