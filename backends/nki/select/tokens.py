"""The selector for the layout TOKENS: the tokens of a chunk on partitions, slots side by side.

A *slot* is one chunk of one lane. A value has as many columns of each slot as its wide axis has
elements, or one; where values of different widths meet, the narrow one is seen repeatedly (stride
0). By what it differs in, a term has

    KERNEL   one slot for everything
    TEAM     one slot per lane of the team
    INPUTS   one slot per lane and chunk of the group
    OUTPUTS  one slot per lane of the group, for the chunk `step` of each

Sums over the key axis of products of vectors that are there transposed are done by TensorE.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from backends.nki.program.build import part
from backends.nki.program.nodes import F32, Access, Pattern, Space, Tile, Token, View, dtype_of
from backends.nki.program.numbers import ONE, ZERO, Extent, Literal, Name, Number, number
from backends.nki.select.layouts import FOLDS, GPSIMD, MULTIPLY, SCALAR, VECTOR, Layout
from backends.nki.select.selector import Selector
from backends.nki.select.terms import Fold, Known, Leaf, Product, Stage, Term

CHUNK, SLOTS, LANES, STEPS = Name("CHUNK"), Name("slots"), Name("lanes"), Name("steps")
POSITION, STEP = Name("position"), Name("step")
_COUNTS = {Stage.KERNEL: ONE, Stage.TEAM: LANES, Stage.INPUTS: SLOTS, Stage.OUTPUTS: LANES}
"""Slots of a tile, by the stage of its term."""
_SLOTS: dict[tuple[Stage, Stage], tuple[tuple[tuple[Number, Number], ...], Number]] = {
    (Stage.KERNEL, Stage.TEAM): (((ZERO, LANES),), ZERO),
    (Stage.KERNEL, Stage.INPUTS): (((ZERO, SLOTS),), ZERO),
    (Stage.KERNEL, Stage.OUTPUTS): (((ZERO, LANES),), ZERO),
    (Stage.TEAM, Stage.INPUTS): (((ONE, LANES), (ZERO, STEPS)), POSITION),
    (Stage.TEAM, Stage.OUTPUTS): (((ONE, LANES),), POSITION),
    (Stage.INPUTS, Stage.OUTPUTS): (((STEPS, LANES),), STEP),
}
"""How the slots of one stage are seen from another: (step, count) in slots, and the first one."""
_PRODUCT = {VECTOR: 150.0, GPSIMD: 245.0}
"""Nanoseconds that a product of two tiles in SBUF takes per slot of 128 columns."""
_SQUARE = {VECTOR: 85.0, SCALAR: 125.0}
"""The same for a square of 16-bit vectors."""


@frozen
class Column:
    """A value per slot of a group that stands in a tile with a column per chunk of every lane."""

    tile: Tile
    first: Number
    per_lane: Number
    """Columns from one lane to the next; steps are neighbours."""


@define
class TokenSelector(Selector):
    """Lowers terms of the tokens of a group of chunks."""

    turned: dict[Leaf, Pattern] = field(factory=dict, kw_only=True)
    """Vectors along the key axis with keys on partitions, [K, slots, CHUNK]."""
    ones: View = field(kw_only=True)
    """Ones in the dtype of the turned vectors."""
    columns: dict[Term, Column] = field(factory=dict, kw_only=True)
    busy: dict[Token, float] = field(factory=dict, kw_only=True)
    """Work of engines per slot so far, so that products go to the one that has less."""
    vectors: bool = field(default=False, init=False)
    """Whether what is being computed has columns for a wide axis."""

    # ---- what a term is

    def is_tile(self, term: Term, layout: Layout) -> bool:
        """Everything but a number."""
        return not isinstance(term, Known)

    def per_slot(self, term: Term) -> Number:
        """Columns of one slot."""
        return ONE if term.wide is None else self.sizes[term.wide]

    def width(self, term: Term, layout: Layout) -> Number:
        """Elements per partition."""
        return _COUNTS[term.stage] * self.per_slot(term)

    def partitions(self, layout: Layout) -> Number:
        """Tokens of a chunk."""
        return CHUNK

    # ---- getting at values

    def value(self, term: Term, layout: Layout, at: Stage) -> Access | Number:
        """Return a term as it is seen from a stage, in its own width."""
        if isinstance(term, Known) or term in self.columns:
            return self._seen(term, at, self.per_slot(term))
        if (term, layout) not in self.held:
            self._compute(term, layout)
        return self._seen(term, at, self.per_slot(term))

    def at_stage(self, view: Access, at: Stage, layout: Layout) -> Access:
        """A view as it is: stages see slots, not partitions."""
        return view

    def spread(self, term: Term, layout: Layout, at: Stage, width: Number | None) -> Access:
        """A term in a tile of `width` columns for all slots together."""
        view = self.value(term, layout, at)
        if isinstance(view, Number):
            column = self.constants.column(view, at_least=CHUNK)
            return Pattern(column.tile, ((ONE, CHUNK), (ZERO, width or ONE)), ZERO)
        if width is None or width == _COUNTS[at] * self.per_slot(term):
            return view
        each = next(size for size in self.sizes.values() if _COUNTS[at] * size == width)
        seen = self._seen(term, at, each)
        assert not isinstance(seen, Number)
        return seen

    def alike(self, term: Term, layout: Layout, at: Stage, dst: Access) -> Access:
        """Return a term in the width of a tile that is written next to it."""
        width: Number = ONE
        for count in dst.shape[1:]:
            width = width * count
        return self.spread(term, layout, at, width)

    def _seen(self, term: Term, at: Stage, each: Number) -> Access | Number:
        """A term from a stage with `each` columns per slot, its own or those of one it meets."""
        if isinstance(term, Known):
            value = term.value
            return Literal(float(value.value)) if isinstance(value, Literal) else value
        own = self.per_slot(term)
        inner = () if each == ONE else ((ZERO if own == ONE else ONE, each),)
        if term in self.columns:
            column = self.columns[term]
            steps = ((column.per_lane, LANES), (ONE, STEPS), *inner)
            return Pattern(column.tile, ((column.tile.shape[1], CHUNK), *steps), column.first)
        view = self.held[term, Layout.TOKENS]
        if term.stage is at and own == each:
            return view
        tile = view.tile
        whole: tuple[tuple[tuple[Number, Number], ...], Number] = (((ONE, _COUNTS[at]),), ZERO)
        slots, first = whole if term.stage is at else _SLOTS[term.stage, at]
        steps = tuple((step * own, count) for step, count in slots)
        # A team has more lanes than the group at hand.
        row = Extent(tile.name, 1) if term.stage is Stage.TEAM else tile.shape[1]
        return Pattern(tile, ((row, CHUNK), *steps, *inner), first * own)

    # ---- computing

    def into(self, term: Term, dst: Access, layout: Layout = Layout.TOKENS) -> None:
        """Compute a term into `dst`; values per token are multiplied before they meet vectors."""
        outer, self.vectors = self.vectors, term.wide is not None
        Selector.into(self, self._narrow_first(term), dst, layout)
        self.vectors = outer

    def _narrow_first(self, term: Term) -> Term:
        if not isinstance(term, Product) or term.wide is None:
            return term
        narrow = [f for f in term.factors if f.wide is None]
        wide = [f for f in term.factors if f.wide is not None]
        coefficient = self.algebra.known(term.coefficient)
        if not narrow or (len(narrow) == 1 and term.coefficient == ONE):
            return term
        factor = self.algebra.product(coefficient, *narrow)
        self.algebra.whole.add(factor)
        # It is computed by itself, in its own width.
        self.uses[factor] += 2
        # Last, so that what lies in PSUM need not wait for it.
        return self.algebra.product(*wide, factor)

    def fold(self, name: str, arg: Term, dst: Access, at: Stage) -> None:
        """Reduce a term over its wide axis into `dst`, a column per slot."""
        data = self.access(arg, Layout.TOKENS, at)
        each, count = self.per_slot(arg), _COUNTS[at]
        steps = ((data.tile.shape[1], CHUNK), (each, count), (ONE, each))
        three = Pattern(data.tile, steps, ZERO)
        self.blocks[at].do(
            "tensor_reduce", dst=dst, op=Token(FOLDS[name]), data=three, axis=number(2)
        )

    def _compute(self, term: Term, layout: Layout) -> Access:
        if isinstance(term, Fold) and term.name == "sum":
            vectors = self._turned_vectors(term.arg)
            if vectors is not None:
                view = self._sum_keys(term.arg, vectors)
                self.hold(term, view, layout)
                return view
        return Selector._compute(self, term, layout)

    def _turned_vectors(self, arg: Term) -> tuple[Pattern, Pattern] | None:
        """The two factors of a product with keys on partitions, if they are there."""
        match arg:
            case Product(coefficient=Literal(value=1), factors=(Leaf() as a, Leaf() as b)):
                first, second = self.turned.get(a), self.turned.get(b)
                return None if first is None or second is None else (first, second)
            case _:
                return None

    def _sum_keys(self, arg: Term, vectors: tuple[Pattern, Pattern]) -> View:
        """A sum over partitions, a product with ones; it stays in PSUM."""
        block, keys = self.blocks[arg.stage], self.sizes[self.key_axis]
        outer, block.origin = block.origin, self.algebra.spans.get(arg, block.origin)
        stem = self.algebra.stem(arg)
        first, second = vectors
        element = dtype_of(first.tile.name, first.tile.element.bytes)
        products = block.tile(f"{stem}_T", (keys, SLOTS * CHUNK), element)
        if first == second and self.less_busy(_SQUARE) is SCALAR:
            block.do("activation", dst=products, op=Token("nl.square"), data=first)
        else:
            block.do(
                "tensor_tensor",
                dst=products,
                data1=first,
                data2=second,
                op=Token(MULTIPLY),
                engine=VECTOR,
            )
        sums = block.tile(f"sum_{stem}", (CHUNK, SLOTS), F32, Space.PSUM)
        with block.loop("slot", 0, SLOTS) as (body, slot):
            body.do(
                "nc_matmul",
                dst=part(sums, None, (slot, 1)),
                stationary=part(products, None, (slot * CHUNK, CHUNK)),
                moving=part(self.ones, (0, keys), (0, 1)),
                is_moving_onezero=True,
                accumulate=False,
            )
        block.origin = outer
        return sums

    def engine(self, op: str, at: Stage, first: Access, second: Access) -> Token | None:
        """Return the engine for an operator of two tiles: the less busy one of those that can."""
        there = all(view.tile.space is Space.SBUF for view in (first, second))
        if not there or not self.vectors or op not in (MULTIPLY, "nl.add"):
            return VECTOR
        return self.less_busy(_PRODUCT)

    def less_busy(self, costs: Mapping[Token, float]) -> Token:
        """Give work to the engine that has least with it, by what it costs each per slot, in ns."""
        after = {e: self.busy.get(e, 0.0) + cost for e, cost in costs.items()}
        engine = min(after, key=lambda e: after[e])
        self.busy[engine] = after[engine]
        return engine

    def _load(self, leaf: Leaf, layout: Layout) -> Access:
        raise ValueError(f"`{leaf.name}` is not there")
