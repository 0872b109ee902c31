"""The tensors of a filter: where a block of channels lies in HBM, and its windows on chip.

A block is `rows` rows of the batch from `row` on, and `many` channels of each of `lanes`
partitions: partition p holds channels `first + p * per + slot` onwards. The names are those of the
emitted functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from backends.nki.contract import Contract
from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import (
    F32,
    U8,
    Element,
    Operand,
    Pattern,
    Range,
    Tile,
    Token,
    View,
)
from backends.nki.program.numbers import NONE, ONE, ZERO, Literal, Name, Number
from backends.nki.schedules.addresses import Addresses, dimension, of_entry
from backends.nki.schedules.window.filter import Filter
from backends.nki.select.addressing import strides
from gdsl.ir.dims import Dim

FIRST, LANES, PER = Name("first"), Name("lanes"), Name("per")
ROW, ROWS, SLOT, MANY = Name("row"), Name("rows"), Name("slot"), Name("many")

SYNC: dict[str, Operand] = {
    "dge_mode": Token("nisa.dge_mode.hwdge"),
    "engine": Token("nisa.engine.sync"),
}
"""On SyncE's queue, whose triggers hold up no engine."""
SCALAR: dict[str, Operand] = {
    "dge_mode": Token("nisa.dge_mode.hwdge"),
    "engine": Token("nisa.engine.scalar"),
}
"""On ScalarE's queue; only for transfers whose operands are there when their turn comes."""


@frozen
class Tensors:
    """A filter's tensors as tiles."""

    filter: Filter
    contract: Contract
    taps: Number
    """Columns of the weights."""
    addresses: Addresses
    """Slots of a pool, tokens that were kept."""

    @property
    def columns(self) -> Number:
        """Columns of the window."""
        return Name(self.filter.axis)

    @property
    def before(self) -> int:
        """Column of the line (the window, then the tokens) that tap 0 of token 0 weighs."""
        return 1 if self.filter.newest_inside else 0

    def argument(self, name: str) -> Tile:
        """An argument of the kernel."""
        return self.contract.tensors[name]

    def block(
        self,
        tile: Tile,
        dims: Sequence[Dim],
        inner: tuple[str, Number, Number] | None = None,
        *,
        many: Number = MANY,
        slot: Number = SLOT,
        index: tuple[View, int] | None = None,
        one_row: Number | None = None,
    ) -> Pattern:
        """Return the block in HBM, [lanes, rows, many, inner]; `inner` is (axis, first, count).

        `slot` is the first channel, `one_row` the row of a block of one; `index` moves the block
        along a dimension at run time.
        """
        tensor, filter = strides(dims), self.filter
        channel, batch = tensor.of(filter.channel), tensor.of(filter.batch)
        steps: list[tuple[Number, Number]] = [(PER * channel, LANES)]
        if one_row is None:
            steps.append((batch, ROWS))
        if many != ONE:
            steps.append((channel, many))
        offset = (ROW if one_row is None else one_row) * batch + (FIRST + slot) * channel
        if inner is not None:
            step = tensor.of(inner[0])
            steps.append((step, inner[2]))
            offset = offset + inner[1] * step
        if index is None:
            return Pattern(tile, tuple(steps), offset)
        return Pattern(tile, tuple(steps), offset, index[0], index[1])

    def load_weights(self, block: Block) -> tuple[View, View | None]:
        """Bring in the taps, [lanes, many * taps], and the bias, [lanes, many]."""
        filter, taps = self.filter, self.taps
        weight = self.argument(filter.weight.name)
        weight_sb = block.tile("weight_sb", (LANES, MANY * taps), weight.element)
        source = Pattern(weight, ((PER * taps, LANES), (ONE, MANY * taps)), (FIRST + SLOT) * taps)
        block.do("dma_copy", dst=weight_sb, src=source, **SYNC)
        if filter.bias is None:
            return weight_sb, None
        bias = self.argument(filter.bias.name)
        bias_sb = block.tile("bias_sb", (LANES, MANY), bias.element)
        given, missing = block.inner(), block.inner()
        source = Pattern(bias, ((PER, LANES), (ONE, MANY)), FIRST + SLOT)
        given.do("dma_copy", dst=bias_sb, src=source, **SYNC)
        missing.do("memset", dst=bias_sb, value=Literal(float(filter.bias.default or 0.0)))
        self._if_missing(block, bias.name, missing, given)
        return weight_sb, bias_sb

    def load_windows(self, block: Block) -> View:
        """Bring in the old windows, [lanes, rows, many, columns]."""
        state = self.filter.state
        tile = self.argument(state.argument)
        shape = (LANES, ROWS, MANY, self.columns)
        window_sb = block.tile("window_sb", shape, self.window_element)
        if state.slots is not None or state.accepted is not None:
            self._addressed(block, tile, state.dims, window_sb, store=False)
            return window_sb
        given, missing = block.inner(), block.inner()
        source = self.block(tile, state.dims, (self.filter.axis, ZERO, self.columns))
        given.do("dma_copy", dst=window_sb, src=source, **SYNC)
        missing.do("memset", dst=window_sb, value=Literal(0.0))
        self._if_missing(block, tile.name, missing, given)
        if not self.filter.selects:
            return window_sb
        block.comment("Rows that start anew see zeros, whatever their window holds.")
        assert self.filter.unless is not None
        flags = self.argument(self.filter.unless.name)
        flag_sb = block.tile("flag_sb", (LANES, ROWS), flags.element)
        source = Pattern(flags, ((ZERO, LANES), (ONE, ROWS)), ROW)
        block.do("dma_copy", dst=flag_sb, src=source, **SYNC)
        keep_sb = block.tile("keep_sb", (LANES, ROWS), U8)
        block.do("tensor_copy", dst=keep_sb, src=flag_sb)
        start_sb = block.tile("start_sb", shape, self.window_element)
        block.do("memset", dst=start_sb, value=Literal(0.0))
        block.do(
            "tensor_copy_predicated",
            dst=start_sb,
            src=window_sb,
            predicate=self.per_row(keep_sb, MANY * self.columns),
        )
        return start_sb

    def per_row(self, flags: View, count: Number) -> Pattern:
        """A value per row, seen `count` times: [lanes, rows, count]."""
        return Pattern(flags.tile, ((ROWS, LANES), (ONE, ROWS), (ZERO, count)), ZERO)

    def store_windows(self, block: Block, new_sb: View) -> None:
        """Write the new windows, if the call returns them."""
        output = self.filter.new_state
        if output is None:
            return
        tile = self.contract.outputs[output.name]
        if self.filter.state.slots is not None:
            self._addressed(block, tile, output.dims, new_sb, store=True)
            return
        target = self.block(tile, output.dims, (self.filter.axis, ZERO, self.columns))
        block.do("dma_copy", dst=target, src=new_sb, **SYNC)

    def _addressed(
        self, block: Block, tile: Tile, dims: Sequence[Dim], chip: View, *, store: bool
    ) -> None:
        """Move windows whose place is known on the device, row by row; none outside a pool."""
        state, addresses = self.filter.state, self.addresses
        numbers = addresses.write(state) if store else addresses.read(state)
        place, skip = 0, {"oob_mode": Token("nisa.oob_mode.skip")}
        if state.slots is None:
            numbers, skip = addresses.kept(state), {}
            assert state.accepted is not None
            place = dimension(state.dims, state.accepted.axis)
        elif not store:
            block.do("memset", dst=chip, value=Literal(0.0), engine=Token("nisa.engine.gpsimd"))
        if numbers is None:
            return
        with block.loop("entry", ZERO, ROWS) as (body, entry):
            hbm = self.block(
                tile,
                dims,
                (self.filter.axis, ZERO, self.columns),
                index=(of_entry(numbers, ROW + entry), place),
                one_row=ROW + entry,
            )
            mine = part(chip, None, (entry, ONE), None, None)
            dst, src = (hbm, mine) if store else (mine, hbm)
            body.do("dma_copy", dst=dst, src=src, **skip)

    @property
    def window_element(self) -> Element:
        """What holds windows: a window that is left out has no dtype, it is that of the new one."""
        for output in (self.filter.new_state, self.filter.token_windows):
            if output is not None:
                return self.contract.outputs[output.name].element
        return self.argument(self.filter.state.argument).element

    @property
    def line_element(self) -> Element:
        """What holds the window and the tokens side by side: fp32 if their dtypes may differ."""
        same = self.filter.token.dtype == self.filter.state.dtype
        return self.argument(self.filter.token.name).element if same else F32

    @property
    def line_queue(self) -> dict[str, Operand]:
        """How tokens reach the line; hardware descriptors do not convert."""
        return SCALAR if self.filter.token.dtype == self.filter.state.dtype else {}

    def lengths(self) -> Number | None:
        """The condition that lengths are given; None for a kernel without."""
        if self.filter.length is None:
            return None
        name = self.filter.length.name
        if name in self.contract.optional:
            return compare("!=", Name(name), NONE)
        return Literal(True)

    def _if_missing(self, block: Block, name: str, missing: Block, given: Block) -> None:
        if name in self.contract.optional:
            block.decide(compare("==", Name(name), NONE), missing, given)
        else:
            block.extend(given)


def to_the_end(view: View, start: Number, count: Number) -> View:
    """The last `count` columns, which begin at `start`."""
    index = (*(None for _ in view.shape[1:]), Range(start, None))
    return View(view.tile, (*view.shape[:-1], count), index)
