"""The instruction selector: terms to instructions, for a layout and a place in the program.

Two layouts. ROWS: one row per partition, the wide axis free; KEYS: the key axis on partitions, rows
free. In either a term is a *number* (known when traced), a *column* (one value per partition, which
an instruction takes as a scalar operand) or a *tile*. Chains of binary operators are packed two to
an instruction: `tensor_scalar` (two scalars), `scalar_tensor_tensor` (a scalar, a tile),
`tensor_tensor`; an activation takes its scale and bias along.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Protocol

from attrs import define, field

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import (
    BF16,
    F16,
    F32,
    U8,
    Access,
    Element,
    Operand,
    Pattern,
    Space,
    Tile,
    Token,
    View,
    dtype_of,
)
from backends.nki.program.numbers import ONE, ZERO, Literal, Number, number
from backends.nki.select.algebra import Algebra
from backends.nki.select.constants import PARTITIONS, Constants
from backends.nki.select.terms import (
    Fold,
    Known,
    Leaf,
    Op,
    Product,
    Rounded,
    Stage,
    Term,
    children,
)


class Layout(Enum):
    """What lies on partitions; the value is the suffix of tile names."""

    ROWS = "sb"
    KEYS = "T_sb"


class Source(Protocol):
    """Where a leaf of the inputs comes from."""

    @property
    def key_major(self) -> bool:
        """Whether the key axis belongs on partitions."""

    @property
    def element(self) -> Element:
        """The tensor's element type."""

    def load(self, block: Block, dst: View, layout: Layout) -> None:
        """Bring the leaf's values for the rows of the tile into `dst`."""


BINARY = {
    "add": "nl.add",
    "sub": "nl.subtract",
    "max": "nl.maximum",
    "min": "nl.minimum",
    "lt": "nl.less",
    "le": "nl.less_equal",
    "gt": "nl.greater",
    "ge": "nl.greater_equal",
    "eq": "nl.equal",
    "ne": "nl.not_equal",
}
"""Operators of VectorE's two-operator instructions."""
ACTIVATIONS = {"exp": "nl.exp", "log": "nl.log", "tanh": "nl.tanh", "softplus": "nl.softplus"}
"""Operators of ScalarE: func(data * scale + bias)."""
FOLDS = {"sum": "nl.add", "max": "nl.maximum", "min": "nl.minimum"}
ROUNDED = {"bf16": BF16, "f16": F16, "f32": F32}
MULTIPLY = "nl.multiply"
VECTOR, SCALAR = Token("nisa.engine.vector"), Token("nisa.engine.scalar")
GPSIMD, TENSOR = Token("nisa.engine.gpsimd"), Token("nisa.engine.tensor")

Step = tuple[str, Term, bool]
"""(operator token, other operand, whether the other operand stands on the left)."""


@define
class Selector:
    """Lowers terms of one tile of rows. Each term is computed once, in the block of its stage."""

    algebra: Algebra
    sizes: dict[str, Number]
    """Sizes of the wide axes."""
    key_axis: str
    rows: Number
    """Rows in the tile (at most 128)."""
    sources: Mapping[Leaf, Source]
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
    uses: Counter[Term] = field(factory=Counter)
    leisure: bool = False
    """Whether what is asked for from the inputs alone is needed late."""
    functions: dict[str, Token] = field(factory=dict)
    """ScalarE's functions that were used, in order."""

    # ---- what a term is

    def count_uses(self, roots: Iterable[Term]) -> None:
        """Note how often each term is needed, so that shared ones are computed once."""
        pending = list(roots)
        while pending:
            term = pending.pop()
            self.uses[term] += 1
            if self.uses[term] == 1:
                pending += children(term)

    def key_major(self, term: Term) -> bool:
        """Whether a term along the key axis comes from tensors that have it before the rows."""
        if isinstance(term, Leaf):
            return term.wide == self.key_axis and self.sources[term].key_major
        wide = [child for child in children(term) if child.wide == self.key_axis]
        return bool(wide) and all(self.key_major(child) for child in wide)

    def is_tile(self, term: Term, layout: Layout) -> bool:
        """Whether a term has a value per partition and free index, not just per partition."""
        return term.wide is not None if layout is Layout.ROWS else term.rows

    def width(self, term: Term, layout: Layout) -> Number:
        """Elements per partition."""
        if not self.is_tile(term, layout):
            return ONE
        return self.rows if layout is Layout.KEYS else self.sizes[str(term.wide)]

    def partitions(self, layout: Layout) -> Number:
        """Partitions of a tile."""
        return self.rows if layout is Layout.ROWS else self.sizes[self.key_axis]

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
        return self._at(view, at, layout)

    def tile(self, term: Term, layout: Layout, at: Stage) -> Access:
        """Return a term as an operand with the full free extent of a tile."""
        return self._spread(term, layout, at, None)

    def _at(self, view: Access, at: Stage, layout: Layout) -> Access:
        """The partitions of a held view that an instruction of stage `at` works on."""
        if layout is not Layout.ROWS or not isinstance(view, View) or view.index is not None:
            return view
        if at is Stage.READS:
            return part(view, self.group, None)
        return part(view, (0, self.rows), None)

    def _spread(self, term: Term, layout: Layout, at: Stage, width: Number | None) -> Access:
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
        return self._at(fp32, at, layout)

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
        self.into(value, self._at(view, term.stage, layout), layout)
        block.place(view, since)
        self.hold(term, view, layout)
        return view

    def _new(self, term: Term, layout: Layout, element: Element) -> View:
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
        if along_keys and leaf.rows and source.key_major != (layout is Layout.KEYS):
            other = Layout.KEYS if source.key_major else Layout.ROWS
            return self._transposed(leaf, other)
        if not leaf.rows:
            return self._load_once(leaf, layout)
        shape = (self.partitions(layout), self.width(leaf, layout))
        view = self.loads.tile(f"{leaf.name}_{layout.value}", shape, source.element)
        source.load(self.loads, view, layout)
        self.loaded[view.tile] = leaf
        self.hold(leaf, view, layout)
        return view

    def _load_once(self, leaf: Leaf, layout: Layout) -> Access:
        """What is the same for all rows is brought in once, onto all partitions."""
        partitions = number(PARTITIONS) if layout is Layout.ROWS else self.partitions(layout)
        block = self.constants.loads
        shape = (partitions, self.width(leaf, layout))
        view = block.tile(f"{leaf.name}_{layout.value}", shape, self.sources[leaf].element)
        self.sources[leaf].load(block, view, layout)
        self.hold(leaf, view, layout)
        return view

    def _transposed(self, term: Term, home: Layout) -> View:
        other = Layout.ROWS if home is Layout.KEYS else Layout.KEYS
        view = self._new(term, other, F32)
        self.transpose(term, home, view)
        self.hold(term, view, other)
        return view

    def transpose(self, term: Term, home: Layout, dst: View) -> None:
        """Write a term that is kept in layout `home` into `dst` of the other one (TensorE)."""
        block = self.blocks[term.stage]
        data = self.value(term, home, term.stage)
        assert isinstance(data, View)
        turned = block.tile(
            f"{self.algebra.stem(term)}_turned_psum",
            (data.shape[1], data.shape[0]),
            dtype_of(data.tile.name, data.tile.element.bytes),
            Space.PSUM,
        )
        block.do("nc_transpose", dst=turned, data=data, engine=TENSOR)
        block.do("tensor_copy", dst=dst, src=turned, engine=SCALAR)

    def _broadcast(self, term: Term) -> View:
        """A column of rows, laid along the free axis and repeated on every key partition."""
        block = self.blocks[term.stage]
        column = self.column(term, Layout.ROWS, term.stage)
        name = self.algebra.stem(term)
        diagonal = block.tile(f"{name}_diagonal_sb", (self.rows, self.rows), F32)
        block.do(
            "tensor_scalar",
            dst=diagonal,
            data=part(self.constants.identity(), (0, self.rows), (0, self.rows)),
            op0=Token(MULTIPLY),
            operand0=column,
        )
        keys = self.sizes[self.key_axis]
        spread = block.tile(f"{name}_T_psum", (keys, self.rows), F32, Space.PSUM)
        block.do(
            "nc_matmul",
            dst=spread,
            stationary=part(self.constants.ones(), (0, self.rows), (0, keys)),
            moving=diagonal,
            is_stationary_onezero=True,
            accumulate=False,
        )
        view = block.tile(f"{name}_T_sb", (keys, self.rows), F32)
        block.do("tensor_copy", dst=view, src=spread, engine=VECTOR)
        self.hold(term, view, Layout.KEYS)
        return view

    def keys_into(self, term: Term, dst: View) -> None:
        """Write a vector along the key axis into `dst` with keys on partitions."""
        if not self.key_major(term):
            self.transpose(term, Layout.ROWS, dst)
        elif isinstance(term, Leaf) or (term, Layout.KEYS) in self.held:
            copy = self._access(term, Layout.KEYS, term.stage)
            self.blocks[term.stage].do("tensor_copy", dst=dst, src=copy, engine=VECTOR)
        else:
            self.into(term, dst, Layout.KEYS)
            self.hold(term, dst, Layout.KEYS)

    def into_held(self, term: Term, view: View) -> None:
        """Compute a row term into `view`, and keep it there."""
        self.into(term, self._at(view, term.stage, Layout.ROWS), Layout.ROWS)
        self.hold(term, view)

    # ---- one term into a destination

    def into(self, term: Term, dst: Access, layout: Layout = Layout.ROWS) -> None:
        """Compute a term into `dst`, rounding to its element type."""
        block = self.blocks[term.stage]
        outer, block.origin = block.origin, self.algebra.spans.get(term, block.origin)
        self._into(term, dst, layout)
        block.origin = outer

    def _into(self, term: Term, dst: Access, layout: Layout) -> None:
        at, block = term.stage, self.blocks[term.stage]
        if (term, layout) in self.held:
            block.do("tensor_copy", dst=dst, src=self._access(term, layout, at))
            return
        match term:
            case Op(name=name, args=(arg,)) if name in ACTIVATIONS:
                self.functions.setdefault(name, Token(ACTIVATIONS[name]))
                data, extra = self._activation(arg, layout, at)
                block.do("activation", dst=dst, op=Token(ACTIVATIONS[name]), data=data, **extra)
            case Product(factors=(a, b), coefficient=c) if (
                a is b and c == ONE and self.is_tile(a, layout)
            ):
                data = self._access(a, layout, at)
                block.do("activation", dst=dst, op=Token("nl.square"), data=data)
            case Op(name="reciprocal", args=(arg,)) if self._leisurely(term, layout):
                # A division of GpSimdE, which is idle, instead of 8 cycles per element of VectorE.
                self._power(arg, self.algebra.known(-1.0), dst, layout, at)
            case Op(name="reciprocal", args=(arg,)):
                block.do("reciprocal", dst=dst, data=self._access(arg, layout, at))
            case Op(name="rsqrt", args=(arg,)):
                # GpSimdE's is the accurate one, and it leaves ScalarE's table alone.
                data = self._access(arg, layout, at)
                block.do(
                    "tensor_scalar",
                    dst=dst,
                    data=data,
                    op0=Token("nl.rsqrt"),
                    operand0=Literal(0.0),
                    engine=GPSIMD,
                )
            case Op(name="power", args=(base, exponent)):
                self._power(base, exponent, dst, layout, at)
            case Op(name="abs", args=(arg,)):
                block.do(
                    "tensor_scalar",
                    dst=dst,
                    data=self._access(arg, layout, at),
                    op0=Token("nl.abs"),
                    operand0=Literal(0.0),
                )
            case Op(name="where", args=(condition, then, otherwise)):
                self._where(condition, then, otherwise, dst, layout, at)
            case Fold(name=name, arg=arg):
                self._fold(name, arg, dst, at)
            case Leaf() | Rounded():
                block.do("tensor_copy", dst=dst, src=self._access(term, layout, at))
            case _:
                self._pack(term, dst, layout)

    def _power(self, base: Term, exponent: Term, dst: Access, layout: Layout, at: Stage) -> None:
        """base ** exponent, which only GpSimdE has."""
        self.blocks[at].do(
            "tensor_tensor",
            dst=dst,
            data1=self._spread(base, layout, at, dst.shape[1]),
            data2=self._spread(exponent, layout, at, dst.shape[1]),
            op=Token("nl.power"),
            engine=GPSIMD,
        )

    def _leisurely(self, term: Term, layout: Layout) -> bool:
        """Whether nobody waits for a tile of the inputs, so that an idle engine may make it."""
        return self.leisure and term.stage is Stage.INPUTS and self.is_tile(term, layout)

    def _access(self, term: Term, layout: Layout, at: Stage) -> Access:
        view = self.value(term, layout, at)
        if isinstance(view, Number):
            return self.constants.column(view, at_least=self.partitions(layout))
        return view

    def _fold(self, name: str, arg: Term, dst: Access, at: Stage) -> None:
        block = self.blocks[at]
        if name == "sum" and arg.wide == self.key_axis and self.key_major(arg):
            # The key axis lies on partitions: TensorE adds over them.
            keys = self.sizes[self.key_axis]
            total = block.tile(
                f"sum_{self.algebra.stem(arg)}_psum", (self.rows, ONE), F32, Space.PSUM
            )
            block.do(
                "nc_matmul",
                dst=total,
                stationary=self._access(arg, Layout.KEYS, at),
                moving=part(self.constants.ones(), (0, keys), (0, 1)),
                is_moving_onezero=True,
                accumulate=False,
            )
            block.do("tensor_copy", dst=dst, src=total, engine=VECTOR)
            return
        data = self._access(arg, Layout.ROWS, at)
        block.do("tensor_reduce", dst=dst, op=Token(FOLDS[name]), data=data, axis=number(1))

    def _where(
        self, condition: Term, then: Term, otherwise: Term, dst: Access, layout: Layout, at: Stage
    ) -> None:
        block, width = self.blocks[at], dst.shape[1]
        if dst.tile.element != F32:
            # Both sides of the selection have one dtype; round afterwards.
            fp32 = block.tile(f"{dst.tile.name.removesuffix('_sb')}_f32_sb", dst.tile.shape, F32)
            target = self._at(fp32, at, layout)
            self._where(condition, then, otherwise, target, layout, at)
            block.do("tensor_copy", dst=dst, src=target, engine=SCALAR)
            return
        chosen = self._new(condition, layout, U8)
        at_chosen = self._at(chosen, at, layout)
        self.into(condition, at_chosen, layout)
        predicate: Access = at_chosen
        if width != ONE and not self.is_tile(condition, layout):
            start = self.group[0] if at is Stage.READS else ZERO
            predicate = Pattern(chosen.tile, ((ONE, dst.shape[0]), (ZERO, width)), start)
        block.do("tensor_copy", dst=dst, src=self._spread(otherwise, layout, at, width))
        source = self._spread(then, layout, at, width)
        if source.tile.element != F32:
            converted = self._at(self._new(then, layout, F32), at, layout)
            block.do("tensor_copy", dst=converted, src=source)
            source = converted
        block.do("tensor_copy_predicated", dst=dst, src=source, predicate=predicate)

    def _activation(
        self, arg: Term, layout: Layout, at: Stage
    ) -> tuple[Access, dict[str, Operand]]:
        """data, and scale and bias where `arg` is data * scale + bias."""
        extra: dict[str, Operand] = {}
        rest = arg
        if self._absorbs(rest, at) and isinstance(rest, Op) and rest.name in ("add", "sub"):
            a, b = rest.args
            if rest.name == "add" and self.is_tile(b, layout) > self.is_tile(a, layout):
                a, b = b, a
            if rest.name == "add" and not self.is_tile(b, layout):
                rest, extra["bias"] = a, self.column(b, layout, at)
            elif isinstance(b, Known):
                rest, extra["bias"] = a, -b.value
        if self._absorbs(rest, at) and isinstance(rest, Product):
            tiles = [f for f in rest.factors if self.is_tile(f, layout)]
            columns = [f for f in rest.factors if not self.is_tile(f, layout)]
            if len(tiles) <= 1:
                data = tiles[0] if tiles else columns.pop(0)
                scale = self.algebra.product(self.algebra.known(rest.coefficient), *columns)
                extra = {"scale": self.column(scale, layout, at), **extra}
                rest = data
        return self._access(rest, layout, at), extra

    # ---- chains of binary operators

    def _absorbs(self, term: Term, at: Stage) -> bool:
        """Whether a term may vanish inside the instruction of its only user."""
        return self.uses[term] <= 1 and term.stage is at and not self._is_held(term)

    def _is_held(self, term: Term) -> bool:
        return (term, Layout.ROWS) in self.held or (term, Layout.KEYS) in self.held

    def _chain(self, term: Term, layout: Layout, at: Stage, root: bool) -> tuple[Term, list[Step]]:
        """The operand a chain starts from, and the binary operators applied to it."""
        if not root and not self._absorbs(term, at):
            return term, []
        if isinstance(term, Product):
            return self._product_chain(term, layout, at)
        if isinstance(term, Op) and term.name in BINARY:
            a, b = term.args
            if self._spine_rank(b, layout, at) > self._spine_rank(a, layout, at):
                data, steps = self._chain(b, layout, at, False)
                return data, [*steps, (BINARY[term.name], a, True)]
            data, steps = self._chain(a, layout, at, False)
            return data, [*steps, (BINARY[term.name], b, False)]
        return term, []

    def _spine_rank(self, term: Term, layout: Layout, at: Stage) -> tuple[bool, bool, bool]:
        """What to build a chain on: a tensor, then a tile, then something that has steps itself."""
        binary = isinstance(term, Product) or (isinstance(term, Op) and term.name in BINARY)
        return (
            not isinstance(term, Known),
            self.is_tile(term, layout),
            binary and self._absorbs(term, at),
        )

    def _product_chain(self, term: Product, layout: Layout, at: Stage) -> tuple[Term, list[Step]]:
        factors = self._staged(term, at)
        tiles = [f for f in factors if self.is_tile(f, layout)]
        scalars = [f for f in factors if not self.is_tile(f, layout)]
        tensors = tiles or [f for f in scalars if not isinstance(f, Known)]
        start = max(tensors, key=lambda f: self._spine_rank(f, layout, at))
        (tiles if tiles else scalars).remove(start)
        data, steps = self._chain(start, layout, at, False)
        others = tiles if self.is_tile(start, layout) else []
        if self.is_tile(start, layout) and len(scalars) > max(1, len(others)) + (not others):
            scalars = [self.algebra.product(*scalars)]
        for other in others:
            if scalars:
                steps = [*steps, (MULTIPLY, scalars.pop(0), False)]
            steps = [*steps, (MULTIPLY, other, False)]
        return data, [*steps, *((MULTIPLY, scalar, False) for scalar in scalars)]

    def _staged(self, term: Product, at: Stage) -> list[Term]:
        """Factors, with those of earlier stages multiplied there (once per tile of rows)."""
        coefficient = self.algebra.known(term.coefficient)
        early = [f for f in term.factors if f.stage < at]
        late = [f for f in term.factors if f.stage is at]
        if not early or (len(early) == 1 and term.coefficient == ONE):
            return [*_known(coefficient), *early, *late]
        merged = self.algebra.product(coefficient, *early)
        return [merged, *late]

    def _pack(self, term: Term, dst: Access, layout: Layout) -> None:
        at, block = term.stage, self.blocks[term.stage]
        data, steps = self._chain(term, layout, at, True)
        current = self._access(data, layout, at)
        if not steps:
            block.do("tensor_copy", dst=dst, src=current)
            return
        pending = list(steps)
        while pending:
            taken = self._take(pending, layout)
            del pending[: len(taken)]
            target = dst if not pending else self._scratch(term, dst, layout)
            current = self._emit(block, target, current, taken, layout, at)

    def _scratch(self, term: Term, dst: Access, layout: Layout) -> Access:
        """Where an intermediate result of a chain goes: the destination itself if it is fp32."""
        if dst.tile.element == F32 and dst.tile.space is not Space.SHARED_HBM:
            return dst
        view = self._new(term, layout, F32)
        return self._at(view, term.stage, layout)

    def _take(self, steps: list[Step], layout: Layout) -> list[Step]:
        """The next one or two steps that one instruction can do."""
        first_is_tile = self.is_tile(steps[0][1], layout)
        return steps[:1] if first_is_tile else steps[:2]

    def _emit(
        self,
        block: Block,
        dst: Access,
        data: Access,
        steps: list[Step],
        layout: Layout,
        at: Stage,
    ) -> Access:
        operands = [self._operand(data, term, layout, at, dst) for _, term, _ in steps]
        tiles = [self.is_tile(term, layout) for _, term, _ in steps]
        if tiles == [True]:
            op, _, reverse = steps[0]
            first, second = (operands[0], data) if reverse else (data, operands[0])
            slow: dict[str, Operand] = {}
            if self.leisure and at is Stage.INPUTS and op == MULTIPLY and _in_sbuf(first, second):
                slow["engine"] = GPSIMD
            block.do("tensor_tensor", dst=dst, data1=first, data2=second, op=Token(op), **slow)
            return dst
        if at is Stage.READS and len(steps) == 1 and steps[0][0] == MULTIPLY:
            # ScalarE has time while VectorE updates the states.
            scale = operands[0]
            block.do("activation", dst=dst, op=Token("nl.copy"), data=data, scale=scale)
            return dst
        fields: dict[str, Operand] = {}
        for i, ((op, _, reverse), operand) in enumerate(zip(steps, operands, strict=True)):
            fields[f"op{i}"] = Token(op)
            fields[f"operand{i}"] = operand
            if reverse and op not in _COMMUTES:
                fields[f"reverse{i}"] = True
        opcode = "scalar_tensor_tensor" if any(tiles) else "tensor_scalar"
        block.do(opcode, dst=dst, data=data, **fields)
        return dst

    def _operand(
        self, data: Access, term: Term, layout: Layout, at: Stage, dst: Access
    ) -> Access | Number:
        if not self.is_tile(term, layout):
            return self.column(term, layout, at)
        view = self.value(term, layout, at)
        assert not isinstance(view, Number)
        if view.tile.space is Space.PSUM and data.tile.space is Space.PSUM:
            # Two PSUM operands are illegal: bring one over.
            block = self.blocks[at]
            copy = self._at(self._new(term, layout, F32), at, layout)
            block.do("tensor_copy", dst=copy, src=view, engine=SCALAR)
            return copy
        return view


def _in_sbuf(*operands: Operand) -> bool:
    return all(isinstance(o, View | Pattern) and o.tile.space is Space.SBUF for o in operands)


_COMMUTES = frozenset({MULTIPLY, "nl.add", "nl.maximum", "nl.minimum"})


def _immediate(value: Number) -> Number:
    """Immediates of instructions are floats."""
    return Literal(float(value.value)) if isinstance(value, Literal) else value


def _known(term: Term) -> list[Term]:
    return [] if isinstance(term, Known) and term.value == ONE else [term]
