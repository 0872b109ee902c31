"""The mathematics of a kernel's one step, as terms: what is loaded, computed, returned."""

from __future__ import annotations

from attrs import frozen

from backends.nki.contract import Contract
from backends.nki.program.numbers import Name
from backends.nki.refusal import refuse
from backends.nki.select.addressing import strides
from backends.nki.select.algebra import Algebra
from backends.nki.select.delta import DeltaTerms, delta_terms
from backends.nki.select.inputs import InputSource, RowWindow
from backends.nki.select.terms import Leaf, Stage, Term, children
from backends.nki.select.translate import Translator
from gdsl.algorithm.plan import Plan
from gdsl.canonical.form import Delta
from gdsl.ir.expr import Ref
from gdsl.ir.kernel import Kernel, Let, Output, Run, State


@frozen
class Step:
    """One delta rule run for one token, with everything before and after it."""

    kernel: Kernel
    run: Run
    delta: Delta
    state: State
    window_axes: tuple[str, ...]
    """The axes that rows enumerate."""
    algebra: Algebra
    sources: dict[Leaf, InputSource]
    terms: DeltaTerms
    results: tuple[tuple[Leaf, Term], ...]
    """Each output of the rule: the leaf that later terms use, and its value."""
    values: tuple[tuple[Output, Term], ...]
    """Each output tensor that is not the state, and its value."""
    states: tuple[Output, ...]
    """The output tensors that are the new state."""

    @property
    def roots(self) -> list[Term]:
        """Every term that is asked for."""
        terms = self.terms
        roots = [*terms.reads, *(update.key for update in terms.updates)]
        roots += [update.delta for update in terms.updates]
        roots += [value for _, value in self.results]
        roots += [value for _, value in self.values]
        return roots if terms.decay is None else [*roots, terms.decay]

    @property
    def loads(self) -> list[Leaf]:
        """The inputs that differ from row to row, those with most left to do first."""
        depths: dict[Term, int] = {}
        for root in self.roots:
            _deepen(root, _READ_DEPTH if root in self.columns else 0, depths)
        leaves = [leaf for leaf in self.sources if leaf.rows and leaf in depths]
        return sorted(leaves, key=lambda leaf: -depths[leaf])

    @property
    def columns(self) -> list[Term]:
        """The vectors needed with K on partitions; those that move through the state first."""
        found = list(self.terms.reads)
        return found + [u.key for u in self.terms.updates if u.key not in found]


_READ_DEPTH = 8
"""What a vector along K has before it until a delta is there, counted in dependent instructions."""


def _deepen(term: Term, depth: int, depths: dict[Term, int]) -> None:
    """Note the longest chain of operations from each part of a term to the end."""
    if depth <= depths.get(term, -1):
        return
    depths[term] = depth
    for child in children(term):
        _deepen(child, depth + 1, depths)


def only_run(plan: Plan) -> tuple[Run, Delta, State]:
    """Return the run of a kernel that has one delta rule for one token. Raises CompileError."""
    kernel = plan.kernel.kernel
    runs = plan.kernel.runs
    if len(runs) != 1 or not isinstance(delta := runs[0][1], Delta):
        raise refuse(
            f"the decode schedule emits one delta rule per kernel; `{kernel.name}` has "
            f"{len(runs)} runs",
            kernel.span,
        )
    run = runs[0][0]
    if run.axis is not None:
        raise refuse("several tokens in one call are not emitted yet", run.span)
    return run, delta, next(s for s in kernel.states if s.symbol == run.state)


def row_axes(state: State, delta: Delta) -> tuple[str, ...]:
    """The axes a state maps over, in the order of its tensor."""
    return tuple(a for a in state.type.axes if a not in (delta.key_axis, delta.value_axis))


def step_of(plan: Plan, contract: Contract, window: RowWindow) -> Step:
    """Translate a kernel. Raises CompileError for what the schedule cannot do."""
    kernel = plan.kernel.kernel
    run, delta, state = only_run(plan)
    algebra = Algebra()
    translator = Translator(algebra, window.axes)
    sources: dict[Leaf, InputSource] = {}
    for item in kernel.inputs:
        leaf = translator.leaf(item.symbol, item.type.axes, Stage.INPUTS, item.name)
        tile = contract.tensors[item.name]
        sources[leaf] = InputSource(tile, strides(item.dims), leaf.wide, window, delta.key_axis)
    for param in kernel.params:
        translator.terms[param.symbol] = algebra.known(Name(param.name))
    terms: DeltaTerms | None = None
    results: list[tuple[Leaf, Term]] = []
    for statement in kernel.body:
        match statement:
            case Let(target=target, value=value):
                translator.define(target, value)
            case Run():
                terms = delta_terms(translator, statement, delta)
                for symbol, result in terms.outputs:
                    axes = (*window.axes, delta.value_axis)
                    leaf = translator.leaf(symbol, axes, Stage.OUTPUTS, symbol.name)
                    results.append((leaf, result))
    assert terms is not None
    states = [o for o in kernel.outputs if o.value == Ref(run.state_out, o.value.type)]
    return Step(
        kernel=kernel,
        run=run,
        delta=delta,
        state=state,
        window_axes=window.axes,
        algebra=algebra,
        sources=sources,
        terms=terms,
        results=tuple(results),
        values=tuple(
            (output, translator.term(output.value))
            for output in kernel.outputs
            if output not in states
        ),
        states=tuple(states),
    )
