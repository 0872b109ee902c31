"""The mathematics of a kernel's one step, as terms: what is loaded, computed, returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from backends.nki.contract import Contract
from backends.nki.program.build import compare
from backends.nki.program.numbers import Choice, Literal, Name, Number
from backends.nki.schedules.block.sections import Given, Sections, Value
from backends.nki.select.addressing import axes_of, field_strides, strides
from backends.nki.select.algebra import Algebra
from backends.nki.select.delta import DeltaTerms, delta_terms
from backends.nki.select.inputs import InputSource, RowWindow
from backends.nki.select.layouts import Placed, Source
from backends.nki.select.terms import Leaf, Stage, Term, children
from backends.nki.select.translate import Translator
from gdsl.algorithm.plan import Plan
from gdsl.canonical.form import Delta
from gdsl.ir.dims import Atom
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Ref
from gdsl.ir.kernel import Input, Kernel, Let, Output, Run, State
from gdsl.ir.node import Symbol


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
    sources: dict[Leaf, Source | Placed]
    terms: DeltaTerms
    results: tuple[tuple[Leaf, Term], ...]
    """Each output of the rule: the leaf that later terms use, and its value."""
    values: tuple[tuple[Output, Term], ...]
    """Each output tensor that is not the state, and its value."""
    states: tuple[Output, ...]
    """The output tensors that are the new state."""
    token_states: tuple[Output, ...] = ()
    """The output tensors that hold the state after each token."""
    alive: Term | None = None
    """1 for rows whose sequence has the token at hand, else 0. None: all have it."""

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
    """Return the delta rule of a kernel that has one."""
    run, delta = next((r, d) for r, d in plan.kernel.runs if isinstance(d, Delta))
    return run, delta, next(s for s in plan.kernel.kernel.states if s.symbol == run.state)


def several_steps(run: Run, delta: Delta) -> bool:
    """Whether a call updates each state several times: tokens, or sub-steps of one."""
    return run.axis is not None or delta.substeps is not None


def step_axes(run: Run, delta: Delta) -> dict[str, Number]:
    """Where the step at hand, number `token`, lies along the axes of tokens and of sub-steps."""
    step: Number = Name("token")
    found: dict[str, Number] = {}
    if delta.substeps is not None:
        found[delta.substeps] = step % Name(delta.substeps)
        step = step // Name(delta.substeps)
    if run.axis is None:
        return found
    if run.states_axis not in (None, run.axis):
        found[str(run.states_axis)] = (step + 1) // every(run) - 1
    return {run.axis: step, **found}


def every(run: Run) -> Number:
    """After how many tokens states are returned."""
    return Name(run.every.name) if isinstance(run.every, Symbol) else Literal(run.every or 1)


def row_axes(state: State, delta: Delta) -> tuple[str, ...]:
    """The axes a state maps over, in the order of its tensor, the rows of a pool for its slots."""
    rows = {state.slots.axis: state.slots.batch} if state.slots is not None else {}
    held = (rows.get(axis, axis) for axis in axes_of(state.dims))
    own = {*state.type.axes} - {delta.key_axis, delta.value_axis}
    return tuple(axis for axis in held if axis in own)


def step_of(
    plan: Plan,
    contract: Contract,
    window: RowWindow,
    sections: Sections,
    chip: Mapping[Symbol, Placed],
) -> Step:
    """Translate what is left of a kernel; `chip` says where values of its sections lie.

    Raises CompileError for what the schedule cannot do.
    """
    kernel = plan.kernel.kernel
    run, delta, state = only_run(plan)
    algebra = Algebra()
    translator = Translator(algebra, window.axes, tuple(window.outer))
    sources: dict[Leaf, Source | Placed] = {}
    used = sections.mentioned
    for item in (item for item in kernel.inputs if item.symbol in used):
        axes = item.type.axes
        leaf = translator.leaf(item.symbol, axes, Stage.INPUTS, item.name, item.span)
        tile = contract.tensors[item.name]
        sources[leaf] = InputSource(
            tile,
            strides(item.dims),
            leaf.wide,
            window,
            delta.key_axis,
            _default(item),
            span=item.span,
        )
    for part in sections.values:
        stage = Stage.OUTPUTS if part.late else Stage.INPUTS
        leaf = translator.leaf(part.symbol, part.type.axes, stage, part.name)
        sources[leaf] = chip.get(part.symbol) or _field(part, contract, window, delta.key_axis)
    for param in kernel.params:
        translator.terms[param.symbol] = algebra.known(Name(param.name))
    translator.index = _indices(translator, contract, window, sources, delta.key_axis)
    alive, axis = _alive(translator, run, state, window)
    if alive is not None:
        # What lies where nothing is to be done may be anything, so zeros are selected.
        found = [(item.symbol, item.name, item.type) for item in kernel.inputs]
        found += [(part.symbol, part.name, part.type) for part in sections.values]
        for symbol, name, kind in found:
            given = translator.terms.get(symbol)
            if given and axis in kind.axes and kind.dtype not in (Dtype.I32, Dtype.BOOL):
                selected = algebra.op("where", alive, given, algebra.known(0.0))
                translator.terms[symbol] = selected
                algebra.name(selected, f"{name}_alive")
    terms: DeltaTerms | None = None
    results: list[tuple[Leaf, Term]] = []
    for statement in sections.body:
        match statement:
            case Let(target=target, value=value):
                translator.define(target, value)
            case Run():
                terms = delta_terms(translator, statement, delta, alive, _first(delta, window))
                for symbol, result in terms.outputs:
                    axes = (*window.axes, delta.value_axis)
                    leaf = translator.leaf(symbol, axes, Stage.OUTPUTS, symbol.name)
                    results.append((leaf, result))
    assert terms is not None
    outputs = sections.outputs
    states = [o for o in outputs if _is(o, run.state_out)]
    token_states = [o for o in outputs if run.states is not None and _is(o, run.states)]

    def value_of(output: Output) -> Term:
        value = translator.term(output.value)
        if alive is None or axis not in axes_of(output.dims):
            return value
        return algebra.op("where", alive, value, algebra.known(0.0))

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
            (output, value_of(output))
            for output in outputs
            if output not in (*states, *token_states)
        ),
        states=tuple(states),
        token_states=tuple(token_states),
        alive=alive,
    )


def _field(value: Value, contract: Contract, window: RowWindow, key_axis: str) -> InputSource:
    """A field of the packed axis of an input tensor."""
    section, part = value.port.section, value.port.field
    assert isinstance(section, Given)
    item = section.input
    lies, first = field_strides(item.dims, dict(part.packed))
    tile = contract.tensors[item.name]
    default = _default(item)
    return InputSource(tile, lies, part.wide, window, key_axis, default, first, item.span)


def _default(item: Input) -> Number | None:
    """What stands for a tensor that is left out: a number, or the size of an axis."""
    if item.default is None:
        return None
    if isinstance(item.default, str):
        return Name(item.default)
    whole = item.dtype in (Dtype.I32, Dtype.BOOL)
    return Literal(int(item.default) if whole else float(item.default))


def _first(delta: Delta, window: RowWindow) -> Number | None:
    """1.0 in the first sub-step of a token, else 0.0; None without sub-steps."""
    if delta.substeps is None:
        return None
    first = compare("==", window.outer[delta.substeps], 0)
    return Choice(first, Literal(1.0), Literal(0.0))


def _indices(
    translator: Translator,
    contract: Contract,
    window: RowWindow,
    sources: dict[Leaf, Source | Placed],
    key_axis: str,
) -> Callable[[str], Term]:
    """0, 1, 2, ... along an axis: a tensor in HBM like an input, or the step at hand."""
    found: dict[str, Term] = {}

    def index(axis: str) -> Term:
        if axis in window.outer:
            return translator.algebra.known(window.outer[axis])
        if axis not in found:
            name = f"index_{axis}"
            leaf = translator.leaf(Symbol(name, -1), (axis,), Stage.INPUTS, name)
            tile = contract.index(axis, name)
            lies = strides((Atom(axis),))
            sources[leaf] = InputSource(tile, lies, leaf.wide, window, key_axis)
            found[axis] = leaf
        return found[axis]

    return index


def _is(output: Output, symbol: Symbol) -> bool:
    return isinstance(output.value, Ref) and output.value.symbol == symbol


def _alive(
    translator: Translator, run: Run, state: State, window: RowWindow
) -> tuple[Term | None, str | None]:
    """Which rows do anything, as a row value, and the axis they differ along.

    A row does nothing behind the end of its sequence (token >= valid_len), or without any slot.
    """
    algebra = translator.algebra
    conditions: list[Term] = []
    axis: str | None = None
    if run.valid_len is not None and run.axis is not None:
        token, axis = algebra.known(window.outer[run.axis]), run.axis
        conditions.append(algebra.op("gt", translator.terms[run.valid_len], token))
    if state.slots is not None:
        size, axis = algebra.known(Name(state.slots.axis)), state.slots.batch
        valid = [
            algebra.product(
                algebra.op("ge", translator.terms[slot], algebra.known(0.0)),
                algebra.op("lt", translator.terms[slot], size),
            )
            for slot in (state.slots.read, state.slots.write)
            if slot is not None
        ]
        conditions.append(valid[0] if len(valid) == 1 else algebra.op("max", valid[0], valid[1]))
    if not conditions:
        return None, None
    alive = algebra.product(*conditions)
    algebra.name(alive, "alive")
    return alive, axis
