"""What the chunked schedule needs to know of a kernel: its one scan, and what is around it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from backends.nki.program.numbers import Literal, Name, Number
from backends.nki.refusal import refuse
from backends.nki.schedules.chunked.formulas import Formulas, formulas_of, inputs_in
from backends.nki.schedules.chunked.front import Front
from backends.nki.select.terms import Known, Leaf, Stage
from gdsl.algorithm.chunk_plan import AnchoredSegments, ChunkPlan, DualSolve, Rows
from gdsl.algorithm.plan import ChunkedRun
from gdsl.errors import CompileError
from gdsl.ir.expr import Ref
from gdsl.ir.kernel import Input, Kernel, Output, Run, Slots, State
from gdsl.ir.node import Symbol
from gdsl.source import Span


@frozen
class Valid:
    """How many tokens of each row of the batch are live."""

    length: Input | None
    """As many as this says; None: all."""
    slots: Slots | None
    """None of a row that neither reads nor writes a slot of this pool."""
    span: Span | None


@frozen
class Scan:
    """One chunked delta rule. Vectors and gates are named by the inputs they come from."""

    kernel: Kernel
    run: Run
    chunk: ChunkPlan
    axis: str
    key_axis: str
    value_axis: str
    query: Input
    key: Input
    value: Input
    log: Input
    beta: Input
    scale: Number
    """The factor of the query that is known when the kernel is traced."""
    channels: bool
    """Whether the decay is per channel."""
    valid: Valid | None
    """What makes tokens live; None where all are."""
    state: State
    out: Output
    state_out: Output
    checkpoints: Output | None
    """The states after every `every` tokens."""
    every: Number | None
    solve_span: Span | None
    """Where the rule reads its state, which is why there is a system to solve; else the run."""
    mapped: tuple[str, ...]
    """The axes that lanes run over. That of rows whose states the device addresses is first."""
    formulas: Formulas
    """What is computed around the rule."""
    before_decay: bool
    """Whether the state is read before it decays; its decay is a scalar then."""
    fields: Mapping[str, Mapping[str, str]]
    """By tensor: which field of each packed axis it is."""
    clean: frozenset[str]
    """Tensors that hold zeros for dead tokens."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs of which lanes or tokens have a part of their own, each once."""
        around = (*self.formulas.gates.inputs.values(), *self.formulas.tokens.inputs.values())
        length = self.valid.length if self.valid is not None else None
        named = (self.query, self.key, self.value, self.log, self.beta, length, *around)
        own = {self.axis, *self.mapped}
        found = (i for i in named if i is not None and own & set(i.type.axes))
        return tuple({item.name: item for item in found}.values())


def scan_of(front: Front) -> Scan:
    """Read a plan. Raises CompileError for what the chunked schedule does not emit."""
    plan, kernel = front.plan, front.plan.kernel.kernel
    if len(plan.runs) != 1 or not isinstance(planned := plan.runs[0], ChunkedRun):
        raise refuse(
            f"the chunked schedule emits one chunked rule per kernel; `{kernel.name}` has "
            f"{len(plan.runs)} runs",
            kernel.span,
        )
    run, chunk = planned.run, planned.chunk
    _check(kernel, run, chunk)
    solve = chunk.solve
    state = next(s for s in kernel.states if s.symbol == run.state)
    states = [o for o in kernel.outputs if _is_state(o, run)]
    checkpoints = next((o for o in kernel.outputs if _is(o, run.states)), None)
    others = tuple(o for o in kernel.outputs if o not in (*states, checkpoints))
    if len(states) != 1 or not others:
        raise refuse(
            "the chunked schedule returns the state once, and what is made of the rule's output",
            kernel.span,
            help="leave out other outputs",
        )
    mapped = _mapped(kernel, state, chunk)
    formulas = formulas_of(kernel, run, chunk, mapped, others)
    channels = isinstance(chunk.segments, AnchoredSegments)
    _check_vectors(run, formulas, channels=channels)
    logs = inputs_in(formulas.tokens if channels else formulas.gates, (formulas.log,))
    betas = inputs_in(formulas.gates, (formulas.beta,))
    factor = formulas.query.factor
    return Scan(
        kernel=kernel,
        run=run,
        chunk=chunk,
        axis=run.axis or "",
        key_axis=chunk.key_axis,
        value_axis=chunk.value_axis,
        query=formulas.query.item,
        key=formulas.key.item,
        value=formulas.value.item,
        log=_principal(logs, run, formulas.key.item),
        beta=_principal(betas, run, formulas.key.item),
        scale=factor.value if isinstance(factor, Known) else Literal(1.0),
        channels=channels,
        valid=_valid(kernel, run, state),
        state=state,
        out=others[0],
        state_out=states[0],
        checkpoints=checkpoints,
        every=_every(kernel, run, chunk) if checkpoints is not None else None,
        mapped=mapped,
        formulas=formulas,
        before_decay=_before_decay(chunk),
        fields=front.fields,
        clean=front.clean,
        solve_span=solve.span if solve is not None else run.span,
    )


def _mapped(kernel: Kernel, state: State, chunk: ChunkPlan) -> tuple[str, ...]:
    """The axes that a state maps over."""
    first = {state.slots.batch} if state.slots is not None else set()
    if not first and state.unless is not None:
        first = {*next(i for i in kernel.inputs if i.symbol == state.unless).type.axes}
    own = [a for a in state.type.axes if a not in (chunk.key_axis, chunk.value_axis)]
    return tuple(sorted(own, key=lambda axis: axis not in first))


def _check(kernel: Kernel, run: Run, chunk: ChunkPlan) -> None:
    wrong = None
    state = next(s for s in kernel.states if s.symbol == run.state)
    if state.accepted is not None:
        wrong = "a state after the tokens that were kept"
    elif chunk.substeps is not None:
        wrong = "ordered sub-steps"
    elif any(e.rows is Rows.EXCLUSIVE or e.skip or e.query is None for e in chunk.emits):
        wrong = "an output before the write, or with a skip"
    elif len(chunk.emits) != 1:
        wrong = "several outputs of a rule"
    elif isinstance(chunk.solve, DualSolve):
        wrong = "an erase vector that is no multiple of the written key"
    elif _before_decay(chunk) and isinstance(chunk.segments, AnchoredSegments):
        wrong = "a read before a decay per channel"
    elif any(_is_state(o, run) and o.dims != state.dims for o in kernel.outputs):
        wrong = "a state that leaves in another layout than it came in"
    if wrong:
        raise _not_yet(wrong, run.span)


def _check_vectors(run: Run, formulas: Formulas, *, channels: bool) -> None:
    """Raise CompileError for vectors that tiles of a group cannot hold."""
    if channels and formulas.log.stage is Stage.KERNEL:
        raise _not_yet("a decay per channel that all heads and tokens have in common", run.span)
    query = formulas.query.item
    for vector in (formulas.key, formulas.read):
        # What is computed on chip is rounded to what TensorE multiplies.
        if vector.item.dtype != query.dtype and not vector.computed:
            what = f"a key `{vector.item.name}` and a query `{query.name}` of different dtypes"
            raise _not_yet(what, vector.item.span)


def _not_yet(what: str, span: Span | None) -> CompileError:
    """The refusal of what goes token by token alone."""
    return refuse(
        f"the chunked schedule does not emit {what} yet",
        span,
        help="use `--set form=recurrent`, token by token",
    )


def _valid(kernel: Kernel, run: Run, state: State) -> Valid | None:
    """What makes tokens of the run live."""
    length = next((i for i in kernel.inputs if i.symbol == run.valid_len), None)
    if length is None and state.slots is None:
        return None
    return Valid(length, state.slots, length.span if length is not None else state.span)


def _before_decay(chunk: ChunkPlan) -> bool:
    """Whether the state is read before it decays."""
    return chunk.solve is not None and chunk.solve.rows is Rows.EXCLUSIVE


def _every(kernel: Kernel, run: Run, chunk: ChunkPlan) -> Number:
    """Tokens between checkpoints. Raises CompileError where chunks do not end there."""
    match run.every:
        case Symbol() as symbol:
            return Name(next(p.name for p in kernel.params if p.symbol == symbol))
        case int() as every if every % chunk.chunk == 0:
            return Literal(every)
        case every:
            fits = next((c for c in (64, 32, 16) if every is not None and every % c == 0), None)
            raise refuse(
                f"states after every {every} tokens fall inside chunks of {chunk.chunk}",
                run.span,
                help=f"set `chunk={fits}`" if fits else "use `form=recurrent`",
            )


def _is(output: Output, symbol: Symbol | None) -> bool:
    """Whether an output is a result of the run as it is."""
    return isinstance(output.value, Ref) and output.value.symbol == symbol


def _is_state(output: Output, run: Run) -> bool:
    """Whether an output is the state after the last token."""
    return _is(output, run.state_out)


def _principal(inputs: Mapping[Leaf, Input], run: Run, otherwise: Input) -> Input:
    """The input that a gate is named by: the first one that differs from token to token."""
    found = [*inputs.values()]
    return next((i for i in found if run.axis in i.type.axes), found[0] if found else otherwise)
