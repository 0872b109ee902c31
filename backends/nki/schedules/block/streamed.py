"""The order of a kernel's projections: what streams when, and what runs under the stream.

One ring carries the weights that the delta rule waits for, then the first states, then the weights
that only outputs need (an output gate). Where all rows share a tile, convolutions and the delta
rule run while those last weights stream; else everything is projected before the rows are
processed, tile after tile, since a tile of rows leaves with its outputs.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import F32, Element, View
from backends.nki.program.numbers import ZERO, Choice, Literal, Number
from backends.nki.schedules.block.projection_stream import RING, SBUF
from backends.nki.schedules.block.projections import Projections
from backends.nki.schedules.block.sections import Port, Projection, Sections
from backends.nki.schedules.decode.calls import ROWS
from backends.nki.schedules.decode.front import Front

CONSTANT = 4096
"""Bytes of a partition for what is the same for all rows: the identity, norm weights."""


@define(eq=False)
class Streamed:
    """Writes the projections of a kernel into the blocks of a front."""

    sections: Sections
    projections: Projections
    total: Number
    """Rows of this core."""
    tiles: dict[Port, View] = field(factory=dict)

    @property
    def late(self) -> list[Port]:
        """The ports that only outputs need."""
        return [v.port for v in self.sections.values if v.late and _projected(v.port)]

    @property
    def early(self) -> list[Port]:
        """The other ports, in the order of the stream: what convolutions filter comes first."""
        filtered = [p for c in self.sections.convolutions for p in c.token]
        ports = dict.fromkeys([*filtered, *self.sections.ports])
        found: list[Port] = []
        for port in ports:
            self._add(port, found)
        return found

    def _add(self, port: Port, found: list[Port]) -> None:
        """Add a port behind the one that moves through its weight."""
        if not isinstance(port.section, Projection) or port in (*found, *self.late):
            return
        if isinstance(port.section.moving, Port):
            self._add(port.section.moving, found)
        found.append(port)

    def open(self, block: Block, element: Callable[[Port], Element]) -> dict[Port, View]:
        """Bring in activations; create and return the tile of every port."""
        ports = [*self.early, *self.late]
        for port in ports:
            self.projections.plan(block, port)
        self.projections.activate(block)
        self.projections.scales.load(block)
        for port in ports:
            self.tiles[port] = self.projections.create(block, port, element(port))
        return self.tiles

    def write(self, front: Front, held: Number, later: Number) -> None:
        """Create the slots of the stream, and order it.

        `held`: bytes of a partition that other sections keep meanwhile; `later`: what runs under
        the late weights takes.
        """
        front.ring = RING
        front.loads.banner("Slots of the weights")
        self._allocate(front.loads, held, later)
        self.projections.scales.turn(front.ahead)
        front.ahead.banner("Weights that the rule waits for, in the order of SyncE's ring")
        for port in self.early:
            self._project(front.ahead, port)
        if not self.late:
            return
        front.ahead.comment("Several tiles of rows leave with their outputs, so these come before.")
        with front.ahead.when(compare(">", self.total, ROWS)) as several:
            for port in self.late:
                self._project(several, port)
        front.during.comment("One tile: these stream while its states are read and updated.")
        for port in self.late:
            self.projections.begin(front.during, port)
            self.projections.finish(front.last, port)

    def _allocate(self, block: Block, held: Number, later: Number) -> None:
        mine = self.projections.bytes_held()
        if any(port.field.wide is None for port in self.projections.ports):
            mine = mine + F32.bytes * self.total
        block.comment(
            "Bytes of a partition that are taken while the weights stream, and by what runs under\n"
            "the last of them; the rest is for tiles of weights."
        )
        taken = block.let("taken", held + mine + CONSTANT)
        late = block.let("late", compare("<=", self.total, ROWS)) if self.late else Literal(False)
        under = block.let("under", Choice(late, later, ZERO))
        self.projections.allocate(block, SBUF - taken - under, late, self.late)

    def _project(self, block: Block, port: Port) -> None:
        self.projections.begin(block, port)
        self.projections.finish(block, port)


def _projected(port: Port) -> bool:
    return isinstance(port.section, Projection)
