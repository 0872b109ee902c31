"""The mathematics of a chunked kernel around its rule, as terms over the kernel's inputs.

Vectors and outputs are terms of the layout TOKENS, scalar gates terms with a chunk's tokens along
the wide axis. q = base * factor with a factor per token (an l2 norm, a scale) stays apart:

    q = c q'     the factor of the output, o = c o': a norm costs a value per token and no pass
    k = r k'     r goes with the decays that meet k' anyway; the scores take k, rounded once

A vector that is anything else of inputs is computed as a whole, before the scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import define, field, frozen

from backends.nki.program.numbers import Name, Number
from backends.nki.refusal import refuse
from backends.nki.select.algebra import Algebra, split
from backends.nki.select.batched import BatchAlgebra
from backends.nki.select.terms import Known, Leaf, Product, Stage, Term, children
from backends.nki.select.translate import Translator
from gdsl.algorithm.chunk_plan import AnchoredSegments, ChunkPlan, DualSolve
from gdsl.algorithm.erasure import quotient
from gdsl.canonical.build import Builder
from gdsl.canonical.substitute import bind_arguments
from gdsl.ir.dims import Atom
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr, Ref
from gdsl.ir.kernel import Input, Kernel, Let, Output, Run
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import children as subexpressions
from gdsl.ir.types import Type


@frozen
class Vector:
    """An input tensor times a factor per token, or anything else that is computed as a whole."""

    item: Input
    """The input, or the first one that it is computed from."""
    base: Term
    factor: Term
    converted: bool = False
    """Whether the operands have another dtype than the tensor."""

    @property
    def computed(self) -> bool:
        """Whether there is no tensor to load it from."""
        return self.converted or not isinstance(self.base, Leaf)


@define
class Side:
    """Terms of one layout; inputs and definitions are translated when something needs them."""

    kernel: Kernel
    translator: Translator
    token: str
    """The axis of tokens."""
    inputs: dict[Leaf, Input] = field(factory=dict)
    counted: dict[str, str] = field(factory=dict)
    """The axes that an input of the kernel's own counts along, by its name."""

    def term(self, expr: Expr) -> Term:
        """Return an expression over the kernel's names as a term."""
        for symbol in _names(expr):
            if symbol not in self.translator.terms:
                self._define(symbol)
        return self.translator.term(expr)

    def _define(self, symbol: Symbol) -> None:
        for statement in self.kernel.body:
            if isinstance(statement, Let) and statement.target == symbol:
                self.term(statement.value)
                self.translator.define(symbol, statement.value)
                return
        item = next(i for i in self.kernel.inputs if i.symbol == symbol)
        axes = item.type.axes
        leaf = self.translator.leaf(symbol, axes, self._stage(axes), item.name, item.span)
        self.inputs[leaf] = item

    def index(self, axis: str) -> Term:
        """Return 0, 1, 2, ... along an axis: an input of the kernel's own."""
        symbol = Symbol(f"index_{axis}", -1)
        if symbol not in self.translator.terms:
            stage = self._stage((axis,))
            leaf = self.translator.leaf(symbol, (axis,), stage, symbol.name)
            kind = Type((axis,), Dtype.F32)
            self.counted[symbol.name] = axis
            self.inputs[leaf] = Input(symbol, symbol.name, Dtype.F32, (Atom(axis),), kind)
        return self.translator.terms[symbol]

    def _stage(self, axes: tuple[str, ...]) -> Stage:
        """What an input differs in."""
        if self.token in axes:
            return Stage.INPUTS
        rows = set(self.translator.rows) & set(axes)
        return Stage.TEAM if rows else Stage.KERNEL


@frozen
class Formulas:
    """What the stages of a chunked kernel compute from its inputs."""

    tokens: Side
    gates: Side
    query: Vector
    key: Vector
    read: Vector
    """What the state is read along before it is written: the key, unless the rule has another."""
    value: Vector
    log: Term
    """The log decay: of `gates`, or of `tokens` for a decay per channel; 0 without any."""
    beta: Term
    """Of `gates`."""
    result: Leaf
    """The output of the rule before the query's factor."""
    outputs: tuple[tuple[Output, Term], ...]
    """The tensors that are not the state, of `tokens`."""

    @property
    def own_read(self) -> bool:
        """Whether the state is read along another vector than it is written along."""
        return self.read is not self.key

    @property
    def indices(self) -> dict[str, str]:
        """The axes that inputs of the kernel's own count along, by their names."""
        return {**self.tokens.counted, **self.gates.counted}

    @property
    def algebra(self) -> BatchAlgebra:
        """The algebra of the layout TOKENS."""
        algebra = self.tokens.translator.algebra
        assert isinstance(algebra, BatchAlgebra)
        return algebra


def formulas_of(
    kernel: Kernel, run: Run, chunk: ChunkPlan, mapped: tuple[str, ...], outputs: tuple[Output, ...]
) -> Formulas:
    """Translate a kernel. Raises CompileError for what the chunked schedule cannot compute."""
    assert run.axis is not None
    builder = Builder(tuple(axis.name for axis in kernel.axes))
    form = "a schedule in chunks"
    tokens = Side(kernel, Translator(BatchAlgebra(), mapped, (run.axis,), form=form), run.axis)
    gates = Side(kernel, Translator(Algebra(), mapped, form=form), run.axis)
    for side in (tokens, gates):
        algebra = side.translator.algebra
        side.translator.index = side.index
        for param in kernel.params:
            side.translator.terms[param.symbol] = algebra.known(Name(param.name))
    solve, segments = chunk.solve, chunk.segments
    (emit,) = chunk.emits
    assert emit.query is not None
    assert not isinstance(solve, DualSolve)

    def bound(expr: Expr) -> Expr:
        return bind_arguments(expr, run, builder)

    if chunk.key is None or chunk.value is None or (solve is not None and solve.ratio is not None):
        raise refuse(
            "the chunked schedule needs something to write, with the factor of what is erased",
            run.span,
            help="use `--set form=recurrent`, token by token",
        )
    converted = chunk.operands is not None
    query = _vector(tokens, bound(emit.query), "the query", run, converted)
    along, ratio = _key(chunk.key, chunk, builder)
    key = _vector(tokens, bound(along), "the key", run, converted, whole=converted)
    read = key
    if solve is not None and solve.read != along:
        key = _vector(tokens, bound(along), "the key", run, converted, whole=True)
        read = _vector(tokens, bound(solve.read), "the read vector", run, converted, whole=True)
    value = _vector(tokens, bound(chunk.value), "the value", run, converted)
    algebra = tokens.translator.algebra
    assert isinstance(algebra, BatchAlgebra)
    channels = isinstance(segments, AnchoredSegments)
    log: Term = gates.translator.algebra.known(0.0)
    if segments is not None:
        log = (tokens if channels else gates).term(bound(segments.log))
    beta = gates.term(bound(ratio))
    leaf = algebra.leaf(run.results[0].name, chunk.value_axis, True, Stage.OUTPUTS)
    assert isinstance(leaf, Leaf)
    # One value per token, not its parts.
    algebra.whole |= {v.factor for v in (query, key, value) if not isinstance(v.factor, Known)}
    tokens.translator.terms[run.results[0]] = algebra.product(query.factor, leaf)
    return Formulas(
        tokens=tokens,
        gates=gates,
        query=query,
        key=key,
        read=read,
        value=value,
        log=log,
        beta=beta,
        result=leaf,
        outputs=tuple((output, tokens.term(output.value)) for output in outputs),
    )


def inputs_in(side: Side, terms: Iterable[Term]) -> Mapping[Leaf, Input]:
    """Return the inputs that terms are made of, in the order they are met."""
    found: dict[Leaf, Input] = {}
    pending = list(terms)
    while pending:
        term = pending.pop(0)
        if isinstance(term, Leaf) and term in side.inputs:
            found[term] = side.inputs[term]
        pending += children(term)
    return found


def numbers_of(terms: Iterable[Term]) -> Iterator[Number]:
    """Return the trace-time numbers in terms."""
    for term in terms:
        if isinstance(term, Known):
            yield term.value
        if isinstance(term, Product):
            yield term.coefficient
        yield from numbers_of(children(term))


def _key(written: Expr, chunk: ChunkPlan, builder: Builder) -> tuple[Expr, Expr]:
    """The written key without the factor that was absorbed into it, and that factor."""
    if chunk.absorbed is None:
        return written, builder.product(())
    along = quotient(written, chunk.absorbed, builder)
    assert along is not None
    return along, chunk.absorbed


def _vector(
    side: Side, expr: Expr, what: str, run: Run, converted: bool, *, whole: bool = False
) -> Vector:
    """A vector as an input times a factor per token (none when `whole`), or as what is computed."""
    algebra = side.translator.algebra
    term = side.term(expr)
    base, factor = (term, algebra.known(1)) if whole else split(algebra, term)
    if isinstance(base, Leaf) and base.wide is not None and base.stage is Stage.INPUTS:
        return Vector(side.inputs[base], base, factor, converted)
    items = inputs_in(side, (term,))
    own = next((i for leaf, i in items.items() if leaf.stage is Stage.INPUTS and leaf.wide), None)
    if own is None or term.wide is None or term.stage is not Stage.INPUTS:
        raise refuse(
            f"the chunked schedule needs {what} for every token, along its own axis",
            expr.span or run.span,
            help="compute it before the kernel, or use `--set form=recurrent`",
        )
    return Vector(own, term, algebra.known(1))


def _names(expr: Expr) -> Iterator[Symbol]:
    if isinstance(expr, Ref):
        yield expr.symbol
    for inner in subexpressions(expr):
        yield from _names(inner)
