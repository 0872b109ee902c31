"""Calling the phases of a decode step from the entry."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from backends.nki.program.build import Block
from backends.nki.program.nodes import Function
from backends.nki.program.numbers import Name, Number
from backends.nki.program.outline import Pack

ROWS, GROUP = Name("ROWS"), Name("GROUP")


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
