"""Gates that are computed from raw projections, by instruction selection.

Rows of the layout are the chunks of every lane, the wide axis is the tokens of a chunk: what a
head's constants do to all its tokens is a scalar operand, and a few instructions serve all chunks.
"""

from __future__ import annotations

from attrs import frozen

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import Element, Pattern, View
from backends.nki.program.numbers import NONE, ONE, ZERO, Literal, Name, Number
from backends.nki.program.structures import EMPTY
from backends.nki.refusal import refuse
from backends.nki.schedules.chunked.formulas import inputs_in
from backends.nki.schedules.chunked.records import CHUNK, COLUMNS, TEAM
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.select.constants import Constants
from backends.nki.select.layouts import Layout
from backends.nki.select.selector import Selector
from backends.nki.select.terms import Known, Leaf, Stage, Term
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input

CHUNKS, FIRST = Name("chunks"), Name("first_chunk")
TOKENS = Name("tokens")


def raw(schedule: Schedule, term: Term) -> Input | None:
    """Return the input that a gate is, if it is one that needs nothing but loading."""
    item = schedule.scan.formulas.gates.inputs.get(term) if isinstance(term, Leaf) else None
    plain = item is not None and item.dtype is Dtype.F32 and item.default is None
    return item if plain and isinstance(term, Leaf) and term.wide is not None else None


def inputs_of(schedule: Schedule, terms: tuple[Term, ...]) -> tuple[Input, ...]:
    """Return the inputs that gates are made of."""
    return tuple(inputs_in(schedule.scan.formulas.gates, iter(terms)).values())


def computed(schedule: Schedule, block: Block, terms: dict[Term, View]) -> None:
    """Add the instructions that compute gates into views of [chunks, tokens]."""
    side = schedule.scan.formulas.gates
    inputs = inputs_in(side, iter(terms))
    selector = Selector(
        algebra=side.translator.algebra,
        sizes={schedule.scan.axis: CHUNK},
        key_axis="",
        rows=COLUMNS,
        sources={leaf: _Source(schedule, item, leaf) for leaf, item in inputs.items()},
        constants=Constants(block, block),
        loads=block,
        blocks=dict.fromkeys(Stage, block),
    )
    selector.count_uses(terms)
    for term, view in terms.items():
        if isinstance(term, Known):
            block.do("memset", dst=view, value=term.value)
        elif term.wide is None:
            block.comment("The same for every token.")
            spread = selector.spread(term, Layout.ROWS, term.stage, CHUNK)
            block.do("tensor_copy", dst=view, src=spread)
        else:
            selector.into(term, view, Layout.ROWS)


@frozen
class _Source:
    """An input of gates: a value per token, per lane, or for all."""

    schedule: Schedule
    item: Input
    leaf: Leaf

    @property
    def key_major(self) -> bool:
        """Tokens always lie along the free axis."""
        return False

    @property
    def element(self) -> Element:
        """The tensor's element type."""
        return self.schedule.contract.tensors[self.item.name].element

    def load(self, block: Block, dst: View, layout: Layout, first_key: Number = ZERO) -> None:
        """Bring in the chunks of the team."""
        del layout, first_key
        given = block.inner()
        if not self.leaf.rows and self.leaf.wide is None:
            tensor = self.schedule.contract.tensors[self.item.name]
            repeated = ((ZERO, dst.shape[0]), (ONE, ONE))
            given.do("dma_copy", dst=dst, src=Pattern(tensor, repeated, ZERO))
        elif self.leaf.wide is None:
            self._per_lane(given, dst)
        else:
            self._per_token(given, dst)
        if self.item.default is None:
            block.extend(given)
            return
        if self.leaf.wide is not None or isinstance(self.item.default, str):
            raise refuse(
                f"`{self.item.name}` may be missing, which the chunked schedule lacks for values "
                "of every token",
                self.item.span,
            )
        missing = block.inner()
        missing.do("memset", dst=dst, value=Literal(float(self.item.default)))
        block.decide(compare("==", Name(self.item.name), NONE), missing, given)

    def _offsets(self, block: Block, token: Number) -> Number:
        name = f"{self.item.name}_offsets"
        offsets = block.let_named(name, EMPTY)
        with block.each(("lane",), TEAM) as body:
            body.append(name, self.schedule.where.offset(self.item.name, token))
        return offsets

    def _per_lane(self, block: Block, dst: View) -> None:
        tensor = self.schedule.contract.tensors[self.item.name]
        source = View(tensor, tensor.shape)
        block.call("load_per_lane", dst, source, self._offsets(block, ZERO), CHUNKS)

    def _per_token(self, block: Block, dst: View) -> None:
        load_tokens(self.schedule, block, self.item, dst, self._offsets(block, FIRST * CHUNK))


def load_tokens(schedule: Schedule, block: Block, item: Input, dst: View, offsets: Number) -> None:
    """Add the transfer of a value per token; rows of chunks that end early are zero behind."""
    tensor = schedule.contract.tensors[item.name]
    step = schedule.where.stride(item, schedule.scan.axis)
    with block.when(compare(">", TOKENS % CHUNK, 0)) as tail:
        tail.do("memset", dst=dst, value=Literal(0.0))
    block.call("load_gate", dst, View(tensor, tensor.shape), offsets, step, CHUNKS, TOKENS)
