"""A delta recurrence over the *old* state: what is read, what is added, what comes out.

With D the decay, a the read vector and e, w the erase and write keys (canonical form), everything a
step needs from the state can be read before it changes:

    R_b = sum[K](b * S_old)                     for each distinct base b of the reads
    r   = factor_a * R_a                        a = base_a * factor_a, times D when it reads after
    S   = D * S_old + sum_b b (x) delta_b       delta_b = what the write and the erase add along b
    o   = factor_q * R_q + sum_b (q . b) delta_b + skip

`split` takes every factor without the key axis out of the vectors (L2 norms, scales, a scalar
decay), so that the bases are raw inputs: nothing is normalised before it meets the state. A decay
along K stays with the base.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from backends.nki.program.numbers import Literal, Name, Number
from backends.nki.refusal import refuse
from backends.nki.select.algebra import Algebra, split
from backends.nki.select.terms import Known, Op, Product, Rounded, Stage, Term
from backends.nki.select.translate import Translator
from gdsl.canonical.form import Delta, Emit, ReadWhen
from gdsl.ir.kernel import Run
from gdsl.ir.node import Symbol


@frozen
class Update:
    """`key` (x) `delta` is added to the decayed state."""

    key: Term
    """Along K, from the inputs."""
    delta: Term
    """Along V."""


@frozen
class DeltaTerms:
    """One step of a delta recurrence in terms of the old state."""

    reads: tuple[Term, ...]
    """Vectors along K, contracted with the old state."""
    read_results: tuple[Term, ...]
    """A leaf along V for each read."""
    decay: Term | None
    """Multiplies the state: a number, a row value, or a vector along K. None: no decay."""
    updates: tuple[Update, ...]
    outputs: tuple[tuple[Symbol, Term], ...]
    exact: frozenset[Term] = frozenset()
    """Reads of an output behind an erasure. What the erasure takes away again is in them, so that
    an error relative to the old state could be large against the new one."""


def delta_terms(
    translator: Translator,
    run: Run,
    delta: Delta,
    alive: Term | None = None,
    first: Number | None = None,
) -> DeltaTerms:
    """Return the terms of a run. Where `alive` is 0 the decay is 1: the identity, if keys are 0.

    `first` is 1 in the first of several sub-steps of a token, which decays the state, else 0.
    Raises CompileError for a form the decode schedule lacks.
    """
    _require_supported(run, delta)
    inside = Translator(
        translator.algebra, translator.rows, translator.outer, index=translator.index
    )
    for parameter, argument in zip(run.rule.params, run.args, strict=True):
        inside.terms[parameter] = term = translator.term(argument)
        translator.algebra.name(term, parameter.name)
    named = dict(zip(run.rule.results, run.results, strict=True))
    return _Former(translator.algebra, inside, delta, named, alive, first).form()


def _require_supported(run: Run, delta: Delta) -> None:
    span = run.span
    early = next((emit for emit in delta.emits if not emit.after), None)
    if delta.substeps is not None and early is not None:
        raise refuse(
            "an output of the state before the token is not emitted beside sub-steps",
            early.span or span,
            label="this output sees the state before the first sub-step",
            help="form it in a kernel of its own, from the state that is passed in",
        )
    for emit in delta.emits:
        if emit.axis != delta.key_axis:
            raise refuse(
                f"an output that sums over `{emit.axis}` is not emitted in a decode step",
                emit.span or span,
                label=f"reads of the state sum over `{delta.key_axis}`",
                notes=(f"`{delta.key_axis}` lies on partitions, where TensorE adds",),
                help=f"let output and delta read sum over the same axis, `{delta.key_axis}`",
            )


class _Former:
    """Collects reads and updates while the pieces of the canonical form are translated."""

    def __init__(
        self,
        algebra: Algebra,
        inside: Translator,
        delta: Delta,
        results: Mapping[Symbol, Symbol],
        alive: Term | None,
        first: Number | None,
    ) -> None:
        self.algebra = algebra
        self.names = results
        self.inside = inside
        self.delta = delta
        self.alive = alive
        self.reads: list[Term] = []
        self.results: list[Term] = []
        self.exact: set[Term] = set()
        factor = delta.decay.factor
        self.decay = None if factor is None else inside.term(factor)
        if self.decay is not None and alive is not None:
            self.decay = algebra.op("where", alive, self.decay, algebra.known(1.0))
            algebra.name(self.decay, "decay")
        if self.decay is not None and first is not None:
            now = algebra.product(algebra.known(first), self.decay)
            self.decay = algebra.op("add", now, algebra.known(1.0 - first))
            algebra.name(self.decay, "decay")

    def form(self) -> DeltaTerms:
        updates = self._updates()
        outputs = tuple((self.names[e.result], self._output(e, updates)) for e in self.delta.emits)
        return DeltaTerms(
            tuple(self.reads),
            tuple(self.results),
            self.decay,
            tuple(updates),
            outputs,
            frozenset(self.exact),
        )

    def _read(self, vector: Term, *, exact: bool = False, decayed: bool = False) -> Term:
        """sum[K](vector * S_old): the factor of the vector times a leaf; of D * S_old if so asked.

        A decay along V multiplies the result, any other the vector.
        """
        after: list[Term] = []
        if decayed and self.decay is not None:
            if self.decay.wide == self.delta.value_axis:
                after.append(self.decay)
            else:
                vector = self.algebra.product(vector, self.decay)
        base, factor = split(self.algebra, vector)
        if exact:
            self.exact.add(base)
        if base not in self.reads:
            name = f"read_{len(self.reads)}"
            self.reads.append(base)
            self.results.append(self.algebra.leaf(name, self.delta.value_axis, True, Stage.READS))
        return self.algebra.product(factor, self.results[self.reads.index(base)], *after)

    def _updates(self) -> list[Update]:
        delta, term = self.delta, self.inside.term
        found: dict[Term, Term] = {}
        if delta.write is not None:
            base, factor = split(self.algebra, term(delta.write.key))
            found[base] = self.algebra.product(factor, term(delta.write.value))
        if delta.read is not None and delta.erase is not None:
            post = delta.read.when is ReadWhen.POST
            r = self._read(term(delta.read.vector), decayed=post)
            base, factor = split(self.algebra, term(delta.erase))
            erased = self.algebra.product(factor, r)
            written = found.get(base)
            found[base] = (
                self.algebra.product(self.algebra.known(-1), erased)
                if written is None
                else self.algebra.op("sub", written, erased)
            )
        return [Update(base, self._of_living(base, value)) for base, value in found.items()]

    def _of_living(self, key: Term, value: Term) -> Term:
        """What is added along a key, by rows that are alive; the inputs of others are zeros."""
        if self.alive is None or self._vanishes(key) or self._vanishes(value):
            return value
        return self.algebra.product(self.alive, value)

    def _vanishes(self, term: Term) -> bool:
        """Whether a term is known to be 0 where the inputs of a row are replaced by zeros."""
        match term:
            case Op(name="where", args=(condition, _, Known(value=Literal(value=0)))):
                return condition == self.alive
            case Product(factors=factors):
                return any(self._vanishes(factor) for factor in factors)
            case Op(name="add" | "sub" | "tanh" | "abs" | "silu" | "renamed", args=args):
                return all(self._vanishes(arg) for arg in args)
            case Rounded(arg=arg):
                return self._vanishes(arg)
            case _:
                return False

    def _output(self, emit: Emit, updates: list[Update]) -> Term:
        parts: list[Term] = []
        if emit.query is not None:
            query = self.inside.term(emit.query)
            erased = emit.after and self.delta.erase is not None
            parts.append(self._read(query, exact=erased, decayed=emit.after))
            if emit.after:
                parts += [self._overlap(query, update) for update in updates]
        if emit.skip is not None:
            parts.append(self.inside.term(emit.skip))
        total = parts[0]
        for part in parts[1:]:
            total = self.algebra.op("add", total, part)
        return total

    def _overlap(self, query: Term, update: Update) -> Term:
        """(query . key) delta: what the new rank-one part contributes to the output."""
        base, factor = split(self.algebra, query)
        along = self.algebra.product(base, update.key)
        dot = self.algebra.fold("sum", along, Name(self.delta.key_axis))
        return self.algebra.product(factor, dot, update.delta)
