"""Kernels that no Python code here knows: the decode schedule is a compiler, not a template."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gdsl import api

GATED_DELTA = """
rule gated_delta[K, V](q[K], k[K], v[V], decay[K?], beta, state S[K, V]) -> o[V]:
    S = decay * S
    r = sum[K](k * S)
    S = S + k * (beta * (v - r))
    o = sum[K](q * S)
"""
HEAD = """
    axes B, Hv, K, V
    input q, k: f32[B, Hv, K]
    input v, z: f32[B, Hv, V]
    input b: f32[B, Hv]
"""
TAIL = """
    output state_out: f32[B, Hv, K, V] = S
"""
STEP = "o, S = step gated_delta(l2norm[K](q) * K ** -0.5, l2norm[K](k), v, decay, sigmoid(b), S)"

TEXTS = {
    "sigmoid output gate, norm after the gate": f"""
use norms
{GATED_DELTA}
kernel other:
{HEAD}
    input a: f32[B, Hv]
    input w: f32[V]
    state S: f32[B, Hv, K, V] = s0
    decay = exp(-softplus(a))
    {STEP}
    output out: f32[B, Hv, V] = rms_norm[V](o * sigmoid(z), 1e-5) * w
{TAIL}""",
    "no gate, no norm, no decay": f"""
use norms
rule delta[K, V](q[K], k[K], v[V], beta, state S[K, V]) -> o[V]:
    S = S + k * (beta * (v - sum[K](k * S)))
    o = sum[K](q * S)
kernel other:
    axes B, Hv, K, V
    input q, k: bf16[B, Hv, K]
    input v: bf16[B, Hv, V]
    input b: f32[B, Hv]
    state S: f32[B, Hv, K, V] = s0
    o, S = step delta(q, l2norm[K](k), v, sigmoid(b), S)
    output out: bf16[B, Hv, V] = o
{TAIL}""",
    "constant decay, linear attention": f"""
rule linear[K, V](q[K], k[K], v[V], decay, state S[K, V]) -> o[V]:
    S = decay * S + k * v
    o = sum[K](q * S)
kernel other:
    axes B, Hv, K, V
    input q, k: f32[B, Hv, K]
    input v: f32[B, Hv, V]
    param decay: float = 0.9
    state S: f32[B, Hv, K, V] = s0
    o, S = step linear(q * K ** -0.5, k, v, decay, S)
    output out: f32[B, Hv, V] = o
{TAIL}""",
    "decay along K": f"""
use norms
{GATED_DELTA}
kernel other:
{HEAD}
    input g: f32[B, Hv, K]
    input A_log: f32[Hv]
    state S: f32[B, Hv, K, V] = s0
    decay = exp(-exp(A_log) * softplus(g))
    {STEP}
    output out: f32[B, Hv, V] = o * z * sigmoid(z)
{TAIL}""",
    "read before the decay, two keys": f"""
use norms
rule comba[K, V](q[K], p[K], k[K], v[V], decay, beta, state S[K, V]) -> o[V]:
    r = sum[K](p * S)
    S = decay * S + k * (beta * (v - r))
    o = sum[K](q * S)
kernel other:
{HEAD}
    input g: f32[B, Hv] in (-inf, 0]
    input D: f32[Hv]
    state S: f32[B, Hv, K, V] = s0
    kn = l2norm[K](k)
    o, S = step comba(l2norm[K](q) - D * kn, kn * 0.5, kn, v, exp(g), sigmoid(b), S)
    output out: f32[B, Hv, V] = max(o, 0) + where(z > 0, z, 0.1 * tanh(z))
{TAIL}""",
    "erase beside the write key": f"""
use norms
rule rwkv[K, V](r[K], decay[K], k[K], v[V], kk[K], a[K], state S[K, V]) -> o[V]:
    u = sum[K](kk * S)
    S = decay * S - (kk * a) * u + k * v
    o = sum[K](r * S)
kernel other:
{HEAD}
    input w, a: f32[B, Hv, K]
    state S: f32[B, Hv, K, V] = s0
    kk = l2norm[K](k)
    o, S = step rwkv(q, exp(-0.60653066 * sigmoid(w)), k * 0.1, sigmoid(b) * v, kk, sigmoid(a), S)
    output out: f32[B, Hv, V] = o + sum[K](q * k) * v * z
{TAIL}""",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_compiles_and_agrees_with_the_interpreter(text: str, agrees: Callable[..., None]) -> None:
    sizes = {"B": 2, "Hv": 3, "K": 32, "V": 16}
    agrees(api.loads(text), sizes, regimes=("gaussian", "zero-key"))


RENAMED = """
use delta_rule, norms
kernel renamed:
    axes B, H, T, K, J
    input q, k, v: f32[B, H, T, K]
    state S: f32[B, H, K, J] = s0
    o, S = scan[T] delta[K, J](q, l2norm[K](k), rename[K -> J](v), 0.5, S)
    output out: f32[B, H, T, J] = o
    output s1: f32[B, H, K, J] = S
"""


@pytest.mark.parametrize("form", ["chunked", "recurrent"])
def test_values_along_an_axis_of_keys(form: str, agrees: Callable[..., None]) -> None:
    """`rename` in front of a rule; in chunks it was an internal error."""
    sizes = {"B": 1, "H": 2, "T": 5, "K": 6, "J": 6}
    agrees(api.loads(RENAMED), sizes, settings={"form": form})


COMMON = """
use delta_rule, norms
kernel common:
    axes B, H, T, K, V
    input q, k: f32[B, H, T, K]
    input v: f32[B, H, T, V]
    input g: f32[{gate}] in [-4, 0]
    input b: f32[{beta}] in [0, 1]
    state S: f32[B, H, K, V] = s0
    o, S = scan[T] gated_delta(q, l2norm[K](k), v, exp(g), b, S)
    output out: f32[B, H, T, V] = o
    output s1: f32[B, H, K, V] = S
"""


@pytest.mark.parametrize("form", ["chunked", "recurrent"])
@pytest.mark.parametrize(("gate", "beta"), [("1", "B, H, T"), ("B, H, T", "1"), ("1", "1, 1")])
def test_gates_that_are_one_number(
    gate: str, beta: str, form: str, agrees: Callable[..., None]
) -> None:
    """The same for all heads and tokens; in chunks it was an internal error."""
    sizes = {"B": 1, "H": 2, "T": 20, "K": 8, "V": 3}
    agrees(api.loads(COMMON.format(gate=gate, beta=beta)), sizes, settings={"form": form})


DEAD = """
use delta_rule, norms
kernel dead:
    axes B, T <= 16, H, K, V
    input q: f32[B, T, H, K]
    input k: f32[{axes}]
    input v: f32[B, T, H, V]
    input n: i32[B] in [0, inf)
    state S: f32[B, H, K, V] = s0
    o, S = scan[T < n] delta(q, {key}, v, 0.1, S)
    output out: f32[B, T, H, V] = o
    output s1: f32[B, H, K, V] = S
"""


@pytest.mark.parametrize(
    ("axes", "key"), [("B, T, H, K", "sigmoid(k)"), ("B, H, K", "l2norm[K](k)"), ("H, K", "k")]
)
def test_nothing_is_erased_behind_the_end_of_a_sequence(
    axes: str, key: str, agrees: Callable[..., None]
) -> None:
    """Keys that are not 0 where their inputs are, or that tokens have in common."""
    sizes = {"B": 3, "T": 5, "H": 2, "K": 7, "V": 5}
    agrees(api.loads(DEAD.format(axes=axes, key=key)), sizes, regimes=("padding",))


BONUS = """
use delta_rule, norms
kernel bonus:
    axes B, H, T, K, V
    input q: f32[B, T, K]
    input k: f32[B, H, T, K]
    input v: f32[B, H, T, V]
    input g: f32[B, H, T] in (-inf, 0]
    state S: f32[B, H, K, V] = s0
    o, S = scan[T] linear_attention(l2norm[K](q), l2norm[K](k), v, exp(g), S)
    output out: f32[B, H, T, V] = o * sum[K](q * k)
    output s1: f32[B, H, K, V] = S
"""


def test_an_output_sees_keys_as_they_are_given(agrees: Callable[..., None]) -> None:
    """On chip the turned keys are normalised ones by then."""
    sizes = {"B": 1, "H": 2, "T": 20, "K": 7, "V": 5}
    agrees(api.loads(BONUS), sizes)
