"""Limits of bf16: those of the definition's own rounding, capped unless the text itself casts."""

import numpy as np
import pytest

import gdsl
from gdsl.ir.dtypes import Dtype
from gdsl.pipeline import Compilation
from gdsl.regimes.trial import Trial
from gdsl.regimes.typed import bind_dtypes
from gdsl.verification.bounds import BF16_RMS, bf16_bounds
from gdsl.verification.exact import run_exactly
from gdsl.verification.precisions import casts
from gdsl.verification.rounding import round_operands

TEXT = """
use delta_rule, norms
kernel cancels:
    axes B, H, K, V
    dtypes X in bf16, f32
    input q, k: f32[B, H, K]
    input v: X[B, H, V]
    input decay, beta: f32[B, H] in [0, 1]
    state S: f32[B, H, K, V] = s0
    o, S = step gated_delta({q}, k, v, decay, beta, S)
    output out: f32[B, H, V] = rms_norm[V](o)
    output s1 = S
"""


@pytest.mark.parametrize(("q", "cap"), [("q", BF16_RMS), ("bf16(q)", None)])
def test_the_rounding_of_a_text_is_its_own_limit(q: str, cap: float | None) -> None:
    """q . k = -2^-10 in float64 and 0 with q in bf16; the norm makes 1 of whatever is left."""
    definition = gdsl.loads(TEXT.replace("{q}", q))
    kernel = definition.kernel
    assert casts(kernel) is (cap is None)
    trial, bound = _trial([1.0, -1.0]), bind_dtypes(kernel, Dtype.BF16)
    exact = run_exactly(kernel, trial, bound)
    found = bf16_bounds(exact, Compilation(definition).plan)
    assert found["s1"].rms.max() <= BF16_RMS
    limit = float(found["out"].rms[0])
    assert limit > 0.5 if cap is None else limit == cap


def test_a_text_that_casts_is_within_its_own_limit() -> None:
    """With k in bf16 as well, q . k is nearer to what float64 has than the text as it stands."""
    definition = gdsl.loads(TEXT.replace("{q}", "bf16(q)"))
    kernel, ulp = definition.kernel, 2.0**-7
    trial, bound = _trial([1 + 0.45 * ulp, -1 - 0.55 * ulp]), bind_dtypes(kernel, Dtype.BF16)
    exact = run_exactly(kernel, trial, bound)
    expected, own, rounded = (
        result.outputs["out"].astype(np.float64)
        for result in (
            exact.reference,
            exact.interpreted(kernel, "declared"),
            exact.interpreted(round_operands(kernel), "declared"),
        )
    )
    error = np.linalg.norm(own - expected) / np.linalg.norm(expected)
    assert error > 2 * np.linalg.norm(rounded - expected) / np.linalg.norm(expected)
    found = bf16_bounds(exact, Compilation(definition).plan)
    assert float(found["out"].rms[0]) == pytest.approx(2 * error)


def _trial(k: list[float]) -> Trial:
    """One token, q a quarter of an ulp of bf16 away from (1, 1)."""
    arguments = {
        "q": np.array([[[1.0, 1 + 2.0**-10]]]),
        "k": np.array([[k]]),
        "v": np.array([[[1.0, 2.0]]]),
        "decay": np.ones((1, 1)),
        "beta": np.ones((1, 1)),
        "s0": np.zeros((1, 1, 2, 2)),
    }
    return Trial({"B": 1, "H": 1, "K": 2, "V": 2}, (arguments,))
