"""What no float32 program can avoid: the change that one ulp in each input makes."""

from __future__ import annotations

import numpy as np
import pytest

import gdsl
from gdsl.ir.dtypes import Dtype
from gdsl.regimes.trial import Trial
from gdsl.verification.conditioning import FACTOR, conditioned, half_ulp
from gdsl.verification.exact import Exact, run_exactly
from gdsl.verification.judge import Allowed

TEXT = """
use delta_rule
kernel cancels:
    axes B, K, V
    input q, k: f32[B, K]
    input v: f32[B, V]
    input decay, beta: f32[B] in [0, 1]
    state S: f32[B, K, V] = s0
    o, S = step gated_delta(q, k, v, decay, beta, S)
    output out: f32[B, V] = o
    output s1 = S
"""
NOTHING = Allowed(np.zeros(1), np.zeros(1))


def _exact(q: tuple[float, float]) -> Exact:
    arguments = {
        "q": np.array([q]),
        "k": np.array([[1.0, 1.0]]),
        "v": np.array([[1.0, 2.0]]),
        "decay": np.ones(1),
        "beta": np.ones(1),
        "s0": np.zeros((1, 2, 2)),
    }
    trial = Trial({"B": 1, "K": 2, "V": 2}, (arguments,))
    return run_exactly(gdsl.loads(TEXT).kernel, trial, {})


def test_a_well_conditioned_result_moves_by_a_few_ulps() -> None:
    raised = conditioned(_exact((1.0, 1.0)), {"out": NOTHING, "s1": NOTHING})
    ulp = 2.0**-23
    for limits in raised.values():
        assert limits.max is not None
        assert 0 < float(limits.rms[0]) <= float(limits.max[0]) <= FACTOR * 6 * ulp


def test_cancellation_leaves_as_much_more_open() -> None:
    """q . k = 2^-10 of two terms near 1: their ulps are 1,000 times as large beside it."""
    well, ill = (
        float(conditioned(_exact(q), {"out": NOTHING, "s1": NOTHING})["out"].rms[0])
        for q in ((1.0, 1.0), (1.0, -1.0 + 2.0**-10))
    )
    assert 200 < ill / well < 20_000


def test_bounds_are_raised_never_lowered() -> None:
    wide = Allowed(np.ones(1), None)
    raised = conditioned(_exact((1.0, 1.0)), {"out": wide, "s1": wide})
    assert raised == {"out": wide, "s1": wide}


@pytest.mark.parametrize(("dtype", "half"), [(Dtype.F32, 2.0**-25), (Dtype.BF16, 2.0**-9)])
def test_half_an_ulp(dtype: Dtype, half: float) -> None:
    """Beside the largest number of a binade, where it is least."""
    assert half_ulp(np.dtype(dtype.numpy)) == half
