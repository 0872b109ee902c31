"""Forms of the recurrence beside the gated delta rule, emitted in decode form."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gdsl import api

Agrees = Callable[..., None]
STEP = """
kernel form:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    {gate}
    state S: f32[B, H, K, V] = s0
    {step}
    output out: f32[B, H, V] = {out}
    output s1: f32[B, H, K, V] = S
"""
TEXTS = {
    "decay along V": (
        """
rule form[K, V](q[K], k[K], v[V], decay[V], state S[K, V]) -> o[V]:
    S = decay * S
    S = S + k * (0.5 * (v - sum[K](k * S)))
    o = sum[K](q * S)
""",
        "input w: f32[B, H, V] in (-inf, 0]",
        "o, S = step form(q, l2norm[K](k), v, exp(w), S)",
        "o",
    ),
    "output before the update, with a skip": (
        """
rule form[K, V](q[K], k[K], v[V], decay, state S[K, V]) -> o[V]:
    o = sum[K](q * S) + 0.3 * v
    S = decay * S + k * v
""",
        "input g: f32[B, H] in (-inf, 0]",
        "o, S = step form(q, k, v, exp(g), S)",
        "o",
    ),
    "erase without a write": (
        """
rule form[K, V](q[K], k[K], decay, state S[K, V]) -> o[V]:
    S = decay * S
    S = S - 0.7 * k * sum[K](k * S)
    o = sum[K](q * S)
""",
        "input g: f32[B, H] in (-inf, 0]",
        "o, S = step form(q, l2norm[K](k), exp(g), S)",
        "o * v",
    ),
    "index of heads and of values": (
        """
rule form[K, V](q[K], k[K], v[V], decay, state S[K, V]) -> o[V]:
    S = decay * S + k * v
    o = sum[K](q * S)
""",
        "",
        "o, S = step form(q, k, v, 1 - 2 ** (-5 - index[H]()), S)",
        "o * (1 + 0.1 * index[V]()) + index[B]()",
    ),
}
SUB_STEPS = """
rule write[K, V](k[K], v[V], beta, state S[K, V]):
    S = S + k * (beta * (v - sum[K](k * S)))
rule product[N, K, V](q[K], k[N, K], v[N, V], decay, beta[N], state S[K, V]) -> o[V]:
    S = decay * S
    S = scan[N] write(k, v, beta, S)
    o = sum[K](q * S)
kernel form:
    axes B{T}, N, H, K, V
    input q: f32[B{t}, H, K]
    input k: f32[B{t}, H, N, K]
    input v: f32[B{t}, N, H, V]
    input b: f32[B{t}, H, N]
    input g: f32[B{t}, H] in (-inf, 0]
    state S: f32[B, H, K, V] = s0
    o, S = {run} product(q * K ** -0.5, l2norm[K](k), v, exp(g), 2 * sigmoid(b), S)
    output out: f32[B{t}, H, V] = o
    output s1: f32[B, H, K, V] = S
"""
SIZES = {"B": 2, "T": 3, "N": 2, "H": 35, "K": 16, "V": 16}


@pytest.mark.parametrize(("rule", "gate", "step", "out"), TEXTS.values(), ids=TEXTS)
def test_one_step(rule: str, gate: str, step: str, out: str, agrees: Agrees) -> None:
    text = "use norms\n" + rule + STEP.format(gate=gate, step=step, out=out)
    agrees(api.loads(text), SIZES)


@pytest.mark.parametrize(
    ("T", "t", "run"), [("", "", "step"), (", T <= 16", ", T", "scan[T]")], ids=("one", "several")
)
def test_ordered_sub_steps(T: str, t: str, run: str, agrees: Agrees) -> None:
    """Of one token and of several; the decay applies in the first, the output after the last."""
    settings = {"form": "recurrent"} if T else {}
    agrees(api.loads("use norms\n" + SUB_STEPS.format(T=T, t=t, run=run)), SIZES, settings=settings)


def test_the_same_values_along_another_axis(agrees: Agrees) -> None:
    text = """
rule form[K, V](q[K], k[K], v[V], state S[K, V]) -> o[V]:
    S = S + k * v
    o = sum[K](q * S)
kernel form:
    axes B, H, K, V
    input q: f32[B, H, K]
    input v: f32[B, H, V]
    state S: f32[B, H, K, V] = s0
    o, S = step form(q, q * rename[V -> K](v), v, S)
    output out: f32[B, H, V] = o * rename[K -> V](q)
    output s1: f32[B, H, K, V] = S
"""
    agrees(api.loads(text), SIZES)
