"""Tensors that may be left out: inputs with a default, states that start from zeros."""

from __future__ import annotations

import numpy as np
import pytest

from gdsl import api

TEXT = """
use norms
rule gated_delta[K, V](q[K], k[K], v[V], decay, beta, state S[K, V]) -> o[V]:
    S = decay * S
    S = S + k * (beta * (v - sum[K](k * S)))
    o = sum[K](q * S)
kernel optional:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input g: f32[B, H] in (-inf, 0] or 0.0
    input beta: bf16[H] or 0.5
    state S: f32[B, H, K, V] = s0{inplace} or zeros
    o, S = step gated_delta(q, l2norm[K](k), v, exp(g), beta, S)
    output out: f32[B, H, V] = o
    output s1: f32[B, H, K, V] = S
"""


@pytest.mark.parametrize("inplace", ["", " inplace"])
@pytest.mark.parametrize("given", [(), ("g",), ("s0",), ("g", "s0")])
def test_a_tensor_left_out(inplace: str, given: tuple[str, ...]) -> None:
    definition = api.loads(TEXT.format(inplace=inplace))
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    optional = {"g": -np.abs(normal(2, 3)), "s0": normal(2, 3, 8, 4)}
    arguments = {"q": normal(2, 3, 8), "k": normal(2, 3, 8), "v": normal(2, 3, 4)}
    arguments |= {name: optional[name] for name in given}
    expected = api.run(definition, arguments)
    found = api.compile(definition, target="trn2").run(arguments)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("dims", ["B, H, K, V", "B, H, V, K"])
@pytest.mark.parametrize(("tokens", "dtype"), [(False, "bf16"), (True, "bf16"), (False, "X")])
def test_a_state_of_two_bytes_may_be_missing(
    dims: str, given: bool, tokens: bool, dtype: str
) -> None:
    """Nothing may ask a tensor that is not there for its dtype."""
    definition = api.loads(f"""
use delta_rule
kernel m:
    axes B, {"T <= 16, " if tokens else ""}H, K, V
    dtypes X in bf16, f16
    input q, k: X[B, {"T, " if tokens else ""}H, K]
    input v: X[B, {"T, " if tokens else ""}H, V]
    input g, b: f32[B, {"T, " if tokens else ""}H]
    state S: {dtype}[{dims}] = s0 or zeros
    o, S = {"scan[T]" if tokens else "step"} gated_delta(0.1 * q, 0.1 * k, v, sigmoid(g), b, S)
    output out: f32[B, {"T, " if tokens else ""}H, V] = o
    output s1: {dtype}[{dims}] = S
""")
    sizes = {"B": 2, "H": 2, "K": 8, "V": 12} | ({"T": 3} if tokens else {})
    arrays = api.random_inputs(definition, sizes, seed=1)
    if not given:
        del arrays["s0"]
    right = api.run(definition, arrays, precision="float64")
    got = api.run(definition, arrays, backend="simulator")
    for name, array in right.items():
        np.testing.assert_allclose(got[name].astype(float), array, atol=0.03)
