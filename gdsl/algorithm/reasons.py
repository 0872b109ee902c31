"""Why a run has no safe chunked form: its shape, its decay, its norms."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gdsl.algorithm.domain import Domain
from gdsl.algorithm.inverse_domain import MAX_PRODUCT
from gdsl.algorithm.unsafe import DECAY, NO_CHUNKED_FORM, NORMS, Unsafe
from gdsl.canonical.form import DecayKind, Delta
from gdsl.ir.interval import show
from gdsl.ir.kernel import Run
from gdsl.ir.text import expression_text


def form_reasons(run: Run, form: Delta) -> Iterator[Unsafe]:
    """Shapes of a rule for which no chunk form is implemented."""
    if form.decay.kind is DecayKind.VALUE_VECTOR:
        yield _shape(run, form, f"its decay varies along `{form.value_axis}`, the written axis")
    for emit in form.emits:
        if emit.query is not None and emit.axis != form.key_axis:
            yield _shape(
                run, form, f"`{emit.result.name}` contracts `{emit.axis}`, not the key axis"
            )


def _shape(run: Run, form: Delta, because: str) -> Unsafe:
    return Unsafe(
        NO_CHUNKED_FORM,
        f"rule `{run.rule.name}` has no chunked form: {because}",
        run.span,
        label="cannot be computed chunk by chunk",
        notes=(f"its key axis is `{form.key_axis}`, its value axis `{form.value_axis}`",),
        remedy=None,
    )


def decay_reasons(run: Run, form: Delta, domain: Domain) -> Iterator[Unsafe]:
    """The chunk form multiplies decays through exp of sums of logarithms, each at most 0."""
    if form.decay.kind is DecayKind.NONE or form.decay.factor is None:
        return
    decay = expression_text(form.decay.factor)
    if domain.log is None:
        yield Unsafe(
            DECAY,
            f"the logarithm of the decay `{decay}` is not known",
            run.span,
            label="the decay may be exactly 0",
            notes=("sums of log decays need a decay above 0",),
            remedy="write the decay as `exp(...)`, or declare its range as `in (0, 1]`",
        )
    elif domain.log_range.hi > 0:
        log = expression_text(domain.log)
        yield Unsafe(
            DECAY,
            f"the log decay `{log}` may be positive",
            domain.log.span or run.span,
            label=f"its range is {show(domain.log_range)}",
            notes=("exp of sums of positive log decays overflows within a chunk",),
            remedy="declare its range, such as `in (-inf, 0]`",
        )


def norm_reasons(run: Run, form: Delta, domain: Domain, product: float) -> Iterator[Unsafe]:
    """The triangular system is well behaved for |A_ij| up to the limit of the inverses."""
    if form.read is None or product <= MAX_PRODUCT:
        return
    key = form.key_axis
    limit = f"|A_ij| must stay below {MAX_PRODUCT:g}: unit keys and an erase factor of at most 2"
    norms = {"read": domain.read, "write key": domain.key, "erase vector": domain.erase}
    unknown = [name for name, norm in norms.items() if norm == math.inf]
    if domain.read == math.inf or domain.key == math.inf:
        message = f"keys are not known to be normalised over `{key}`"
        label = f"no bound on the norm of the {unknown[0]}"
        remedy = (
            f"normalise it with `x * rsqrt(sum[{key}](x * x) + eps)`, or state "
            f"`assume sum[{key}](x * x) <= 1.01` for it"
        )
    elif product == math.inf:
        message = "the factor of what is erased has no known bound"
        label = "the erase factor is unbounded"
        remedy = "declare its range, such as `in [0, 1]`"
    else:
        message = f"a token may erase too much: |A_ij| up to {product:g}"
        label = "the recurrence itself grows here"
        remedy = "declare smaller ranges"
    span = form.read.span or run.span
    yield Unsafe(NORMS, message, span, label, notes=(limit,), remedy=remedy)
