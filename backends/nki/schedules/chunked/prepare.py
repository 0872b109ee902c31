"""`prepare`: the way from loaded vectors to scores, cut into steps that a pipeline interleaves."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import Function, Operand
from backends.nki.program.numbers import Name
from backends.nki.schedules.chunked.stage import Stage


@frozen
class Step:
    """A call of a function of the program."""

    function: str
    arguments: tuple[Operand, ...]


def prepare(steps: Sequence[Step]) -> Function:
    """Return `prepare(constants, group, stage)`, which takes the step that `stage` says."""
    doc = f"Step 0 to {len(steps) - 1} on the way from loaded vectors to scores."
    stage = Stage("prepare", ("constants", "group", "stage"), doc)
    _choose(stage.block, steps, 0)
    return stage.done()


def _choose(block: Block, steps: Sequence[Step], first: int) -> None:
    """Add the calls from step `first` on, one decision inside the other."""
    taken = steps[first]
    if first == len(steps) - 1:
        block.call(taken.function, *taken.arguments)
        return
    then, otherwise = block.inner(), block.inner()
    then.call(taken.function, *taken.arguments)
    _choose(otherwise, steps, first + 1)
    block.decide(compare("==", Name("stage"), first), then, otherwise)
