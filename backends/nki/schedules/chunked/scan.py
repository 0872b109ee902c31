"""What the chunked schedule needs to know of a kernel: its one scan over raw tensors."""

from __future__ import annotations

from attrs import frozen

from backends.nki.program.numbers import Literal, Name, Number
from backends.nki.refusal import refuse
from gdsl.algorithm.chunk_plan import AnchoredSegments, ChunkPlan, DeltaSolve, Rows
from gdsl.algorithm.erasure import quotient
from gdsl.algorithm.plan import ChunkedRun, Plan
from gdsl.canonical.build import Builder
from gdsl.canonical.substitute import bind_arguments
from gdsl.canonical.terms import factors
from gdsl.ir.expr import Const, Expr, Ref, Size
from gdsl.ir.kernel import Input, Kernel, Output, Run, State
from gdsl.source import Span


@frozen
class Scan:
    """One chunked delta rule whose vectors and gates are inputs."""

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
    """The trace-time factor of the query."""
    channels: bool
    """Whether the decay is per channel."""
    valid: Input | None
    """The live tokens of each row."""
    state: State
    out: Output
    state_out: Output
    solve_span: Span | None
    """Where the rule reads its state, which is why there is a system to solve."""

    @property
    def mapped(self) -> tuple[str, ...]:
        """The axes that lanes run over, in the order of the state's tensor."""
        return tuple(a for a in self.state.type.axes if a not in (self.key_axis, self.value_axis))


def scan_of(plan: Plan) -> Scan:
    """Read a plan. Raises CompileError for what the chunked schedule does not emit."""
    kernel = plan.kernel.kernel
    if len(plan.runs) != 1 or not isinstance(planned := plan.runs[0], ChunkedRun):
        raise refuse(
            f"the chunked schedule emits one chunked rule per kernel; `{kernel.name}` has "
            f"{len(plan.runs)} runs",
            kernel.span,
        )
    run, chunk = planned.run, planned.chunk
    _check(kernel, run, chunk)
    reader = _Reader(kernel, run, Builder(tuple(axis.name for axis in kernel.axes)))
    solve, segments = chunk.solve, chunk.segments
    if not isinstance(solve, DeltaSolve) or segments is None:
        raise refuse("the chunked schedule needs a decay and a delta read", run.span)
    (emit,) = chunk.emits
    query, scale = reader.scaled(emit.query, "the query")
    ratio = quotient(chunk.key, solve.read, reader.builder) if chunk.key is not None else None
    state = next(s for s in kernel.states if s.symbol == run.state)
    results = {run.results[0]: "out", run.state_out: "state"}
    outputs = {
        results[o.value.symbol]: o
        for o in kernel.outputs
        if isinstance(o.value, Ref) and o.value.symbol in results
    }
    if len(outputs) != 2 or len(kernel.outputs) != 2:
        raise refuse(
            "the chunked schedule returns the rule's output and its state as they are",
            kernel.span,
            help="leave out other outputs and epilogues",
        )
    return Scan(
        kernel=kernel,
        run=run,
        chunk=chunk,
        axis=run.axis or "",
        key_axis=chunk.key_axis,
        value_axis=chunk.value_axis,
        query=query,
        key=reader.plain(solve.read, "the read vector"),
        value=reader.plain(chunk.value, "the value"),
        log=reader.plain(segments.log, "the log decay"),
        beta=reader.plain(ratio, "the erase factor"),
        scale=scale,
        channels=isinstance(segments, AnchoredSegments),
        valid=next((i for i in kernel.inputs if i.symbol == run.valid_len), None),
        state=state,
        out=outputs["out"],
        state_out=outputs["state"],
        solve_span=solve.span,
    )


def _check(kernel: Kernel, run: Run, chunk: ChunkPlan) -> None:
    wrong = None
    state = next(s for s in kernel.states if s.symbol == run.state)
    if run.every is not None:
        wrong = "checkpoints (`every`)"
    elif state.slots is not None or state.accepted is not None or state.unless is not None:
        wrong = "a pool of states"
    elif chunk.substeps is not None:
        wrong = "ordered sub-steps"
    elif chunk.chunk != 128:
        wrong = f"chunks of {chunk.chunk} tokens"
    elif any(e.rows is Rows.EXCLUSIVE or e.skip or e.query is None for e in chunk.emits):
        wrong = "an output before the write, or with a skip"
    elif len(chunk.emits) != 1:
        wrong = "several outputs of a rule"
    elif isinstance(chunk.solve, DeltaSolve) and chunk.solve.rows is Rows.EXCLUSIVE:
        wrong = "a read before the decay"
    elif any(_is_state(o, run) and o.dims != state.dims for o in kernel.outputs):
        wrong = "a state that leaves in another layout than it came in"
    if wrong:
        raise refuse(f"the chunked schedule does not emit {wrong} yet", run.span)


def _is_state(output: Output, run: Run) -> bool:
    """Whether an output is the state after the last token."""
    return isinstance(output.value, Ref) and output.value.symbol == run.state_out


@frozen
class _Reader:
    """Recognises raw inputs behind the plan's expressions."""

    kernel: Kernel
    run: Run
    builder: Builder

    def plain(self, expr: Expr | None, what: str) -> Input:
        """The input that an expression is."""
        item, scale = self.scaled(expr, what)
        if scale != Literal(1.0):
            raise self._refuse(what, expr.span if expr else None)
        return item

    def scaled(self, expr: Expr | None, what: str) -> tuple[Input, Number]:
        """The input that an expression is, and the trace-time factor before it."""
        bound = None if expr is None else bind_arguments(expr, self.run, self.builder)
        inputs = {item.symbol: item for item in self.kernel.inputs}
        params = {param.symbol: param.name for param in self.kernel.params}
        negative, parts = factors(bound) if bound is not None else (False, ())
        found: list[Input] = []
        scale: Number = Literal(-1.0 if negative else 1.0)
        for part in parts:
            match part:
                case Ref(symbol=symbol) if symbol in inputs:
                    found.append(inputs[symbol])
                case Ref(symbol=symbol) if symbol in params:
                    scale = scale * Name(params[symbol])
                case Const(value=value):
                    scale = scale * value
                case Size(axis=axis):
                    scale = scale * Name(axis)
                case _:
                    raise self._refuse(what, part.span)
        if len(found) != 1:
            raise self._refuse(what, expr.span if expr else None)
        return found[0], scale

    def _refuse(self, what: str, span: Span | None) -> Exception:
        return refuse(
            f"the chunked schedule needs {what} as an input tensor",
            span or self.run.span,
            label="this is computed",
            help="normalise and compute gates before the kernel, or use `form=recurrent`",
        )
