"""The instruction selector: terms to instructions, for a layout and a place in the program.

What a term is in a layout, a column or a tile of which size, `extents` knows. Here it is decided
where a term is computed and kept; `instructions` and `chains` say by what.
"""

from __future__ import annotations

from attrs import define, field

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import (
    F32,
    U8,
    Access,
    Element,
    Pattern,
    Range,
    Space,
    Tile,
    Token,
    View,
)
from backends.nki.program.numbers import ONE, ZERO, Literal, Number, number
from backends.nki.select.algebra import Algebra
from backends.nki.select.constants import PARTITIONS, Constants
from backends.nki.select.extents import Extents
from backends.nki.select.instructions import fold_rows, write
from backends.nki.select.layouts import (
    GPSIMD,
    MULTIPLY,
    ROUNDED,
    VECTOR,
    Layout,
    Placed,
    Source,
)
from backends.nki.select.terms import (
    Fold,
    Known,
    Leaf,
    Rounded,
    Stage,
    Term,
    children,
)
from backends.nki.select.turning import repeat, turn_to_keys, turn_to_rows


@define
class Selector(Extents):
    """Lowers terms of one tile of rows. Each term is computed once, in the block of its stage."""

    algebra: Algebra
    constants: Constants
    loads: Block
    """Where the rows of inputs are brought in."""
    blocks: dict[Stage, Block]
    """Where terms are computed, by stage; a schedule moves it while it asks for terms."""
    group: tuple[Number, Number] = (ZERO, ONE)
    """First row and number of rows of the group, where a READS term is computed."""
    held: dict[tuple[Term, Layout], Access] = field(factory=dict)
    loaded: dict[Tile, Leaf] = field(factory=dict)
    """Which input each loaded tile holds."""
    leisure: bool = False
    """Whether what is asked for from the inputs alone is needed late."""
    functions: dict[str, Token] = field(factory=dict)
    """ScalarE's functions that were used, in order."""

    # ---- getting at values

    def hold(self, term: Term, view: Access, layout: Layout = Layout.ROWS) -> None:
        """Declare where a term is kept."""
        self.held[term, layout] = view

    def value(self, term: Term, layout: Layout, at: Stage) -> Access | Number:
        """Return the operand that holds a term, for an instruction of stage `at`."""
        if isinstance(term, Known):
            return _immediate(term.value)
        view = self.held.get((term, layout))
        if view is None:
            view = self._compute(term, layout)
        return self.at_stage(view, at, layout)

    def tile(self, term: Term, layout: Layout, at: Stage) -> Access:
        """Return a term as an operand with the full free extent of a tile."""
        return self.spread(term, layout, at, None)

    def at_stage(self, view: Access, at: Stage, layout: Layout) -> Access:
        """The partitions of a held view that an instruction of stage `at` works on."""
        if layout is not Layout.ROWS or not isinstance(view, View) or view.index is not None:
            return view
        if at is Stage.READS:
            return part(view, self.group, None)
        return part(view, (0, self.rows), None)

    def spread(self, term: Term, layout: Layout, at: Stage, width: Number | None) -> Access:
        """A term as a tile of `width` columns; a column is seen repeatedly (stride 0)."""
        view = self.value(term, layout, at)
        if isinstance(view, Number):
            view = self.constants.column(view, at_least=self.partitions(layout))
        if width is None or self.is_tile(term, layout) or width == ONE:
            return view
        start, count = self.group if at is Stage.READS else (ZERO, self.partitions(layout))
        return Pattern(view.tile, ((ONE, count), (ZERO, width)), start)

    def column(self, term: Term, layout: Layout, at: Stage) -> Access | Number:
        """A scalar operand: a number, or an fp32 column."""
        view = self.value(term, layout, at)
        if isinstance(view, Number) or view.tile.element == F32:
            return view
        block = self.blocks[term.stage]
        name = f"{self.algebra.stem(term)}_f32_{layout.value}"
        fp32 = block.tile(name, (self.partitions(layout), ONE), F32)
        block.do("tensor_copy", dst=fp32, src=self.value(term, layout, term.stage), engine=VECTOR)
        self.hold(term, fp32, layout)
        return self.at_stage(fp32, at, layout)

    # ---- computing

    def _compute(self, term: Term, layout: Layout) -> Access:
        if isinstance(term, Leaf):
            return self._load(term, layout)
        if isinstance(term, Rounded):
            return self._compute_into_new(term, term.arg, ROUNDED[term.dtype], layout)
        along_keys = term.wide == self.key_axis
        if layout is Layout.ROWS and along_keys and self.key_major(term):
            return self._transposed(term, Layout.KEYS)
        if layout is Layout.KEYS and along_keys and not self.key_major(term):
            return self._transposed(term, Layout.ROWS)
        known = (term, Layout.ROWS) in self.held or not self._plain(term)
        if layout is Layout.KEYS and term.wide is None and term.rows and known:
            return self._broadcast(term)
        return self._compute_into_new(term, term, F32, layout)

    def _compute_into_new(
        self, term: Term, value: Term, element: Element, layout: Layout
    ) -> Access:
        block = self.blocks[term.stage]
        since = len(block.statements)
        shape = (self.partitions(layout), self.width(term, layout))
        view = block.later(f"{self.algebra.stem(term)}_{layout.value}", shape, element)
        self.into(value, self.at_stage(view, term.stage, layout), layout)
        block.place(view, since)
        self.hold(term, view, layout)
        return view

    def new(self, term: Term, layout: Layout, element: Element) -> View:
        shape = (self.partitions(layout), self.width(term, layout))
        return self.blocks[term.stage].tile(
            f"{self.algebra.stem(term)}_{layout.value}", shape, element
        )

    def _plain(self, term: Term) -> bool:
        """Whether a term can be computed again in another layout: no reductions, inputs only."""
        if isinstance(term, Fold) or term.stage is not Stage.INPUTS:
            return False
        return all(self._plain(child) for child in children(term))

    def _load(self, leaf: Leaf, layout: Layout) -> Access:
        source = self.sources[leaf]
        along_keys = leaf.wide == self.key_axis
        if isinstance(source, Placed):
            return self._placed(leaf, source.view, source.layout, layout)
        if along_keys and leaf.rows and source.key_major != (layout is Layout.KEYS):
            other = Layout.KEYS if source.key_major else Layout.ROWS
            return self._transposed(leaf, other)
        if not leaf.rows and layout is Layout.KEYS and self.is_tile(leaf, layout):
            return self._transposed(leaf, Layout.ROWS)
        if not leaf.rows:
            return self._load_once(leaf, source, layout)
        shape = (self.partitions(layout), self.width(leaf, layout))
        view = self.loads.tile(f"{leaf.name}_{layout.value}", shape, source.element)
        if layout is Layout.KEYS:
            tiles = [*self.keys] if along_keys else self.keys.whole
            if along_keys:
                self.keys.clear(self.loads, view, self.rows)
            for tile in tiles:
                source.load(self.loads, tile.of(view, self.rows), layout, tile.first)
        else:
            source.load(self.loads, view, layout)
        self.loaded[view.tile] = leaf
        self.hold(leaf, view, layout)
        return view

    def _placed(self, leaf: Leaf, view: View, home: Layout, layout: Layout) -> Access:
        """What another section left on chip, turned if need be."""
        if home is layout:
            self.hold(leaf, view, layout)
            return view
        if leaf.wide is None:
            self.hold(leaf, view, home)
            return self._broadcast(leaf)
        turned = self.new(leaf, layout, F32)
        self._turn(leaf, view, turned, onto=layout)
        self.hold(leaf, turned, layout)
        return turned

    def _load_once(self, leaf: Leaf, source: Source, layout: Layout) -> Access:
        """What is the same for all rows is brought in once, onto all partitions."""
        partitions = number(PARTITIONS) if layout is Layout.ROWS else self.partitions(layout)
        block = self.constants.loads
        shape = (partitions, self.width(leaf, layout))
        view = block.tile(f"{leaf.name}_{layout.value}", shape, source.element)
        source.load(block, view, layout)
        self.hold(leaf, view, layout)
        return view

    def _transposed(self, term: Term, home: Layout) -> View:
        other = Layout.ROWS if home is Layout.KEYS else Layout.KEYS
        view = self.new(term, other, F32)
        self.transpose(term, home, view)
        self.hold(term, view, other)
        return view

    def transpose(self, term: Term, home: Layout, dst: View) -> None:
        """Write a term that is kept in layout `home` into `dst` of the other one (TensorE)."""
        data = self.value(term, home, term.stage)
        assert isinstance(data, View)
        self._turn(term, data, dst, onto=Layout.ROWS if home is Layout.KEYS else Layout.KEYS)

    def _turn(self, term: Term, data: View, dst: View, onto: Layout) -> None:
        block, stem, rows = self.blocks[term.stage], self.algebra.stem(term), self.rows
        if onto is Layout.KEYS and dst.shape[1] != self.tiles * self.rows:
            # The same for all rows, and in the columns of one of them.
            rows, data = ONE, View(data.tile, (ONE, data.shape[1]), (Range(ZERO, ONE), None))
        if onto is Layout.KEYS:
            turn_to_keys(block, stem, data, dst, self.keys, rows)
        else:
            turn_to_rows(block, stem, data, dst, self.keys, rows)

    def _broadcast(self, term: Term) -> View:
        """A column of rows, laid along the free axis and repeated on every key partition."""
        column = self.column(term, Layout.ROWS, term.stage)
        block, stem = self.blocks[term.stage], self.algebra.stem(term)
        view = repeat(block, self.constants, stem, column, self.keys, self.rows)
        self.hold(term, view, Layout.KEYS)
        return view

    def keys_into(self, term: Term, dst: View) -> None:
        """Write a vector along the key axis into `dst` with keys on partitions."""
        if not self.key_major(term):
            self.transpose(term, Layout.ROWS, dst)
        elif isinstance(term, Leaf) or (term, Layout.KEYS) in self.held:
            copy = self.access(term, Layout.KEYS, term.stage)
            self.blocks[term.stage].do("tensor_copy", dst=dst, src=copy, engine=VECTOR)
        else:
            self.into(term, dst, Layout.KEYS)
            self.hold(term, dst, Layout.KEYS)

    def into_held(self, term: Term, view: View) -> None:
        """Compute a row term into `view`, and keep it there."""
        self.into(term, self.at_stage(view, term.stage, Layout.ROWS), Layout.ROWS)
        self.hold(term, view)

    # ---- one term into a destination

    def into(self, term: Term, dst: Access, layout: Layout = Layout.ROWS) -> None:
        """Compute a term into `dst`, rounding to its element type."""
        block = self.blocks[term.stage]
        outer, block.origin = block.origin, self.algebra.spans.get(term, block.origin)
        write(self, term, dst, layout)
        block.origin = outer

    def fold(self, name: str, arg: Term, dst: Access, at: Stage) -> None:
        """Reduce a term over its wide axis into `dst`."""
        fold_rows(self, name, arg, dst, at)

    def engine(self, op: str, at: Stage, first: Access, second: Access) -> Token | None:
        """Return the engine for an operator of two tiles, None for the one it has by itself."""
        slow = self.leisure and at is Stage.INPUTS and op == MULTIPLY
        return GPSIMD if slow and _all_in_sbuf(first, second) else None

    def alike(self, term: Term, layout: Layout, at: Stage, dst: Access) -> Access:
        """Return a term as an operand next to which `dst` is written."""
        del dst
        return self.access(term, layout, at)

    def predicate(self, condition: Term, layout: Layout, at: Stage, width: Number) -> Access:
        """Return a condition as bytes, in the width of the tile it selects for."""
        chosen = self.new(condition, layout, U8)
        self.into(condition, self.at_stage(chosen, condition.stage, layout), layout)
        self.hold(condition, chosen, layout)
        return self.spread(condition, layout, at, width)

    def in_sbuf(self, term: Term, layout: Layout, at: Stage) -> Access:
        """Return a term for an engine that does not reach PSUM."""
        view = self.access(term, layout, at)
        if view.tile.space is not Space.PSUM:
            return view
        copy = self.at_stage(self.new(term, layout, F32), at, layout)
        self.blocks[at].do("tensor_copy", dst=copy, src=view, engine=VECTOR)
        return copy

    def access(self, term: Term, layout: Layout, at: Stage) -> Access:
        view = self.value(term, layout, at)
        if isinstance(view, Number):
            return self.constants.column(view, at_least=self.partitions(layout))
        return view


def _all_in_sbuf(*views: Access) -> bool:
    return all(view.tile.space is Space.SBUF for view in views)


def _immediate(value: Number) -> Number:
    """Immediates of instructions are floats."""
    return Literal(float(value.value)) if isinstance(value, Literal) else value
