"""How far a precision may be off: fixed limits, and the error of the definition itself.

fp32 and widened: e_rms 3e-6, e_max 3e-5, or what conditioning makes unavoidable
(`gdsl.verification.conditioning`). Over 1,000 steps of weak decay float32 itself drifts further
(the rounding of exp(-1e-4) alone adds up to 1e-5), so there the limits are at least twice the
errors of the interpreter in float32.

bf16 operands: e_rms 2.5e-2 unless the text itself casts to less than fp32, and also, token by
token, twice the error of the interpreter whose operands are rounded to bf16
(`gdsl.verification.rounding`); chunked, 1.5 times the error of the plan evaluated on numpy with its
own rounding, or with other errors at the same places (`gdsl.verification.drawn`). A text that casts
is a definition that rounds: what it errs by as it stands counts likewise. No limit is tighter than
that of fp32. States kept in bf16 add the rounding of one store for each call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gdsl.ir.dtypes import Dtype
from gdsl.launch import output_dtype
from gdsl.verification.exact import Exact
from gdsl.verification.judge import Allowed
from gdsl.verification.precisions import Precision, casts
from gdsl.verification.rounding import round_operands, unrounded_outputs
from gdsl.verification.witnesses import Call

if TYPE_CHECKING:
    from gdsl.algorithm.plan import Plan

FP32_RMS = 3e-6
FP32_MAX = 3e-5
BF16_RMS = 2.5e-2
_TOKEN_FACTOR = 2.0
CHUNK_FACTOR = 1.5
_DRIFT_FACTOR = 2.0
_BF16_STORE = 2.0**-9
"""Relative rounding of one store in bf16, at most."""


def fp32_bounds(exact: Exact, *, drifts: bool) -> dict[str, Allowed]:
    """Return the bounds of every output where everything is computed in fp32."""
    found: dict[str, Allowed] = {}
    own = exact.interpreted(exact.kernel, "float32") if drifts else None
    for name in exact.reference.outputs:
        groups = exact.groups(name)
        rms, most = np.full(groups, FP32_RMS), np.full(groups, FP32_MAX)
        if own is not None:
            e_rms, e_max = exact.errors(own, name)
            rms = np.maximum(rms, _DRIFT_FACTOR * e_rms)
            most = np.maximum(most, _DRIFT_FACTOR * e_max)
        found[name] = Allowed(rms, most)
    return found


def bf16_bounds(exact: Exact, plan: Plan) -> dict[str, Allowed]:
    """Return the bounds of every output of a plan with bf16 operands."""
    kernel = exact.kernel
    if plan.form == "chunked":
        factor = CHUNK_FACTOR
        own = [exact.run(evaluator(plan))]
    else:
        factor = _TOKEN_FACTOR
        own = [exact.interpreted(round_operands(kernel), "declared")]
    most = BF16_RMS
    if casts(kernel):
        # It may err as much as it does itself, however much that is: where q . k is near 0 before
        # an RMSNorm, its own rounding is most of the output, and more rounding may be less error.
        own.append(exact.interpreted(unrounded_outputs(kernel), "declared"))
        most = np.inf
    found: dict[str, Allowed] = {}
    for name in exact.reference.outputs:
        errors = [exact.errors(result, name)[0] for result in own]
        found[name] = Allowed(np.clip(factor * np.max(errors, axis=0), FP32_RMS, most), None)
    return found


def bounds(exact: Exact, plan: Plan, precision: Precision, *, drifts: bool) -> dict[str, Allowed]:
    """Return the bounds of every output in a precision; `drifts`: the trial is very long."""
    found = fp32_bounds(exact, drifts=drifts) if precision.is_fp32 else bf16_bounds(exact, plan)
    stored = 0.0 if precision.widen else stores(exact)
    if not stored:
        return found
    return {name: Allowed(a.rms + stored, None) for name, a in found.items()}


def stores(exact: Exact) -> float:
    """Return the error of states that are rounded to less than fp32 between calls of a trial."""
    stored = {output_dtype(state.dtype, exact.bound) for state in exact.kernel.states}
    if not stored & {Dtype.BF16, Dtype.F16}:
        return 0.0
    return (len(exact.trial.calls) - 1) * _BF16_STORE


def evaluator(plan: Plan, errors: np.random.Generator | None = None) -> Call:
    """Return the plan on numpy, rounding at its own rounding points, or erring there."""
    from gdsl.algorithm.evaluate_plan import evaluate

    return lambda arguments: evaluate(plan, arguments, precision="plan", errors=errors)
