"""What a chunked kernel computes around its rule, by instruction selection.

Before: what the stages of the rule need and is no input, from the vectors of a group as they were
loaded. After: the outputs, from the rule's. Both are straight pieces, cut where engines would wait
for one another, so that the pipeline can do other work between the cuts (`cut`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field

from backends.nki.contract import Contract
from backends.nki.program.build import Block, Names
from backends.nki.program.mentions import used
from backends.nki.program.nodes import (
    F32,
    Allocate,
    Instruction,
    Pattern,
    Space,
    Statement,
    Tile,
    Token,
    View,
    dtype_of,
    tiles_in,
)
from backends.nki.program.numbers import ONE, ZERO, Literal, Name, Number
from backends.nki.refusal import refuse
from backends.nki.schedules.chunked.addresses import Addresses
from backends.nki.schedules.chunked.around_inputs import AroundInputs, Loaded, token_tile
from backends.nki.schedules.chunked.cut import cut, divided
from backends.nki.schedules.chunked.formulas import Formulas
from backends.nki.schedules.chunked.records import (
    CHUNK,
    KEYS,
    LANES,
    PAIR,
    PARTITIONS,
    SLOTS,
    TILES,
    VALUES,
    tile_of,
)
from backends.nki.schedules.chunked.scan import Scan
from backends.nki.schedules.chunked.slots import transpose_slots
from backends.nki.select.constants import Constants
from backends.nki.select.layouts import GPSIMD, SCALAR, VECTOR, Layout
from backends.nki.select.terms import Known, Leaf, Product, Stage, Term
from backends.nki.select.tokens import Column, TokenSelector
from gdsl.ir.kernel import Output

BUSY = {VECTOR: 2050.0, SCALAR: 2050.0, GPSIMD: 1020.0}
"""Nanoseconds per chunk and lane that the stages of the rule keep engines busy, without k_left and
with what one engine alone can do around them."""
BUSY_WITH_CHANNELS = {VECTOR: 3000.0, SCALAR: 3000.0, GPSIMD: 1000.0}
_SHARED_QUERIES = {VECTOR: 103.0, GPSIMD: 276.0}
"""Nanoseconds per chunk and lane of P^T from shared products."""
_OPERAND = dtype_of("kq_T", 4)
_TABLES = tuple(Token(f"nl.{name}") for name in ("sigmoid", "silu", "softplus", "tanh", "log"))
"""Functions of ScalarE for which it loads another table than that of exp."""


@define
class Around:
    """Statements before and after the rule, by where they run."""

    scan: Scan
    contract: Contract
    where: Addresses
    names: Names = field(factory=lambda: Names(_reserved()))
    blocks: dict[Stage, Block] = field(init=False)
    selector: TokenSelector = field(init=False)
    extra: list[Loaded] = field(factory=list)
    """What is brought in for the statements besides q, k and v."""
    results: list[tuple[Output, View]] = field(factory=list)
    """The outputs that are computed, and their tiles."""
    tables: list[list[Statement]] = field(factory=list)
    """What ScalarE computes with another function table than that of exp, and what that needs."""
    prologue: list[list[Statement]] = field(factory=list)
    """What scores wait for."""
    late: list[list[Statement]] = field(factory=list)
    """What only the carried state and the outputs wait for."""
    epilogue: list[list[Statement]] = field(factory=list)
    shared_queries: Token = GPSIMD
    """The engine that makes P^T from shared products."""

    def __attrs_post_init__(self) -> None:
        origin = self.scan.run.span
        stages = (Stage.KERNEL, Stage.TEAM, Stage.INPUTS, Stage.OUTPUTS)
        self.blocks = {stage: Block(self.names, origin=origin) for stage in stages}

    # ---- what is computed

    @property
    def formulas(self) -> Formulas:
        """The mathematics."""
        return self.scan.formulas

    @property
    def key_scaled(self) -> bool:
        """Whether the key has a factor."""
        return self.formulas.key.factor != self.formulas.algebra.known(1)

    @property
    def value_scaled(self) -> bool:
        """Whether v has a factor."""
        return self.formulas.value.factor != self.formulas.algebra.known(1)

    @property
    def query_scaled(self) -> bool:
        """Whether the query has a factor that differs from token to token."""
        return not isinstance(self.formulas.query.factor, Known)

    @property
    def log_computed(self) -> bool:
        """Whether a decay per channel is computed."""
        return self.scan.channels and not isinstance(self.formulas.log, Leaf)

    @property
    def output_computed(self) -> bool:
        """Whether the outputs are more than the rule's own times a number."""
        f = self.formulas
        plain = f.algebra.product(f.query.factor, f.result)
        # A query that is computed from nothing need not be 0.
        selected = f.query.computed and self.scan.valid is not None
        return selected or self.query_scaled or [term for _, term in f.outputs] != [plain]

    @property
    def turned(self) -> dict[str, tuple[str, Number]]:
        """Where vectors lie with keys on partitions: rows of scores side by side, columns."""
        rows = {"q_sb": ("kq_T", CHUNK)}
        if self.formulas.own_read:
            return {"k_sb": ("keys_T", ZERO), "p_sb": ("kq_T", ZERO), **rows}
        return {"k_sb": ("kq_T", ZERO), **rows}

    @property
    def used(self) -> set[str]:
        """Names that the statements mention."""
        return used([s for cut in (*self.before, *self.epilogue) for s in cut])

    @property
    def before(self) -> list[list[Statement]]:
        """All cuts before the rule."""
        return [*self.tables, *self.prologue, *self.late]

    @property
    def shared(self) -> list[Statement]:
        """What is the same for all tokens of a head."""
        return [*self.blocks[Stage.KERNEL].statements, *self.blocks[Stage.TEAM].statements]

    def select(self) -> None:
        """Fill the blocks; the outputs must have their tensors."""
        f, algebra = self.formulas, self.formulas.algebra
        self.selector = TokenSelector(
            algebra=algebra,
            sizes={self.scan.key_axis: KEYS, self.scan.value_axis: VALUES},
            key_axis=self.scan.key_axis,
            rows=CHUNK,
            sources={},
            constants=self._constants(),
            loads=Block(self.names),
            blocks=self.blocks,
            turned={
                vector.base: _half(*self.turned[name])
                for name, vector in (("q_sb", f.query), ("k_sb", f.key), ("p_sb", f.read))
                if isinstance(vector.base, Leaf) and name in self.turned and not vector.computed
            },
            ones=self._ones(),
            busy=dict(BUSY_WITH_CHANNELS if self.scan.channels else BUSY),
        )
        targets = dict(self._targets())
        outputs = [(o, term) for o, term in f.outputs if self.output_computed]
        roots = [*targets.values(), *(term for _, term in outputs)]
        self.selector.count_uses(roots)
        inputs = AroundInputs(self.scan, self.contract, self.where, self.selector, self.blocks)
        self.extra = inputs.hold(roots, self.log_computed)
        for name, term in targets.items():
            view = self._named(name, term)
            self.selector.into(term, view, Layout.TOKENS)
            self.selector.hold(term, view, Layout.TOKENS)
            place = "k_sb" if name == "k_unit" else name
            if place in self.turned:
                self._turn(view, *self.turned[place])
        if self.log_computed:
            self._mask_decays()
        if "k_unit" in targets and isinstance(f.key.base, Leaf):
            # What lies turned is the normalised key from here on.
            self.selector.turned.pop(f.key.base, None)
        for output, term in outputs:
            self._output(output, term)
        statements = self.blocks[Stage.INPUTS].statements
        # Apart: the pipeline does this for several groups at once, loading a table takes long.
        tables, others = divided(statements, _with_tables(statements))
        early, late = divided(others, ("g", "kq_T", "keys_T", *self._columns(others)))
        self.tables, self.prologue, self.late = cut(tables), cut(early), cut(late)
        self.epilogue = cut(self.blocks[Stage.OUTPUTS].statements)
        self.shared_queries = self.selector.less_busy(_SHARED_QUERIES)

    def _columns(self, statements: list[Statement]) -> list[str]:
        """What is one column per slot, which scores of a decay per channel are made with."""
        tiles = [s.tile for s in statements if isinstance(s, Allocate)]
        columns = [tile.name for tile in tiles if tile.shape == (CHUNK, SLOTS)]
        return columns if self.scan.channels else []

    def _ones(self) -> View:
        """Ones in the dtype of the operands, to add over partitions with."""
        block, query = self.blocks[Stage.KERNEL], self.scan.query
        if not (self.key_scaled or self.query_scaled):
            return tile_of("constants", "ones")
        element = dtype_of(query.name, self.contract.element(query.name, query.dtype).bytes)
        ones = block.tile("ones_of_operands", (PARTITIONS, ONE), element)
        block.do("memset", dst=ones, value=Literal(1.0))
        return ones

    def _turn(self, vectors: View, dst: str, first: Number) -> None:
        """Put computed vectors where those that came in are."""
        block, tile = self.blocks[Stage.INPUTS], vectors.tile
        shape = (KEYS, SLOTS * CHUNK)
        turned = block.tile(f"{tile.name}_T", shape, tile.element, Space.PSUM)
        transpose_slots(block, turned, vectors, KEYS)
        block.do("tensor_copy", dst=_half(dst, first), src=turned, engine=SCALAR)

    def _constants(self) -> Constants:
        block = self.blocks[Stage.KERNEL]
        return Constants(block, block, ones=tile_of("constants", "ones"))

    def _targets(self) -> Iterator[tuple[str, Term]]:
        """Tiles that the stages of the rule use, and their terms."""
        f, algebra = self.formulas, self.formulas.algebra
        if self.log_computed:
            yield "g", f.log
        if f.key.computed:
            yield "k_sb", f.key.base
        if f.own_read and f.read.computed:
            yield "p_sb", f.read.base
        if f.query.computed:
            yield "q_sb", f.query.base
        if self.key_scaled:
            yield "k_unit", algebra.product(f.key.factor, f.key.base)
            if self.scan.channels:
                beta = self._column("beta", "betas")
                yield "scaled_betas", algebra.product(beta, f.key.factor)
            else:
                since = "decays_before" if self.scan.before_decay else "decays"
                read = [("k_decayed", since)] if self.scan.chunk.solve is not None else []
                for name, tile in (*read, ("k_left", "left")):
                    column = algebra.product(self._column(tile, tile), f.key.factor)
                    yield name, algebra.product(column, f.key.base)
        if self.value_scaled or f.value.computed:
            yield "v", algebra.product(f.value.factor, f.value.base)
        if self.query_scaled:
            yield "q_factor", f.query.factor

    def _column(self, name: str, tile: str) -> Term:
        """A gate as a value per token and slot."""
        leaf = self.formulas.algebra.leaf(name, None, True, Stage.INPUTS)
        view = tile_of("gates", tile)
        column = Column(view.tile, Name("column"), Name("chunks"))
        self.selector.columns[leaf] = column
        return leaf

    def _named(self, name: str, term: Term) -> View:
        known = TILES["group"].get(name)
        element = F32 if known is not None and known[1] == F32 else _OPERAND
        tile = Tile(name, (CHUNK, self.selector.width(term, Layout.TOKENS)), element, Space.SBUF)
        return self.blocks[Stage.INPUTS].create(tile)

    # ---- decays per channel, outputs

    def _mask_decays(self) -> None:
        block = self.blocks[Stage.INPUTS]
        block.call("live_decays", Name("group"), Name("sizes"), Name("g"), result="g")

    def _output(self, output: Output, term: Term) -> None:
        axis = self.scan.value_axis
        if term.wide != axis or self.scan.axis not in output.value.type.axes:
            raise refuse(
                f"the chunked schedule stores outputs along `{axis}` for every token",
                output.span,
                help=f"leave out `{output.name}`, or compute it after the kernel",
            )
        tensor = self.contract.outputs[output.name]
        block = self.blocks[Stage.OUTPUTS]
        element = dtype_of(tensor.name, tensor.element.bytes)
        view = block.create(token_tile(f"{output.name}_sb", LANES * VALUES, element).tile)
        if term.stage is Stage.OUTPUTS:
            self.selector.into(term, view, Layout.TOKENS)
        else:
            made = self.selector.access(term, Layout.TOKENS, Stage.OUTPUTS)
            block.do("tensor_copy", dst=view, src=made, engine=VECTOR)
        self.results.append((output, view))


def _with_tables(statements: Sequence[Statement]) -> list[str]:
    """The tiles that ScalarE makes with a function other than exp."""
    found: list[str] = []
    for statement in statements:
        if isinstance(statement, Instruction) and statement.opcode == "activation":
            operands = dict(statement.operands)
            if operands["op"] in _TABLES:
                found += [tile.name for tile in tiles_in(operands["dst"])]
    return found


def vanishes(term: Term, result: Leaf) -> bool:
    """Whether an output is 0 where the rule's is, whatever finite values it meets."""
    return isinstance(term, Product) and result in term.factors


def _half(name: str, first: Number) -> Pattern:
    """The first (`first` 0) or second half (`first` CHUNK) of every slot, keys on partitions."""
    steps = ((SLOTS * PAIR, KEYS), (PAIR, SLOTS), (ONE, CHUNK))
    return Pattern(tile_of("group", name).tile, steps, first)


def _reserved() -> set[str]:
    return {name for fields in TILES.values() for name in fields}
