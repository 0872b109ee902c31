"""One chunk of a plan on numpy arrays, rounding where the plan rounds.

Arrays are [..., C, K] or [..., C, V] with the mapped axes in front; the state is [..., K, V].
"""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from gdsl.algorithm.chunk_plan import (
    AnchoredSegments,
    ChunkPlan,
    DeltaSolve,
    DualSolve,
    Rows,
    Score,
)
from gdsl.algorithm.precision import Precision
from gdsl.algorithm.scores import score
from gdsl.algorithm.segments import from_start, to_end
from gdsl.algorithm.triangular import invert
from gdsl.ir.expr import Expr
from gdsl.ir.node import Symbol

Array = NDArray[Any]


@frozen(eq=False)
class ChunkInput:
    """The values of a plan's expressions at the tokens of one chunk.

    `vectors` by expression, matmul operands already rounded; `scales` (factors per token) are
    [..., C].
    `g` is the log decay, [..., C] or [..., C, K]; None without a decay.
    """

    vectors: dict[Expr, Array]
    scales: dict[Expr, Array]
    g: Array | None


def chunk(
    plan: ChunkPlan, given: ChunkInput, state: Array, precision: Precision
) -> tuple[Array, dict[Symbol, Array]]:
    """Return the state after the chunk, and each output without its skip, [..., C, V]."""
    step = _Chunk(plan, given, state, precision)
    writes, reads = step.solved()
    outputs = {
        emit.result: step.emitted(emit.query, emit.rows, emit.P, emit.PE, writes, reads)
        for emit in plan.emits
        if emit.query is not None
    }
    return step.carried(writes, reads), outputs


@frozen(eq=False)
class _Chunk:
    plan: ChunkPlan
    given: ChunkInput
    state: Array
    precision: Precision

    def solved(self) -> tuple[Array | None, Array | None]:
        """Return (what is written along the key, what is read): w, and r of a dual solve."""
        solve = self.plan.solve
        value = self.vector(self.plan.value)
        match solve:
            case None:
                return value, None
            case DeltaSolve(A=A, read=read, rows=rows, ratio=ratio):
                X = invert(self.rounded_score(A), solve.inverse, self.precision.operand)
                carried = self.decayed(read, rows)
                scaled = carried if ratio is None else carried * self.scale(ratio)
                if solve.folded:
                    W = self.operand(X @ self.operand(scaled))
                    w = -(W @ self.operand(self.state))
                    w = w if value is None else w + X @ value
                else:
                    rest = -(self.operand(scaled) @ self.operand(self.state))
                    w = X @ self.operand(rest if value is None else rest + value)
                if solve.factor is not None:
                    w = w * self.scale(solve.factor)
                return self.operand(w), None
            case DualSolve(A=A, AK=AK, read=read, rows=rows):
                X = invert(self.rounded_score(A), solve.inverse, self.precision.operand)
                right = self.operand(self.decayed(read, rows)) @ self.operand(self.state)
                if AK is not None and value is not None:
                    right = right + self.rounded_score(AK) @ value
                return value, self.operand(X @ self.operand(right))
            case _:
                assert_never(solve)

    def emitted(
        self,
        query: Expr,
        rows: Rows,
        P: Score | None,
        PE: Score | None,
        writes: Array | None,
        reads: Array | None,
    ) -> Array:
        """Return (query exp(R)) S + P w - PE r."""
        total = self.operand(self.decayed(query, rows)) @ self.operand(self.state)
        if P is not None and writes is not None:
            total = total + self.rounded_score(P) @ writes
        if PE is not None and reads is not None:
            total = total - self.rounded_score(PE) @ reads
        return np.asarray(total)

    def carried(self, writes: Array | None, reads: Array | None) -> Array:
        """Return the state after the chunk."""
        state = self.state
        g = self.given.g
        if g is not None:
            last = (g if g.ndim == state.ndim else g[..., None]).sum(axis=-2)
            state = state * np.exp(last)[..., :, None]
        if self.plan.key is not None and writes is not None:
            state = state + _outer(self.to_end(self.plan.key), writes)
        if isinstance(self.plan.solve, DualSolve) and reads is not None:
            state = state - _outer(self.to_end(self.plan.solve.erase), reads)
        return np.asarray(state)

    def rounded_score(self, wanted: Score) -> Array:
        row, column = self.given.vectors[wanted.row], self.given.vectors[wanted.column]
        values = score(wanted, row, column, self.given.g, self.plan.segments, self.precision)
        if wanted.scale is not None:
            values = values * self.scale(wanted.scale)
        if wanted.weight is not None:
            values = values * np.swapaxes(self.scale(wanted.weight), -1, -2)
        return self.operand(values)

    def decayed(self, vector: Expr, rows: Rows) -> Array:
        """vector exp(R), decayed since the start of the chunk."""
        values = self.given.vectors[vector]
        g = self._g(values)
        return values if g is None else values * self.factor(from_start(g, rows))

    def to_end(self, vector: Expr) -> Array:
        """vector exp(G_last - G), rounded: what is left of it at the end of the chunk."""
        values = self.given.vectors[vector]
        g = self._g(values)
        return self.operand(values if g is None else values * self.factor(to_end(g)))

    def factor(self, exponents: Array) -> Array:
        """exp of sums of log decays; per channel it is stored as an operand."""
        per_channel = isinstance(self.plan.segments, AnchoredSegments)
        return self.operand(np.exp(exponents)) if per_channel else np.exp(exponents)

    def _g(self, like: Array) -> Array | None:
        g = self.given.g
        return g if g is None or g.ndim == like.ndim else g[..., None]

    def scale(self, expr: Expr) -> Array:
        return self.given.scales[expr][..., None]

    def vector(self, expr: Expr | None) -> Array | None:
        return None if expr is None else self.given.vectors[expr]

    def operand(self, values: Array) -> Array:
        return self.precision.operand(values)


def _outer(left: Array, right: Array) -> Array:
    return np.asarray(np.swapaxes(left, -1, -2) @ right)
