"""What is read off a timeline to stand beside a published figure. Nanoseconds."""

from __future__ import annotations

from typing import assert_never

from attrs import frozen

from backends.cost.core import Placed
from backends.cost.list_schedule import list_scheduled
from backends.cost.program import Program
from backends.cost.timeline import Timeline, program_order
from backends.isa.machine import Machine


@frozen
class Total:
    """The whole program."""


@frozen
class Busy:
    """Sum of what an engine is occupied by instructions: a profile's active time when dense."""

    engine: str


@frozen
class InFlight:
    """Time in which an engine has an instruction between start and result: a profile's active time
    when instructions are isolated."""

    engine: str


@frozen
class InFlightShare:
    """The same as a percentage of a given number of nanoseconds."""

    engine: str
    of: float


@frozen
class Spacing:
    """Distance of neighbouring instructions of one opcode, averaged."""

    opcode: str


@frozen
class Length:
    """From an instruction's start to its result; the first with this opcode."""

    opcode: str


@frozen
class ToConsumer:
    """From the trigger of the first transfer to the start of the first ScalarE instruction."""


Measure = Total | Busy | InFlight | InFlightShare | Spacing | Length | ToConsumer


def list_scheduled_total(program: Program, machine: Machine) -> float:
    """Time a program with reordering; never longer than in program order."""
    return min(list_scheduled([program], machine).end, program_order([program], machine).end)


def measure(what: Measure, program: Program, machine: Machine) -> float:
    """Time a program in program order and read a figure off."""
    timeline = program_order([program], machine)
    placed = timeline.cores[0]
    match what:
        case Total():
            return timeline.end
        case Busy():
            return sum(item.busy for item in placed if item.queue == what.engine)
        case InFlight():
            return _in_flight(what.engine, program, timeline)
        case InFlightShare():
            return 100 * _in_flight(what.engine, program, timeline) / what.of
        case Spacing():
            starts = [item.start for item in _of(what.opcode, program, placed)]
            return (starts[-1] - starts[0]) / (len(starts) - 1)
        case Length():
            first = _of(what.opcode, program, placed)[0]
            table = machine["scalar_table_load"] if what.opcode == "activation" else 0.0
            return first.visible - first.start - table
        case ToConsumer():
            table = machine["scalar_table_load"]
            consumer = _of("activation", program, placed)[0]
            assert consumer.release > consumer.start + table
            return consumer.start - placed[0].start
        case _:
            assert_never(what)


def _of(opcode: str, program: Program, placed: tuple[Placed, ...]) -> list[Placed]:
    records = program.trace.records
    return [item for item, record in zip(placed, records, strict=True) if record.opcode == opcode]


def _in_flight(engine: str, program: Program, timeline: Timeline) -> float:
    """Length of the union of the engine's instructions, start to result."""
    spans = sorted(
        (item.start, max(item.visible, item.release))
        for item, record in zip(timeline.cores[0], program.trace.records, strict=True)
        if record.engine == engine
    )
    total = 0.0
    until = 0.0
    for start, end in spans:
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
