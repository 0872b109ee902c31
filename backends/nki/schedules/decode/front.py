"""What comes before the delta rule in a kernel of several sections; here: nothing.

The decode schedule asks a front where the values of the sections lie, and runs its blocks of
statements where they belong in the pipeline. What is large shares a ring, so the order of the
transfers is the order in which they are needed: `loads`, `ahead`, the states of the first rows,
`during`. With several tokens there are only `loads`, `ahead` and, for a team of entries, `entry`.
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

    loads: Block = field(factory=lambda: Block(Names()))
    """Transfers of what is small, before anything waits for one."""
    ahead: Block = field(factory=lambda: Block(Names()))
    """Before the first states are sent for."""
    entry: Block = field(factory=lambda: Block(Names()))
    """before the tokens of a team of entries."""
    during: Block = field(factory=lambda: Block(Names()))
    """Behind the transfers of the first states, if all rows share a tile."""
    filtered: Block = field(factory=lambda: Block(Names()))
    """What is left to do before the first rows are prepared."""
    last: Block = field(factory=lambda: Block(Names()))
    """Before the outputs of that tile are finished."""
    ring: Mapping[str, Operand] = field(factory=dict)
    """The queue of the states, where they share one with other transfers."""
    constants: tuple[Constant, ...] = ()
    functions: tuple[Function, ...] = ()

    more_keys: str = "set `key_tiles`: 2 for up to 256 keys a head, 3 for 384, 4 for 512"
    """What helps where a head has more keys than the text is for."""

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
        """Fill the blocks; return where the values of the sections lie while a tile of rows is
        processed."""
        return {}
