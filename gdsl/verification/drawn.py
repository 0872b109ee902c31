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

from gdsl.verification.bounds import BF16_RMS, CHUNK_FACTOR, evaluator, stores
from gdsl.verification.conditioning import half_ulp, inherent
from gdsl.verification.exact import Exact
from gdsl.verification.judge import Allowed
from gdsl.verification.precisions import casts

if TYPE_CHECKING:
    from gdsl.algorithm.plan import Plan

_DRAWS = 8
_FACTOR = CHUNK_FACTOR / 2**0.5


def with_drawn_errors(
    exact: Exact, plan: Plan, allowed: Mapping[str, Allowed]
) -> dict[str, Allowed]:
    """Return the bounds of a chunked plan raised to what its own rounding points may err by."""
    stored, unknown = stores(exact), inherent(exact, half_ulp)
    found = dict(allowed)
    for draw in range(_DRAWS):
        own = exact.run(evaluator(plan, np.random.default_rng(draw)))
        for name, limits in found.items():
            errors = _FACTOR * exact.errors(own, name)[0]
            most = np.inf if casts(exact.kernel) else np.maximum(BF16_RMS, unknown[name].rms)
            rms = np.maximum(limits.rms, np.minimum(errors, most) + stored)
            found[name] = Allowed(rms, limits.max)
    return found
