"""What comes before the delta rule in a kernel of several sections; here: nothing.

The decode schedule asks a front where the values of the sections lie, and puts what computes them
in front of its pipeline (`ahead`) or, with several tokens, in front of each entry (`entry`). Where
all rows share one tile, what only their outputs need may come late: its transfers behind those of
the first states (`during`), the rest behind the last update (`last`).
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from backends.nki.contract import Contract
from backends.nki.program.build import Block, Names
from backends.nki.program.nodes import Constant, Function, Operand
from backends.nki.schedules.addresses import Addresses
from backends.nki.select.addressing import Share
from backends.nki.select.constants import Constants
from backends.nki.select.inputs import RowWindow
from backends.nki.select.layouts import Placed
from gdsl.ir.node import Symbol


@define(eq=False)
class Front:
    """The front of a kernel that is one delta rule."""

    ahead: Block = field(factory=lambda: Block(Names()))
    """Before all rows."""
    entry: Block = field(factory=lambda: Block(Names()))
    """Before the tokens of each entry of the batch."""
    during: Block = field(factory=lambda: Block(Names()))
    """Behind the transfers of the first states, if all rows share a tile."""
    last: Block = field(factory=lambda: Block(Names()))
    """Before the outputs of that tile are finished."""
    ring: Mapping[str, Operand] = field(factory=dict)
    """The queue of the states, where they share one with other transfers."""
    constants: tuple[Constant, ...] = ()
    functions: tuple[Function, ...] = ()

    def begin(
        self,
        main: Block,
        contract: Contract,
        axes: tuple[str, ...],
        constants: Constants,
        addresses: Addresses,
    ) -> dict[str, Share]:
        """Bind the part of an axis of the rows that this core has, where cores share heads."""
        return {}

    def prepare(self, window: RowWindow) -> Mapping[Symbol, Placed]:
        """Fill `ahead` and `entry`; return where the values of the sections lie while a tile of
        rows is processed."""
        return {}
