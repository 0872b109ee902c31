"""What only the device knows of a row of the batch: where its state lies, how many tokens it has.

Slots of a pool, and flags that start rows from zeros, address the transfers of states. A row that
neither reads nor writes a slot has no live token: it is padding, like what lies behind the end of a
row. The numbers lie in SBUF, brought in once, and travel with the tensors.
"""

from __future__ import annotations

from attrs import define, field

from backends.nki.contract import Contract
from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import F32, I32, Pattern, View
from backends.nki.program.numbers import NONE, ONE, ZERO, Name
from backends.nki.refusal import refuse
from backends.nki.schedules.addresses import Addresses, dimension, rows_in_use
from backends.nki.schedules.chunked.operators import MULTIPLY
from backends.nki.schedules.chunked.records import PARTITIONS
from backends.nki.schedules.chunked.scan import Scan, Valid
from backends.nki.select.state_moves import Index
from gdsl.ir.dims import Atom
from gdsl.ir.kernel import Input


@define
class Entries:
    """Numbers of rows of one scan; what is None is not asked for by the text."""

    scan: Scan
    contract: Contract
    read: Index | None = field(init=False, default=None)
    """The entry of the state's tensor that each row reads, outside of it for none."""
    write: Index | None = field(init=False, default=None)
    """The slot that each row writes."""
    live: View | None = field(init=False, default=None)
    """Live tokens of each row on all partitions, f32."""

    addresses: Addresses | None = field(init=False, default=None)
    """What brought the numbers in, for windows in front of the rule."""

    @property
    def names(self) -> tuple[str, ...]:
        """The tiles."""
        found = (index.numbers for index in (self.read, self.write) if index is not None)
        tiles = (*found, *(view for view in (self.live,) if view is not None))
        return tuple(dict.fromkeys(view.tile.name for view in tiles))

    @property
    def live_tokens(self) -> View:
        """The live tokens of each row, of a kernel with a pool."""
        assert self.live is not None
        return self.live

    def bring_in(self, main: Block) -> None:
        """Add what loads and makes the numbers."""
        scan, state = self.scan, self.scan.state
        if state.slots is None and state.unless is None:
            return
        self._check()
        main.banner("States of rows")
        addresses = self.addresses = Addresses(scan.kernel, self.contract.tensors, main)
        if state.slots is None:
            numbers = addresses.carried(state)
            assert numbers is not None
            self.read = Index(numbers, dimension(state.dims, scan.mapped[0]))
            return
        reads, writes = addresses.read(state), addresses.write(state)
        place = dimension(state.dims, state.slots.axis)
        assert reads is not None
        assert writes is not None
        assert scan.valid is not None
        self.read, self.write = Index(reads, place), Index(writes, place)
        self.live = self._count(main, scan.valid)

    def _check(self) -> None:
        """Refuse a flag that is not over a dimension of the state by itself."""
        scan, state = self.scan, self.scan.state
        if state.slots is not None:
            return
        flag = next(i for i in scan.kernel.inputs if i.symbol == state.unless)
        if flag.type.axes != scan.mapped[:1] or Atom(scan.mapped[0]) not in state.dims:
            raise refuse(
                f"the flag `{flag.name}` is over [{', '.join(flag.type.axes)}], which is no "
                f"dimension of `{state.argument}`",
                state.span,
                help="let one dimension of the state be that of the flag",
            )

    def _count(self, main: Block, valid: Valid) -> View:
        """All tokens of a row, or its length; none of a row without a slot."""
        state, batch, total = self.scan.state, Name(self.scan.mapped[0]), Name(self.scan.axis)
        assert state.slots is not None
        tensors = self.contract.tensors
        arguments = {i.symbol: tensors[i.name] for i in self.scan.kernel.inputs}
        main.comment("A row that neither reads nor writes a slot of the pool has no tokens.")
        in_use = rows_in_use(main, state.slots, arguments, PARTITIONS)
        live = main.tile("live_tokens", (PARTITIONS, batch), F32)
        whole, given = main.inner(), main.inner()
        whole.do("tensor_scalar", dst=live, data=in_use, op0=MULTIPLY, operand0=total)
        if valid.length is None:
            main.extend(whole)
            return live
        _times_length(given, self.contract, valid.length, in_use, live)
        if valid.length.name in self.contract.optional:
            main.decide(compare("==", Name(valid.length.name), NONE), whole, given)
        else:
            main.extend(given)
        return live


def _times_length(
    block: Block, contract: Contract, length: Input, in_use: View, live: View
) -> None:
    tensor = contract.tensors[length.name]
    raw = block.tile(f"{length.name}_raw_sb", live.shape, I32)
    source = Pattern(tensor, ((ZERO, PARTITIONS), (ONE, live.shape[1])), ZERO)
    block.do("dma_copy", dst=raw, src=source)
    numbers = block.tile(f"{length.name}_sb", live.shape, F32)
    block.do("tensor_copy", dst=numbers, src=raw)
    block.do("tensor_tensor", dst=live, data1=numbers, data2=in_use, op=MULTIPLY)
