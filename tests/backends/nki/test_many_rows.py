"""More rows than a tile: what one tile of rows leaves must not reach the next."""

from __future__ import annotations

import numpy as np
import pytest

from gdsl import api

SWEEP = """
rule gated_delta[K, V](q[K], k[K], v[V], decay, beta, state S[K, V]) -> o[V]:
    S = decay * S
    S = S + k * (beta * (v - sum[K](k * S)))
    o = sum[K](q * S)
kernel sweep:
    axes H, K, V
    input k: f32[H, K]
    input x: f32[H, V]
    state S: f32[H, K, V] = s0
    o, S = step gated_delta(k, k, x, 1, 1, S)
    output out: f32[H, V] = o + x
    output s1: f32[H, K, V] = S
"""


@pytest.mark.parametrize("rows", [127, 128, 129, 160, 254, 256, 257])
def test_vectors_used_as_they_came(rows: int) -> None:
    """The value enters the deltas and the output raw, long after the next tile was loaded."""
    rng = np.random.default_rng(rows)
    given = {
        name: rng.standard_normal(shape).astype(np.float32) / 2
        for name, shape in {"k": (rows, 4), "x": (rows, 3), "s0": (rows, 4, 3)}.items()
    }
    definition = api.loads(SWEEP)
    expected = api.run(definition, given)
    found = api.compile(definition, target="trn2").run(given)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4)
