"""What a kernel of several sections does before its delta rule: projections, then convolutions.

One token: everything for all entries of the batch, then the decode pipeline over all rows. Several
tokens: the windows of an entry in front of its tokens. The values land where the decode schedule
finds them (`Placed`): channels of a head on partitions, a column for each row.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from backends.isa.targets import TARGETS
from backends.nki.contract import Contract
from backends.nki.program.build import Block
from backends.nki.program.nodes import F32, Element, View
from backends.nki.program.numbers import Literal
from backends.nki.refusal import refuse
from backends.nki.schedules.addresses import Addresses
from backends.nki.schedules.block.channels import Rows
from backends.nki.schedules.block.projection_step import STEP_CONSTANTS, STEP_FUNCTIONS
from backends.nki.schedules.block.projection_stream import CONSTANTS, STREAM_FUNCTIONS
from backends.nki.schedules.block.projections import Projections
from backends.nki.schedules.block.sections import Convolution, Given, Port, Projection, Sections
from backends.nki.schedules.block.share import share_of
from backends.nki.schedules.block.windows import Windows, element_of
from backends.nki.schedules.decode.front import Front
from backends.nki.select.addressing import Share
from backends.nki.select.constants import Constants
from backends.nki.select.inputs import RowWindow
from backends.nki.select.layouts import Layout, Placed
from gdsl.ir.node import Symbol


def front_of(sections: Sections, target: str) -> Front:
    """Return what comes before the delta rule of a kernel."""
    if sections.projections or sections.convolutions:
        return BlockFront(sections=sections, target=target)
    return Front()


@define(eq=False)
class BlockFront(Front):
    """Projections and convolutions before the delta rule."""

    sections: Sections = field(kw_only=True)
    target: str = field(kw_only=True)
    contract: Contract = field(init=False)
    made: Constants = field(init=False)
    addresses: Addresses = field(init=False)
    main: Block = field(init=False)

    def begin(
        self,
        main: Block,
        contract: Contract,
        axes: tuple[str, ...],
        constants: Constants,
        addresses: Addresses,
    ) -> dict[str, Share]:
        self.main, self.contract = main, contract
        self.made, self.addresses = constants, addresses
        self.ahead, self.entry = Block(main.names), Block(main.names)
        first = {port.field.heads[0] for port in self.sections.ports if port.field.heads}
        if len(axes) < 2 or first != {axes[1]}:
            raise refuse(
                "the heads of every projection and convolution must begin with the first axis of "
                "the state's heads",
                self.sections.kernel.span,
            )
        main.banner("Heads of this core")
        return {axes[1]: share_of(main, axes[1])}

    def prepare(self, window: RowWindow) -> Mapping[Symbol, Placed]:
        entry = self.sections.entry
        scan = bool(window.outer)
        cell = next(axis for axis in window.outer if axis != entry) if scan else entry
        rows = Rows(cell, window.axes if scan else window.axes[1:], window)
        windows = Windows(self.contract, window, rows, self.addresses, entry)
        for convolution in self.sections.convolutions:
            windows.load(self.ahead, convolution)
        tiles = self._projected(window)
        filtered = self._filtered(windows, tiles, scan=scan)
        self.functions = (*self.functions, *windows.functions.values())
        return self._placed(rows, tiles, filtered, self.entry if scan else self.ahead)

    # ---- projections

    def _projected(self, window: RowWindow) -> dict[Port, View]:
        """Every port of a projection, on chip."""
        ports = [port for port in self.sections.ports if isinstance(port.section, Projection)]
        if not ports:
            return {}
        if window.outer:
            raise refuse(
                "projections of several tokens are not emitted yet", self.sections.kernel.span
            )
        self.constants = (*CONSTANTS, *STEP_CONSTANTS)
        self.functions = (*STREAM_FUNCTIONS, *STEP_FUNCTIONS)
        projections, block = Projections(self.contract, window, self.made), self.ahead
        for port in ports:
            projections.plan(block, port)
        projections.activate(block)
        tiles = {port: projections.create(block, port, self._element(port)) for port in ports}
        projections.stream.allocate(block, Literal(TARGETS[self.target].sbuf_usable_bytes // 2))
        for port in ports:
            projections.begin(block, port)
            projections.finish(block, port)
        return tiles

    def _element(self, port: Port) -> Element:
        """What a projection is kept in: the dtype its only user rounds it to, or fp32."""
        for convolution in self.sections.convolutions:
            if port in convolution.token:
                return element_of(convolution.rounded)
        for projection in self.sections.projections:
            if projection.moving == port:
                return element_of(projection.rounded)
        return F32

    # ---- convolutions

    def _filtered(
        self, windows: Windows, tiles: Mapping[Port, View], *, scan: bool
    ) -> dict[tuple[Symbol, str], View]:
        """The sums of every field."""
        block, found = self.entry if scan else self.ahead, dict[tuple[Symbol, str], View]()
        lengths = [c.run.valid_len for c in self.sections.convolutions]
        inputs = {item.symbol: item for item in self.sections.kernel.inputs}
        if scan and lengths and lengths[0] is not None:
            windows.load_lengths(self.ahead, inputs[lengths[0]])
            windows.mark_alive(block)
        for convolution in self.sections.convolutions:
            sums = (
                windows.scan(block, convolution)
                if scan
                else windows.step(block, convolution, tiles)
            )
            for part, view in zip(convolution.fields, sums, strict=True):
                found[convolution.symbol, part.name] = view
        return found

    # ---- values

    def _placed(
        self,
        rows: Rows,
        tiles: Mapping[Port, View],
        filtered: Mapping[tuple[Symbol, str], View],
        block: Block,
    ) -> dict[Symbol, Placed]:
        """Where the delta rule finds the values of the sections."""
        keys = self.sections.key_axis
        found: dict[Symbol, Placed] = {}
        for value in self.sections.values:
            port, part = value.port, value.port.field
            match port.section:
                case Given():
                    continue
                case Convolution(symbol=symbol):
                    function = "nl.silu" if port.silu else "nl.copy"
                    view = rows.spread(block, value, filtered[symbol, part.name], function, F32)
                case Projection():
                    view = tiles[port]
                    if part.wide is None:
                        at = rows.column_at_hand(view)
                        found[value.symbol] = Placed(at, Layout.ROWS, key_major=False)
                        continue
                    if not rows.complete(part):
                        view = rows.spread(block, value, view, "nl.copy", F32)
            key_major = part.wide == keys
            found[value.symbol] = Placed(rows.at_hand(view), Layout.KEYS, key_major)
        return found
