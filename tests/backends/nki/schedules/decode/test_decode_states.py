"""Where states lie: [V, K], in a pool, one after each token; alone and together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gdsl import api

RULE = """
use norms
rule gated_delta[K, V](q[K], k[K], v[V], decay[K?], beta, state S[K, V]) -> o[V]:
    S = decay * S
    S = S + k * (beta * (v - sum[K](k * S)))
    o = sum[K](q * S)
"""
TEXTS = {
    "pool, values first": f"""{RULE}
kernel placed:
    axes B, N, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input g: f32[B, H] in (-inf, 0]
    input read, write: i32[B]
    input has: bool[B]
    state S: f32[N, H, V, K] = pool[N at read -> write] inplace or zeros unless has
    o, S = step gated_delta(l2norm[K](q), l2norm[K](k), v, exp(g), 0.5, S)
    output out: f32[B, H, V] = o
    output pool = S
""",
    "tokens, values first, lengths": f"""{RULE}
kernel placed:
    axes B, T <= 16, H, K, V
    input q, k, g: f32[B, T, H, K] in (-8, 0]
    input v: f32[B, T, H, V]
    input valid_len: i32[B] in [0, 16]
    state S: f32[B, H, V, K] = s0
    o, S, Ss = scan[T < valid_len every 1] gated_delta(
        l2norm[K](q), l2norm[K](k), v, exp(g), 0.5, S
    )
    output out: f32[B, T, H, V] = o
    output s1: f32[B, H, V, K] = S
    output states: f32[B, T, H, K, V] = Ss
""",
    "tokens, states in bf16": f"""{RULE}
kernel placed:
    axes B, T <= 16, H, K, V
    input q, k: bf16[B, T, H, K]
    input v: bf16[B, T, H, V]
    state S: bf16[B, H, K, V] = s0 inplace
    o, S, Ss = scan[T every 1] gated_delta(l2norm[K](q), l2norm[K](k), v, 0.9, 0.5, S)
    output out: bf16[B, T, H, V] = o
    output s0 = S
    output states: bf16[B, T, H, V, K] = Ss
""",
    "states after every two tokens": f"""{RULE}
kernel placed:
    axes B, T <= 16, P, H, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input valid_len: i32[B] in [0, 16]
    state S: f32[B, H, K, V] = s0
    o, S, Ss = scan[T < valid_len every 2 -> P] gated_delta(
        l2norm[K](q), l2norm[K](k), v, 0.9, 0.5, S
    )
    output out: f32[B, T, H, V] = o
    output s1: f32[B, H, K, V] = S
    output states: f32[B, P, H, K, V] = Ss
""",
    "tokens without a batch": f"""{RULE}
kernel placed:
    axes T <= 16, H, K, V
    input q, k: f32[T, H, K]
    input v: f32[T, H, V]
    state S: f32[H, K, V] = s0
    o, S = scan[T] gated_delta(l2norm[K](q), l2norm[K](k), v, 0.9, 0.5, S)
    output out: f32[T, H, V] = o
    output s1: f32[H, V, K] = S
""",
}
SIZES = {"B": 3, "T": 5, "P": 2, "N": 5, "H": 37, "K": 16, "V": 24}
REGIMES = ("gaussian", "padding", "slots", "reset")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_agrees_with_the_interpreter(text: str, agrees: Callable[..., None]) -> None:
    settings = {"form": "recurrent"} if "scan" in text else {}
    agrees(api.loads(text), SIZES, regimes=REGIMES, settings=settings)
