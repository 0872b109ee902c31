"""Addresses of states that are known on the device only: slots of a pool, tokens that were kept.

The numbers lie in SBUF, on one partition, and address each transfer when the kernel runs. A slot
outside the pool skips the transfer: memory was zeroed before, so the row starts from zeros; nothing
is written, so the slot keeps its bits. A row without an initial state reads slot -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from attrs import define, field

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import F32, I32, U8, Integers, Operand, Pattern, Tile, Token, View
from backends.nki.program.numbers import ONE, ZERO, Literal, Name, Number
from backends.nki.select.helpers import QUEUE
from gdsl.ir.dims import Atom, Dim
from gdsl.ir.kernel import Input, Kernel, Slots, State
from gdsl.ir.node import Symbol


@define
class Addresses:
    """Brings in each vector of numbers once, [1, batch]."""

    kernel: Kernel
    tensors: Mapping[str, Tile]
    block: Block
    """Before anything else."""
    rows: dict[Symbol, View] = field(factory=dict)
    initial: dict[tuple[Symbol, Symbol], View] = field(factory=dict)
    """Slots to read where a flag says so."""
    entries: dict[Symbol, View] = field(factory=dict)
    """Entries to read where a flag says so."""

    def read(self, state: State) -> View | None:
        """The slot each entry reads; None for a state in no pool."""
        if state.slots is None:
            return None
        slots = self.numbers(state.slots.read)
        if state.unless is None:
            return slots
        key = (state.slots.read, state.unless)
        if key not in self.initial:
            self.initial[key] = self._selected(slots, state.unless)
        return self.initial[key]

    def carried(self, state: State) -> View | None:
        """The entry each one reads, -1 where a flag says that it starts anew; None for no flag.

        Of a state in no pool.
        """
        if state.unless is None or state.slots is not None:
            return None
        if state.unless not in self.entries:
            batch = Name(self._input(state.unless).type.axes[0])
            places = self.block.tile("entries_sb", (ONE, batch), I32)
            pattern = Integers(((ONE, batch),))
            self.block.do("iota", dst=places, pattern=pattern, offset=Literal(0))
            self.entries[state.unless] = self._selected(places, state.unless)
        return self.entries[state.unless]

    def write(self, state: State) -> View | None:
        """The slot each entry writes; None for none."""
        if state.slots is None or state.slots.write is None:
            return None
        return self.numbers(state.slots.write)

    def kept(self, state: State) -> View | None:
        """How many tokens of the last call each entry kept; None for a state without that."""
        if state.accepted is None:
            return None
        return self.numbers(state.accepted.symbol)

    def numbers(self, symbol: Symbol) -> View:
        """An input of one number per entry."""
        if symbol not in self.rows:
            self.rows[symbol] = self._loaded(symbol)
        return self.rows[symbol]

    def _loaded(self, symbol: Symbol) -> View:
        item = self._input(symbol)
        tensor, batch = self.tensors[item.name], Name(item.type.axes[0])
        row = self.block.tile(f"{tensor.name}_slots_sb", (ONE, batch), tensor.element)
        self.block.do("dma_copy", dst=row, src=View(tensor, tensor.shape), **QUEUE)
        return row

    def _selected(self, read: View, unless: Symbol) -> View:
        """The slots to read, -1 where the flag is false."""
        block, item, flag = self.block, self._input(unless), self.numbers(unless)
        predicate = block.tile(f"{item.name}_sb", flag.shape, U8)
        block.do("tensor_copy", dst=predicate, src=flag)
        chosen = block.tile("initial_slots_sb", flag.shape, I32)
        block.do("memset", dst=chosen, value=Literal(-1))
        block.do("tensor_copy_predicated", dst=chosen, src=read, predicate=predicate)
        return chosen

    def _input(self, symbol: Symbol) -> Input:
        return next(item for item in self.kernel.inputs if item.symbol == symbol)


def of_entry(numbers: View, entry: Number) -> View:
    """The number of one entry of the batch."""
    return part(numbers, None, (entry, ONE))


def dimension(dims: tuple[Dim, ...], axis: str) -> int:
    """Which dimension of a tensor an axis is."""
    return next(i for i, dim in enumerate(dims) if isinstance(dim, Atom) and dim.axis == axis)


def rows_in_use(
    block: Block,
    slots: Slots,
    tensors: Mapping[Symbol, Tile],
    partitions: Number,
    queue: Mapping[str, Operand] = MappingProxyType({}),
) -> View:
    """Find the rows that read or write a slot of the pool: 1 or 0, [partitions, batch], f32."""
    batch, size = Name(slots.batch), Name(slots.axis)
    shape = (partitions, batch)
    found: View | None = None
    for symbol in (slots.read, slots.write):
        if symbol is None:
            continue
        source = tensors[symbol]
        numbers_sb = block.tile(f"{source.name}_raw_sb", shape, source.element)
        every = Pattern(source, ((ZERO, partitions), (ONE, batch)), ZERO)
        block.do("dma_copy", dst=numbers_sb, src=every, **queue)
        slot_sb = block.tile(f"{source.name}_number_sb", shape, F32)
        block.do("tensor_copy", dst=slot_sb, src=numbers_sb)
        positive_sb = block.tile(f"{source.name}_positive_sb", shape, F32)
        block.do(
            "tensor_scalar",
            dst=positive_sb,
            data=slot_sb,
            op0=Token("nl.greater_equal"),
            operand0=Literal(0.0),
        )
        valid_sb = block.tile(f"{source.name}_valid_sb", shape, F32)
        block.do(
            "scalar_tensor_tensor",
            dst=valid_sb,
            data=slot_sb,
            op0=Token("nl.less"),
            operand0=size,
            op1=Token("nl.multiply"),
            operand1=positive_sb,
        )
        if found is not None:
            block.do(
                "tensor_tensor", dst=valid_sb, data1=valid_sb, data2=found, op=Token("nl.maximum")
            )
        found = valid_sb
    assert found is not None
    return found
