"""`prepare`: the way from loaded vectors to scores, cut into steps that a pipeline interleaves."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import Function, Operand
from backends.nki.program.numbers import Name
from backends.nki.program.structures import Values, tupled
from backends.nki.schedules.chunked.stage import Stage


@frozen
class Step:
    """A call of a function of the program."""

    function: str
    arguments: tuple[Operand, ...]


Part = tuple[Step, ...]
"""What a group does at one tick of the pipeline."""


def prepare(parts: Sequence[Part]) -> Function:
    """Return `prepare(constants, group, stage)`, which takes the step that `stage` says."""
    steps = [step for part in parts for step in part]
    doc = f"Step 0 to {len(steps) - 1} on the way from loaded vectors to scores."
    stage = Stage("prepare", ("constants", "group", "stage"), doc)
    _choose(stage.block, steps, 0)
    return stage.done()


def numbers(parts: Sequence[Part], first: int = 0) -> Values:
    """Return the steps of every part by their numbers, which begin at `first`."""
    found = []
    for part in parts:
        found.append(tupled(*range(first, first + len(part))))
        first += len(part)
    return Values(tuple(found))


def _choose(block: Block, steps: Sequence[Step], first: int) -> None:
    """Add the calls of steps whose numbers begin at `first`, one decision inside the other."""
    taken = steps[0]
    if len(steps) == 1:
        block.call(taken.function, *taken.arguments)
        return
    then, otherwise = block.inner(), block.inner()
    then.call(taken.function, *taken.arguments)
    _choose(otherwise, steps[1:], first + 1)
    block.decide(compare("==", Name("stage"), first), then, otherwise)
