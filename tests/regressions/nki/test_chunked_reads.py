"""Rules in chunks that read the state along another vector than they write, or before it decays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl

Run = Callable[..., dict[str, NDArray[Any]]]
BF16 = np.dtype(ml_dtypes.bfloat16)
K, V = 32, 24

# Every input is used whatever the rule is; what does not belong to it adds nothing to the output.
TEXT = """
use delta_rule, norms
rule early[K, V](q[K], k[K], v[V], decay, beta, state S[K, V]) -> o[V]:
    r = sum[K](k * S)
    S = decay * S + k * (beta * (v - r))
    o = sum[K](q * S)
kernel reads:
    axes B, Hk, G, T, K, V, H = (Hk G)
    dtypes X in bf16, f32
    input q, k, p: X[B, Hk, T, K]
    input v: X[B, H, T, V]
    input g: {g}
    input beta: f32[B, H, T] in [0, 1]
    input erase: f32[B, Hk, T, K] in [0, 1]
    input write: f32[B, H, T, V] in [0, 1]
    input valid_len: i32[B] in [0, inf) or T
    assume sum[K](k * k) <= 1.01
    assume sum[K](p * p) <= 1.01
    state S: f32[B, H, K, V] = s0 or zeros
    o, S = scan[T < valid_len] {rule}
    output out: X[B, H, T, V] = o + 0 * sum[K](p * erase) * write * beta
    output s1 = S
"""
SCALAR, CHANNEL = "f32[B, H, T] in (-inf, 0]", "f32[B, H, T, K] in {range}"
RULES = {
    "comba": (SCALAR, "comba(q, p, k, v, exp(g), beta, S)"),
    "comba, norms": (SCALAR, "comba(l2norm[K](q), p, l2norm[K](k), v, exp(g), beta, S)"),
    "early": (SCALAR, "early(q, k, v, exp(g), beta, S)"),
    "early, norms": (SCALAR, "early(q, l2norm[K](p), v, exp(g), 0.5 * beta, S)"),
    "gdn2, scalar": (SCALAR, "gdn2(q, k, v, exp(g), erase, write, S)"),
    "gdn2": (CHANNEL.format(range="(-inf, 0]"), "gdn2(q, k, v, exp(g), erase, write, S)"),
    "gdn2, bounded": (CHANNEL.format(range="[-5, 0]"), "gdn2(q, k, v, exp(g), erase, write, S)"),
}


def rows(seed: int, channels: bool, B: int, Hk: int, G: int, T: int) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    H = Hk * G

    def unit() -> NDArray[Any]:
        x = rng.standard_normal((B, Hk, T, K)) + 0.5
        return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))

    shape = (B, H, T, K) if channels else (B, H, T)
    given = {
        "q": rng.standard_normal((B, Hk, T, K)),
        "k": unit(),
        "p": unit(),
        "v": rng.standard_normal((B, H, T, V)),
        "g": -np.minimum(rng.exponential(1.0, shape) * rng.choice([0.01, 1, 8], shape), 5),
        "beta": rng.uniform(0, 1, (B, H, T)),
        "erase": rng.uniform(0, 1, (B, Hk, T, K)),
        "write": rng.uniform(0, 1, (B, H, T, V)),
        "s0": rng.standard_normal((B, H, K, V)),
    }
    return {name: value.astype(np.float32) for name, value in given.items()}


def text(name: str) -> str:
    g, rule = RULES[name]
    return TEXT.format(g=g, rule=rule)


def close(got: NDArray[Any], right: NDArray[Any], limit: float) -> None:
    """In units of the rms of each head."""
    scale = np.sqrt(np.mean(np.asarray(right, np.float64) ** 2, axis=(-1, -2), keepdims=True))
    worst = np.abs(np.asarray(got, np.float64) - right) / np.maximum(scale, 0.01)
    assert worst.max(initial=0) <= limit


@pytest.mark.parametrize(("chunk", "inverse"), [(128, "schur"), (32, "neumann")])
@pytest.mark.parametrize("rule", RULES)
def test_what_the_interpreter_says(run: Run, rule: str, chunk: int, inverse: str) -> None:
    """Several heads of a key, a tail, a shorter row with NaN behind its end."""
    T = chunk + 9
    given = rows(1, RULES[rule][0] != SCALAR, B=2, Hk=1, G=2, T=T)
    given["valid_len"] = np.array([T, 7], np.int32)
    right = run(text(rule), **given)
    for name in ("q", "k", "p", "v", "beta"):
        given[name][1, :, 7:] = np.nan
    settings: dict[str, int | str] = {"chunk": chunk, "inverse": inverse}
    got = gdsl.compile(gdsl.loads(text(rule)), settings=settings).run(given)
    assert not got["out"][1, :, 7:].any()
    for name, found in got.items():
        close(found, right[name], 3e-5)


@pytest.mark.parametrize("rule", ["comba", "gdn2, bounded"])
def test_sixteen_bits(run: Run, rule: str) -> None:
    given = rows(2, RULES[rule][0] != SCALAR, B=1, Hk=2, G=1, T=200)
    narrow = {n: x.astype(BF16) if n in ("q", "k", "p", "v") else x for n, x in given.items()}
    right = run(text(rule), **{n: np.asarray(x, np.float32) for n, x in narrow.items()})
    got = gdsl.compile(gdsl.loads(text(rule))).run(narrow, lnc=2)
    for name, found in got.items():
        error = np.asarray(found, np.float64) - right[name]
        assert np.sqrt(np.mean(error**2)) <= 1e-2 * np.sqrt(np.mean(right[name] ** 2))
