"""A plan as text (`--emit plan`): settings, reasons, and the chunk equations of each run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gdsl.algorithm.chunk_plan import (
    AnchoredSegments,
    ChunkEmit,
    ChunkPlan,
    DeltaSolve,
    DualSolve,
    Inverse,
    Rows,
    ScalarSegments,
    Score,
    Segments,
)
from gdsl.algorithm.plan import ChunkedRun, Plan, RunPlan
from gdsl.algorithm.shared_keys import shared_form
from gdsl.ir.expr import Apply, Expr
from gdsl.ir.text import expression_text


def plan_text(plan: Plan) -> str:
    """Return the whole plan: settings with their origin, runs, reasons."""
    lines = [f"kernel {plan.kernel.kernel.name}: {plan.form}", "", "  settings"]
    lines += (f"    {s.key} = {s.value}    # {s.origin}" for s in plan.resolved)
    lines += (
        f"    {e.key} is argument `{e.argument}`, {e.default} by default" for e in plan.exposed
    )
    lines += ["", "  why", *(f"    {sentence}" for sentence in plan.why)]
    for run in plan.runs:
        lines += ["", *(f"  {line}" for line in _run(run))]
    return "\n".join(lines) + "\n"


def _run(run: RunPlan) -> Iterator[str]:
    where = "one token" if run.run.axis is None else f"tokens along {run.run.axis}"
    if not isinstance(run, ChunkedRun):
        yield f"{run.run.rule.name}: {where}, one by one"
        return
    plan = run.chunk
    yield f"{run.run.rule.name}: {where}, in chunks of {plan.chunk}"
    if plan.substeps:
        yield f"  sub-steps of {plan.substeps} are consecutive tokens; the first one decays"
    operands = plan.operands.value if plan.operands else "dtype of the inputs"
    yield f"  matmul operands: {operands}; accumulation and state: f32"
    yield from _segments(plan.segments)
    yield from _equations(plan)
    if plan.shared:
        axes = " ".join(plan.shared)
        yield f"  with several heads along {axes}, their keys are multiplied once and rounded:"
        yield from (f"  {line}" for line in _equations(shared_form(plan)))
    yield f"  error: inverse {plan.error.inverse:.1g}, decay factors {plan.error.decay:.1g}"


def _equations(plan: ChunkPlan) -> Iterator[str]:
    yield from _solve(plan)
    for emit in plan.emits:
        yield from _emit(emit, plan)
    yield from _carry(plan)


def _segments(segments: Segments | None) -> Iterator[str]:
    match segments:
        case None:
            yield "  no decay"
        case ScalarSegments(log=log):
            yield f"  g = {expression_text(log)}, one per token; exp of masked segment sums"
        case AnchoredSegments(log=log):
            yield f"  g = {expression_text(log)}, one per channel"
            if segments.subblock > 1:
                yield (
                    f"    in tiles of {segments.tile}, reference in the middle of "
                    f"{segments.subblock} rows"
                )
            widths = ", ".join(str(width) for width in segments.levels)
            yield f"    reference between the halves of blocks, half widths {widths}"
        case _:
            assert_never(segments)


def _solve(plan: ChunkPlan) -> Iterator[str]:
    solve, key = plan.solve, plan.key_axis
    value = _optional(plan.value)
    match solve:
        case None:
            yield f"  w = {value}"
        case DeltaSolve():
            ratio = "" if solve.ratio is None else f"{_factor(solve.ratio)} * "
            yield f"  {_score(solve.A, key)}"
            read = f"({_factor(solve.read)} exp({_row(solve.rows)})) S"
            factor = "" if solve.factor is None else f"{_factor(solve.factor)} * "
            yield f"  w = {factor}(I + A)^-1 ({value} - {ratio}{read})"
            yield f"    inverse: {_inverse(solve.inverse)}"
        case DualSolve():
            yield f"  {_score(solve.A, key)}"
            written = ""
            if solve.AK is not None:
                yield f"  {_score(solve.AK, key)}"
                written = f" + AK {value}"
            read = f"({_factor(solve.read)} exp({_row(solve.rows)})) S"
            yield f"  r = (I + A)^-1 ({read}{written})"
            yield f"    inverse: {_inverse(solve.inverse)}"
        case _:
            assert_never(solve)
    for other in solve.alternatives if solve else ():
        yield f"    or: {_inverse(other)}"


def _inverse(inverse: Inverse) -> str:
    merges = ", ".join(str(width) for width in inverse.merges) or "none"
    corrections = f" with {inverse.corrections} corrections" if inverse.corrections else ""
    return (
        f"{inverse.name}: {inverse.kind.value} from blocks of {inverse.leaf}{corrections}, "
        f"merges of {merges}"
    )


def _emit(emit: ChunkEmit, plan: ChunkPlan) -> Iterator[str]:
    terms = []
    if emit.query is not None:
        terms.append(f"({_factor(emit.query)} exp({_row(emit.rows)})) S")
    written = _optional(plan.value) if isinstance(plan.solve, DualSolve) else "w"
    for score, sign, what in ((emit.P, "+", written), (emit.PE, "-", "r")):
        if score is not None:
            yield f"  {_score(score, plan.key_axis)}"
            terms.append(f"{sign} {score.name} {what}")
    if emit.skip is not None:
        terms.append(f"+ {expression_text(emit.skip)}")
    yield f"  {emit.result.name} = {' '.join(terms).removeprefix('+ ')}"


def _carry(plan: ChunkPlan) -> Iterator[str]:
    dual = isinstance(plan.solve, DualSolve)
    parts = ["S"] if plan.segments is None else ["exp(G_last) S"]
    left = "" if plan.segments is None else " exp(G_last - G)"
    if plan.key is not None:
        written = _optional(plan.value) if dual else "w"
        parts.append(f"+ ({_factor(plan.key)}{left})^T {written}")
    if isinstance(plan.solve, DualSolve):
        parts.append(f"- ({_factor(plan.solve.erase)}{left})^T r")
    yield f"  S <- {' '.join(parts)}"


def _score(score: Score, key: str) -> str:
    scale = "" if score.scale is None else f"{_factor(score.scale)}_i "
    scale += "" if score.weight is None else f"{_factor(score.weight)}_j "
    row, column = _factor(score.row), _factor(score.column)
    order = "j <= i" if score.diagonal else "j < i"
    exponent = f"exp({_row(score.rows)}_i - G_j)"
    return f"{score.name}_ij = {scale}sum[{key}]({row}_i {column}_j {exponent}), {order}"


def _row(rows: Rows) -> str:
    return "G" if rows is Rows.INCLUSIVE else "(G - g)"


def _optional(expr: Expr | None) -> str:
    return "0" if expr is None else _factor(expr)


def _factor(expr: Expr) -> str:
    text = expression_text(expr)
    return f"({text})" if isinstance(expr, Apply) else text
