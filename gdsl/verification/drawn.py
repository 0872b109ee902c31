"""Bounds of a chunked plan with bf16 operands, from several draws of its rounding errors.

What rounds at the plan's rounding points errs by one draw of all these errors. Over many tokens and
columns draws are alike; an output of one token hangs on a few of them, and where q . k is near 0
before an RMSNorm on one. So where a kernel errs by more than the plan as evaluated, it is compared
with the worst of several draws, each of which rounds at the same places, up or down at random
(which errs sqrt(2) as much as rounding to nearest, and is divided by it). The fixed limit stands,
unless inputs that are known to half an ulp leave more open (`gdsl.verification.conditioning`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel
from gdsl.regimes.trial import Trial
from gdsl.verification.bounds import BF16_RMS, CHUNK_FACTOR, evaluator, stores
from gdsl.verification.conditioning import half_ulp, inherent
from gdsl.verification.judge import Allowed, errors_rms, group_scale, grouped
from gdsl.verification.precisions import casts
from gdsl.verification.witnesses import Result, group_axes, run_reference

if TYPE_CHECKING:
    from gdsl.algorithm.plan import Plan

_DRAWS = 8
_FACTOR = CHUNK_FACTOR / 2**0.5


def with_drawn_errors(
    kernel: Kernel,
    plan: Plan,
    trial: Trial,
    bound: Mapping[str, Dtype],
    reference: Result,
    allowed: Mapping[str, Allowed],
) -> dict[str, Allowed]:
    """Return the bounds of a chunked plan raised to what its own rounding points may err by."""
    groups, stored = group_axes(kernel), stores(kernel, trial, bound)
    unknown = inherent(kernel, trial, bound, reference, half_ulp)
    found = dict(allowed)
    for draw in range(_DRAWS):
        call = evaluator(plan, np.random.default_rng(draw))
        own = run_reference(kernel, trial, bound, call)
        for name, limits in found.items():
            axes = reference.axes[name]
            expected = grouped(reference.outputs[name], axes, groups)
            x = grouped(own.outputs[name], axes, groups)
            errors = _FACTOR * errors_rms(x, expected, group_scale(expected))
            most = np.inf if casts(kernel) else np.maximum(BF16_RMS, unknown[name].rms)
            rms = np.maximum(limits.rms, np.minimum(errors, most) + stored)
            found[name] = Allowed(rms, limits.max)
    return found
