"""Canonical recurrence -> chunk-parallel plan, inside the domain where it is safe."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from gdsl.algorithm.anchors import choose_segments
from gdsl.algorithm.chunk_plan import (
    AnchoredSegments,
    ChunkEmit,
    ChunkPlan,
    DeltaSolve,
    DualSolve,
    ErrorBound,
    Inverse,
    Rows,
    Score,
    Segments,
    Solve,
)
from gdsl.algorithm.domain import Domain, domain_of, value_range
from gdsl.algorithm.erasure import Parallel, absorbed, parallel
from gdsl.algorithm.inverses import NAMES, choose_inverse, inverse_named
from gdsl.algorithm.plan import Resolved
from gdsl.algorithm.reasons import decay_reasons, form_reasons, norm_reasons
from gdsl.algorithm.shared_keys import shared_axes
from gdsl.algorithm.unsafe import Unsafe
from gdsl.algorithm.why import chunk_why
from gdsl.canonical.build import Builder
from gdsl.canonical.form import DecayKind, Delta, Emit, ReadWhen
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Kernel, Run

_OPERANDS = {"input": None, "bf16": Dtype.BF16, "f32": Dtype.F32}


@frozen
class Refused:
    """Why a run has no safe chunked form. `asked`: a setting asked for something unsafe."""

    reasons: tuple[Unsafe, ...]
    asked: bool


def plan_chunks(
    kernel: Kernel, run: Run, form: Delta, settings: Mapping[str, Resolved], builder: Builder
) -> ChunkPlan | Refused:
    """Return the chunked plan of one scan, or every reason why there is none."""
    domain = domain_of(kernel, run, form, builder)
    erased = parallel(form, builder)
    ratio = value_range(erased.ratio if erased else None, run, builder)
    product = _product(form, erased, domain, max(abs(ratio.lo), abs(ratio.hi)))
    reasons = tuple(form_reasons(run, form)) or (
        *decay_reasons(run, form, domain),
        *norm_reasons(run, form, domain, product),
    )
    if reasons:
        return Refused(reasons, asked=False)
    operands = _OPERANDS[str(settings["operands"].value)]
    widest = operands or domain.operands
    segments = (
        choose_segments(form.decay.kind, domain.log, domain.log_range.lo, widest, settings)
        if domain.log is not None
        else None
    )
    inverse = choose_inverse(settings, widest, product) if form.read else None
    unsafe = tuple(choice for choice in (segments, inverse) if isinstance(choice, Unsafe))
    if isinstance(segments, Unsafe) or isinstance(inverse, Unsafe):
        return Refused(unsafe, asked=True)
    chunk = int(settings["chunk"].value)
    absorbed_ratio: Expr | None = None
    key = form.write.key if form.write else None
    if erased and erased.ratio is not None:
        moved = absorbed(form, erased.ratio, builder)
        if moved is not None:
            absorbed_ratio, form, erased = erased.ratio, moved, Parallel(None)
    alternatives = tuple(inverse_named(name, chunk, widest) for name in NAMES)
    solve = _solve(form, erased, inverse[0], alternatives, segments) if inverse else None
    shared: tuple[str, ...] = ()
    if isinstance(solve, DeltaSolve) and key is not None:
        shared = shared_axes(run, form, solve, key, segments, builder)
    return ChunkPlan(
        chunk=chunk,
        key_axis=form.key_axis,
        value_axis=form.value_axis,
        segments=segments,
        solve=solve,
        key=form.write.key if form.write else None,
        value=form.write.value if form.write else None,
        emits=tuple(_emit(emit, form, erased) for emit in form.emits),
        absorbed=absorbed_ratio,
        shared=shared,
        operands=operands,
        substeps=form.substeps,
        error=ErrorBound(inverse[1].error if inverse else 0.0, _decay_error(segments, chunk)),
        why=chunk_why(domain, product, segments, inverse, absorbed_ratio, widest),
        span=run.span,
    )


def _product(form: Delta, erased: Parallel | None, domain: Domain, ratio: float) -> float:
    """A bound on |A_ij|; 0 without a read. Decays are at most 1 and only shrink it."""
    if form.read is None:
        return 0.0
    factors = (domain.read, ratio, domain.key) if erased else (domain.read, domain.erase)
    return 0.0 if 0.0 in factors else math.prod(factors)


def _solve(
    form: Delta,
    erased: Parallel | None,
    inverse: Inverse,
    alternatives: tuple[Inverse, ...],
    segments: Segments | None,
) -> Solve | None:
    if form.read is None or form.erase is None:
        return None
    pre = form.read.when is ReadWhen.PRE and form.decay.kind is not DecayKind.NONE
    rows, read = Rows.EXCLUSIVE if pre else Rows.INCLUSIVE, form.read.vector
    others = tuple(other for other in alternatives if other.name != inverse.name)
    if erased and form.write:
        A = Score("A", read, form.write.key, rows, diagonal=False, scale=erased.ratio)
        # A factor per channel and token serves the read of the state and the query alike; W would
        # need it a second time, with tokens on the other side.
        folded = not isinstance(segments, AnchoredSegments)
        return DeltaSolve(A, read, rows, erased.ratio, inverse, folded, others, span=form.read.span)
    A = Score("A", read, form.erase, rows, diagonal=False)
    AK = Score("AK", read, form.write.key, rows, diagonal=False) if form.write else None
    return DualSolve(A, AK, read, rows, form.erase, inverse, others, span=form.read.span)


def _emit(emit: Emit, form: Delta, erased: Parallel | None) -> ChunkEmit:
    rows = Rows.INCLUSIVE if emit.after else Rows.EXCLUSIVE
    P = PE = None
    if emit.query is not None and form.write:
        P = Score(f"P_{emit.result.name}", emit.query, form.write.key, rows, diagonal=emit.after)
    if emit.query is not None and form.erase is not None and not erased:
        PE = Score(f"PE_{emit.result.name}", emit.query, form.erase, rows, diagonal=emit.after)
    return ChunkEmit(emit.result, emit.query, rows, P, PE, emit.skip, span=emit.span)


def _decay_error(segments: Segments | None, chunk: int) -> float:
    """Rounding of an exponent x summed in f32 moves exp(x) by |x| exp(x) n 2^-24, n the summands.

    For x <= 0 that is at most n 2^-24 / e; the two factors of a diagonal block have |x| <= reach.
    """
    if segments is None:
        return 0.0
    free = chunk * 2.0**-24 / math.e
    if isinstance(segments, AnchoredSegments):
        return max(free, 2 * segments.reach * segments.subblock / 2 * 2.0**-24)
    return free
