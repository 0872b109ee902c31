"""A scan evaluated chunk by chunk from its plan: tails, checkpoints, sub-steps, live tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from gdsl.algorithm.chunk_plan import ChunkEmit, ChunkPlan, DeltaSolve, DualSolve, Rows
from gdsl.algorithm.evaluate_chunk import ChunkInput, chunk
from gdsl.algorithm.precision import Precision
from gdsl.algorithm.shared_keys import at_sizes
from gdsl.canonical.evaluate import RunInput, RunOutput, zeroed
from gdsl.canonical.values import Named, Scope, apply, evaluate
from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Run
from gdsl.ir.node import Symbol

Array = NDArray[Any]


def run_chunks(
    run: Run,
    plan: ChunkPlan,
    given: RunInput,
    log: Named | None,
    scope: Scope,
    precision: Precision,
) -> RunOutput:
    """Return what a scan returns, computed in chunks; `log` is the value of the log decay.

    Tokens past `given.valid` are identity steps with outputs exactly 0. A chunk ends at every
    checkpoint.
    """
    plan = at_sizes(plan, scope.sizes)
    tokens = _Tokens.of(run, plan, given, scope, precision)
    vectors = {expr: tokens.vector(expr, axis) for expr, axis in _vectors(plan)}
    scales = {expr: tokens.scale(expr) for expr in _scales(plan)}
    g = None if log is None else tokens.log_decay(log)
    axes = (*tokens.mapped, plan.key_axis, plan.value_axis)
    state = np.broadcast_to(given.state.over(axes), tokens.state_shape).astype(scope.dtype)
    outputs: dict[Symbol, list[Array]] = {emit.result: [] for emit in plan.emits}
    states: list[Named] = []
    for start, stop in _cuts(tokens.length, plan.chunk, given.every * tokens.steps):
        part = ChunkInput(
            {e: _padded(v[..., start:stop, :], plan.chunk, 2) for e, v in vectors.items()},
            {e: _padded(v[..., start:stop], plan.chunk, 1) for e, v in scales.items()},
            None if g is None else tokens.cut(g, start, stop),
        )
        state, made = chunk(plan, part, state, precision)
        for symbol, values in made.items():
            outputs[symbol].append(values[..., : stop - start, :])
        if given.every and stop % (given.every * tokens.steps) == 0:
            live = None if given.valid is None else _live(given.valid, stop // tokens.steps)
            states.append(zeroed(live, Named(axes, state)))
    results = tuple(tokens.result(emit, outputs[emit.result]) for emit in plan.emits)
    final = Named(axes, state)
    return RunOutput(results, Named(given.state.axes, final.over(given.state.axes)), tuple(states))


def _live(valid: Named, tokens: int) -> Named:
    return Named(valid.axes, valid.data >= tokens)


def _cuts(length: int, chunk: int, every: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < length:
        stop = min(start + chunk, length)
        if every:
            stop = min(stop, (start // every + 1) * every)
        yield start, stop
        start = stop


def _padded(values: Array, size: int, axis: int) -> Array:
    """Identity steps up to a full chunk: zeros along the token axis (counted from the end)."""
    missing = size - values.shape[-axis]
    widths = [(0, 0)] * values.ndim
    widths[-axis] = (0, missing)
    return np.pad(values, widths)


def _vectors(plan: ChunkPlan) -> Iterator[tuple[Expr, str]]:
    """Every vector of a plan, with the axis it lies along."""
    if plan.key is not None:
        yield plan.key, plan.key_axis
    if plan.value is not None:
        yield plan.value, plan.value_axis
    match plan.solve:
        case DeltaSolve(read=read):
            yield read, plan.key_axis
        case DualSolve(read=read, erase=erase):
            yield from ((read, plan.key_axis), (erase, plan.key_axis))
        case None:
            pass
    for emit in plan.emits:
        if emit.query is not None:
            yield emit.query, plan.key_axis


def _scales(plan: ChunkPlan) -> Iterator[Expr]:
    """Every factor per token of a plan."""
    if isinstance(plan.solve, DeltaSolve):
        for expr in (plan.solve.ratio, plan.solve.factor):
            if expr is not None:
                yield expr


@frozen(eq=False)
class _Tokens:
    """The tokens of a scan laid out in a row, sub-steps of a token next to each other."""

    axis: str
    plan: ChunkPlan
    given: RunInput
    scope: Scope
    precision: Precision
    mapped: tuple[str, ...]

    @staticmethod
    def of(
        run: Run, plan: ChunkPlan, given: RunInput, scope: Scope, precision: Precision
    ) -> _Tokens:
        if run.axis is None:
            raise ValueError("a step has no chunks")
        own = (plan.key_axis, plan.value_axis)
        mapped = tuple(axis for axis in given.state.axes if axis not in own)
        return _Tokens(run.axis, plan, given, scope, precision, mapped)

    @property
    def steps(self) -> int:
        """Sub-steps per token."""
        return 1 if self.plan.substeps is None else self.scope.sizes[self.plan.substeps]

    @property
    def length(self) -> int:
        """Tokens of the scan, sub-steps counted."""
        return self.scope.sizes[self.axis] * self.steps

    @property
    def state_shape(self) -> tuple[int, ...]:
        own = (self.plan.key_axis, self.plan.value_axis)
        return tuple(self.scope.sizes[axis] for axis in (*self.mapped, *own))

    @property
    def _front(self) -> tuple[str, ...]:
        substeps = () if self.plan.substeps is None else (self.plan.substeps,)
        return (*self.mapped, self.axis, *substeps)

    def vector(self, expr: Expr, axis: str) -> Array:
        """A vector expression as [mapped, tokens, axis], an operand, 0 where a token is dead."""
        return self.precision.operand(self._row(self._live(evaluate(expr, *self._at)), (axis,)))

    def scale(self, expr: Expr) -> Array:
        """A scalar expression as [mapped, tokens]."""
        return self._row(self._live(evaluate(expr, *self._at)), ())

    def log_decay(self, log: Named) -> Array:
        """The log decay as [mapped, tokens] or [mapped, tokens, K]; 0 after sub-step 0."""
        key = self.plan.key_axis
        row = self._row(self._live(log), (key,) if key in log.axes else ())
        if self.steps == 1:
            return row
        first = np.arange(self.length) % self.steps == 0
        mask = first[:, None] if key in log.axes else first
        return np.where(mask, row, np.zeros((), row.dtype))

    def cut(self, g: Array, start: int, stop: int) -> Array:
        """A chunk of the log decay, padded."""
        per_channel = g.ndim == len(self.mapped) + 2
        part = g[..., start:stop, :] if per_channel else g[..., start:stop]
        return _padded(part, self.plan.chunk, 2 if per_channel else 1)

    def result(self, emit: ChunkEmit, parts: list[Array]) -> Named:
        """One output of the scan, with its skip, over the tokens."""
        terms: list[Named] = []
        if emit.query is not None:
            axes = (*self.mapped, self.axis, self.plan.value_axis)
            first = 0 if emit.rows is Rows.EXCLUSIVE else self.steps - 1
            rows = np.concatenate(parts, axis=-2)[..., first :: self.steps, :]
            terms.append(Named(axes, rows))
        if emit.skip is not None:
            terms.append(evaluate(emit.skip, *self._at))
        total = terms[0] if len(terms) == 1 else apply("add", terms, self.scope)
        return self._live(total)

    @property
    def _at(self) -> tuple[dict[Symbol, Named], Scope]:
        return dict(self.given.arguments), self.scope

    def _live(self, value: Named) -> Named:
        """The value, exactly 0 where the token is dead."""
        valid = self.given.valid
        if valid is None:
            return value
        index = np.arange(self.scope.sizes[self.axis])
        live = Named((*valid.axes, self.axis), valid.data[..., None] > index)
        axes = tuple(dict.fromkeys((*value.axes, *live.axes)))
        data = np.broadcast_to(value.over(axes), self._shape(axes))
        return zeroed(live, Named(axes, data))

    def _row(self, value: Named, last: tuple[str, ...]) -> Array:
        axes = (*self._front, *last)
        full = np.broadcast_to(value.over(axes), self._shape(axes))
        mapped = full.shape[: len(self.mapped)]
        return full.reshape(*mapped, self.length, *full.shape[len(self._front) :])

    def _shape(self, axes: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.scope.sizes[axis] for axis in axes)
