"""What a kernel of several sections does before its delta rule: projections, then convolutions.

One token: everything for all entries of the batch, then the decode pipeline over all rows. Several
tokens: the windows of a team of entries in front of their tokens. The values land where the decode
schedule finds them (`Placed`): channels of a head on partitions, a column for each row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import define, field

from backends.nki.contract import Contract
from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import F32, Element, View
from backends.nki.program.numbers import ZERO, Name, Number
from backends.nki.refusal import refuse
from backends.nki.schedules.addresses import Addresses
from backends.nki.schedules.block.channels import Rows
from backends.nki.schedules.block.projection_step import STEP_CONSTANTS
from backends.nki.schedules.block.projection_stream import bytes_of, constants_of
from backends.nki.schedules.block.projections import Projections
from backends.nki.schedules.block.sections import Convolution, Given, Port, Projection, Sections
from backends.nki.schedules.block.streamed import Streamed
from backends.nki.schedules.block.window_arguments import element_of
from backends.nki.schedules.block.windows import Windows
from backends.nki.schedules.decode.calls import GROUP
from backends.nki.schedules.decode.front import Front
from backends.nki.schedules.sharing import share_of
from backends.nki.select.addressing import Share
from backends.nki.select.constants import PARTITIONS, Constants
from backends.nki.select.inputs import RowWindow
from backends.nki.select.layouts import Layout, Placed
from gdsl.algorithm.plan import Plan
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input, Run
from gdsl.ir.node import Symbol

if TYPE_CHECKING:
    from backends.nki.schedules.block.projected_tokens import ProjectedTokens

VECTORS = 48
"""Vectors along the values that a tile of rows takes, two tiles at once."""

OF_ITS_OWN = "compute the recurrence in a kernel of its own, where `key_tiles=2` takes 256 keys"


def front_of(plan: Plan, sections: Sections, target: str) -> tuple[Sections, Front]:
    """Return what comes before the delta rule of a kernel, and the sections that it leaves."""
    if not sections.projections and not sections.convolutions:
        return sections, Front()
    _refuse_key_tiles(plan)
    tokens = None
    (token,) = (s.axis for s in sections.body if isinstance(s, Run))
    if sections.projections and token is not None:
        # One token at a time needs nothing of what goes in front of chunks.
        from backends.nki.schedules.block.projected_tokens import through_hbm

        sections, tokens = through_hbm(plan, sections, token)
    shard = plan.settings["shard"]
    return sections, BlockFront(sections=sections, target=target, shard=shard, tokens=tokens)


def _refuse_key_tiles(plan: Plan) -> None:
    """Raise CompileError where a head in front of whose rule sections stand has several tiles."""
    setting = next(setting for setting in plan.resolved if setting.key == "key_tiles")
    if setting.value != 1:
        raise refuse(
            f"`key_tiles={setting.value}` is not possible: channels of a head that come from a "
            "projection or a convolution lie on 128 partitions at most",
            setting.span or plan.span,
            help=f"leave out `key_tiles`, or {OF_ITS_OWN}",
        )


@define(eq=False)
class BlockFront(Front):
    """Projections and convolutions before the delta rule."""

    sections: Sections = field(kw_only=True)
    target: str = field(kw_only=True)
    shard: object = field(kw_only=True)
    """The value of that key."""
    tokens: ProjectedTokens | None = field(kw_only=True)
    """What is projected for all tokens first."""
    more_keys: str = OF_ITS_OWN
    contract: Contract = field(init=False)
    made: Constants = field(init=False)
    addresses: Addresses = field(init=False)
    main: Block = field(init=False)
    streamed: Streamed | None = None

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
        self.loads, self.ahead, self.filtered = (Block(main.names) for _ in range(3))
        self.entry, self.during, self.last = (Block(main.names) for _ in range(3))
        self._check_heads(axes)
        fields = [part for c in self.sections.convolutions for part in c.fields]
        for wide in dict.fromkeys(part.wide for part in fields):
            if wide is not None and wide != self.sections.key_axis:
                limit = f"{self.sections.kernel.name} needs {wide} <= 128, got {wide} = {{{wide}}}"
                main.require(compare("<=", Name(wide), PARTITIONS), limit)
        if self.tokens is not None:
            self.functions, self.constants = self.tokens.write(main, contract)
        main.banner("Heads of this core")
        return {axes[1]: share_of(main, Name(axes[1]), ("first_head", "own_heads"), self.shard)}

    def _check_heads(self, axes: tuple[str, ...]) -> None:
        """Raise CompileError where cores cannot share the first axis of heads of the state."""
        first = axes[1:2]
        fields = [(part, c.run.span) for c in self.sections.convolutions for part in c.fields]
        for port in self.sections.ports:
            if isinstance(port.section, Projection) and port.field.heads:
                fields.append((port.field, port.section.weight.span))
        for part, span in fields:
            if not first or part.heads[:1] != first:
                heads = ", ".join(part.heads) or "none"
                own = part.heads[0] if part.heads and part.heads[0] in axes else None
                raise refuse(
                    f"channels in front of a delta rule are those of its heads; the heads of "
                    f"`{part.name}` are [{heads}], those of the state [{', '.join(axes[1:])}]",
                    span,
                    label=f"expected heads that begin with `{first[0]}`" if first else "",
                    help=(f"give the state heads that begin with `{own}`, or " if own else "")
                    + "compute it in a kernel of its own",
                )

    def prepare(self, window: RowWindow) -> Mapping[Symbol, Placed]:
        entry, scan = self.sections.entry, bool(window.outer)
        rows = Rows(next(iter(window.outer), None), entry, window.axes[1:], window)
        windows = Windows(self.contract, window, rows, self.addresses, entry)
        self.loads.banner("What is small comes first, on ScalarE's ring")
        tiles = self._projected(window)
        for convolution in self.sections.convolutions:
            if not scan:
                windows.fetch(self.loads, convolution, tiles)
            windows.load(self.loads, convolution)
        raw = [*windows.fetched.values(), *windows.raw.values()]
        for convolution in self.sections.convolutions:
            windows.turn(self.ahead, convolution)
        if self.streamed is not None:
            held = bytes_of([*raw, *windows.taps.values()])
            self.streamed.write(self, held, self._later(rows))
        filtered = self._filtered(windows, tiles, scan=scan)
        self.functions = tuple(dict.fromkeys((*self.functions, *windows.functions.values())))
        return self._placed(rows, tiles, filtered, self.entry if scan else self.filtered)

    # ---- projections

    def _projected(self, window: RowWindow) -> dict[Port, View]:
        """Every port of a projection, on chip."""
        ports = [port for port in self.sections.ports if isinstance(port.section, Projection)]
        if not ports:
            return {}
        if window.outer:
            raise refuse(
                "a projection in front of a rule with sub-steps is not emitted for one token",
                self.sections.projections[0].weight.span,
                label="the weight of a projection",
                help="pass its result to this kernel as an input",
            )
        self.constants = (*constants_of(self.target), *STEP_CONSTANTS)
        projections = Projections(self.contract, window, self.made, self.main)
        self.streamed = Streamed(self.sections, projections, Name("total"))
        tiles = self.streamed.open(self.loads, self._element)
        self.functions = projections.functions
        return tiles

    def _later(self, rows: Rows) -> Number:
        """Bytes of a partition for what runs under the late weights: a tile of rows at most."""
        sections = self.sections
        sums: Number = ZERO
        for convolution in sections.convolutions:
            for part in convolution.fields:
                sums = sums + F32.bytes * (rows.columns(part) + rows.count)
        windows = [convolution.state for convolution in sections.convolutions]
        state = next(state for state in sections.kernel.states if state not in windows)
        inner = [a for a in state.type.axes if a not in (*rows.window.axes, sections.key_axis)]
        width, element = Name(inner[0]), self.contract.tensors[state.argument].element
        states = (rows.count + GROUP) * (element.bytes * width)
        return sums + states + VECTORS * (F32.bytes * width)

    def _element(self, port: Port) -> Element:
        """What a projection is kept in: what its only user rounds it to or multiplies it with."""
        for convolution in self.sections.convolutions:
            if port in convolution.token:
                return element_of(convolution.rounded)
        for projection in self.sections.projections:
            if projection.moving == port:
                return self._operand(projection)
        return F32

    def _operand(self, projection: Projection) -> Element:
        """What moves through a weight is in its dtype, or in that of the first activation."""
        if projection.weight.dtype != Dtype.F8E4M3:
            return self.contract.tensors[projection.weight.name].element
        moving = projection.moving
        if isinstance(moving, Input):
            return self.contract.tensors[moving.name].element
        assert isinstance(moving.section, Projection)
        return self._operand(moving.section)

    # ---- convolutions

    def _filtered(
        self, windows: Windows, tiles: Mapping[Port, View], *, scan: bool
    ) -> dict[tuple[Symbol, str], View]:
        """The sums of every field."""
        block, found = self.entry if scan else self.filtered, dict[tuple[Symbol, str], View]()
        if scan and any(c.run.valid_len is not None for c in self.sections.convolutions):
            windows.number_tokens(self.ahead)
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
