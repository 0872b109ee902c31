"""Calling the phases of a decode step from the entry."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import F32, Allocate, Function, Space, Tile
from backends.nki.program.numbers import Name, Number, smallest
from backends.nki.program.outline import Pack

ROWS, GROUP = Name("ROWS"), Name("GROUP")
READS_PER_UPDATE = 2
DELTAS_AT = 17
"""Head of the group being updated after which the next group's deltas are formed."""
OUTPUTS_AT, FINISH_AT = 1, 2
"""Heads after which the group's own outputs are formed, and the tile is finished."""
_BEFORE_GROUPS = ("load_vectors", "prepare_rows", "spread_decay")


@frozen
class Calls:
    """The phases as functions, and the tuples they return."""

    functions: dict[str, Function]
    packs: dict[str, Pack]

    def call(
        self,
        block: Block,
        phase: str,
        names: Mapping[str, Number],
        *,
        prefix: str = "",
        result: str | None = None,
    ) -> None:
        """Call a phase, if it has anything to do; parameters not in `names` go by their name."""
        function = self.functions.get(phase)
        if function is None:
            return
        if result is None and function.returns:
            pack = self.packs.get(phase)
            result = prefix + (pack.name if pack else function.returns[0])
        arguments = (names.get(p, Name(p)) for p in function.parameters)
        block.call(function.name, *arguments, result=result)

    def reads(self, block: Block, shape: tuple[Number, Number], name: str) -> None:
        """Allocate the reads of a group."""
        block.statements.append(Allocate(Tile(name, shape, F32, Space.PSUM)))

    @property
    def prepared(self) -> tuple[str, ...]:
        """What holds what was prepared for the rows at hand."""
        spread = self.functions.get("spread_decay")
        return (self.packs["prepare_rows"].name, *(spread.returns if spread else ()))

    @property
    def vectors(self) -> tuple[str, ...]:
        """The vectors as they were loaded, if a phase after the preparation uses them.

        They must then outlive the loading of the next tile's.
        """
        pack = self.packs.get("load_vectors")
        later = (f for n, f in self.functions.items() if n not in _BEFORE_GROUPS)
        needed = pack is not None and any(pack.name in f.parameters for f in later)
        return (pack.name,) if pack is not None and needed else ()


def after_head(head: Number, place: int, heads: Number) -> Number:
    """Whether a phase that belongs after head `place` runs now; groups may be smaller."""
    return compare("==", head, smallest(place, heads - 1))
