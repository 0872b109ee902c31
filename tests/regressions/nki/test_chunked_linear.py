"""Rules that erase nothing, in chunks: there is nothing to solve, what is written is the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl

Run = Callable[..., dict[str, NDArray[Any]]]
Launch = Callable[..., dict[str, NDArray[Any]]]
BF16 = np.dtype(ml_dtypes.bfloat16)
K, V = 32, 24

TEXT = """
use delta_rule, norms
kernel linear:
    axes B, Hk, G, T, P, K, V, H = (Hk G)
    dtypes X in bf16, f32
    input q, k: X[B, Hk, T, K]
    input v: X[B, H, T, V]
    input g: {g}
    input valid_len: i32[B] in [0, inf) or T
    param N: int = 128
    state S: f32[B, H, K, V] = s0 or zeros
    o, S, states = scan[T < valid_len every N -> P] linear_attention(
        {vectors}, {decay}, S
    )
    output out: X[B, H, T, V] = {out}
    output s1 = S
    output checkpoints: f32[B, P, H, K, V] = states
"""
DECAYS = {
    "scalar": ("f32[B, H, T] in (-inf, 0]", "exp(g)"),
    "channel": ("f32[B, H, T, K] in (-inf, 0]", "exp(g)"),
    "bounded": ("f32[B, H, T, K] in [-5, 0]", "exp(g)"),
    "constant": ("f32[H] in (-inf, 0]", "exp(g)"),
}


COMPUTED = "q * sigmoid(q), 1 - sigmoid(k), v * sigmoid(v)"
"""None of them is 0 or a factor times an input where tokens are padding."""


def text(decay: str, out: str = "o", vectors: str = "q, k, v") -> str:
    g, factor = DECAYS[decay]
    return TEXT.format(g=g, decay=factor, out=out, vectors=vectors)


def rows(seed: int, decay: str, B: int, Hk: int, G: int, T: int) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    H = Hk * G
    shape = {"scalar": (B, H, T), "constant": (H,)}.get(decay, (B, H, T, K))
    given = {
        "q": rng.standard_normal((B, Hk, T, K)),
        "k": rng.standard_normal((B, Hk, T, K)),
        "v": rng.standard_normal((B, H, T, V)),
        "g": -np.minimum(rng.exponential(1.0, shape) * rng.choice([0.01, 1, 8], shape), 5),
        "s0": rng.standard_normal((B, H, K, V)),
    }
    return {name: value.astype(np.float32) for name, value in given.items()}


def close(got: NDArray[Any], right: NDArray[Any], limit: float) -> None:
    """In units of the rms of each head."""
    scale = np.sqrt(np.mean(np.asarray(right, np.float64) ** 2, axis=(-1, -2), keepdims=True))
    worst = np.abs(np.asarray(got, np.float64) - right) / np.maximum(scale, 0.01)
    assert worst.max(initial=0) <= limit


@pytest.mark.parametrize("chunk", [16, 64, 128])
@pytest.mark.parametrize("decay", DECAYS)
def test_every_decay_and_chunk(run: Run, decay: str, chunk: int) -> None:
    """States of rows of different lengths, after every chunk; dead tokens hold NaN."""
    T = 2 * chunk + 5
    given = rows(1, decay, B=2, Hk=1, G=2, T=T)
    given["valid_len"] = np.array([T, chunk + 3], np.int32)
    right = run(text(decay), **given, N=chunk)
    for name in ("q", "k", "v"):
        given[name][1, :, chunk + 3 :] = np.nan
    got = gdsl.compile(gdsl.loads(text(decay)), settings={"chunk": chunk}).run(
        {**given, "N": chunk}
    )
    assert not got["out"][1, :, chunk + 3 :].any()
    for name, found in got.items():
        close(found, right[name], 3e-5)


@pytest.mark.parametrize("decay", ["scalar", "bounded"])
def test_sixteen_bits_and_a_norm_of_the_output(run: Run, decay: str) -> None:
    given = rows(2, decay, B=1, Hk=2, G=3, T=300)
    narrow = {n: x.astype(BF16) if n in ("q", "k", "v") else x for n, x in given.items()}
    source = text(decay, "rms_norm[V](o)")
    right = run(source, **{n: np.asarray(x, np.float32) for n, x in narrow.items()})
    got = gdsl.compile(gdsl.loads(source)).run(narrow, lnc=2)
    for name, found in got.items():
        error = np.asarray(found, np.float64) - right[name]
        scale = np.sqrt(np.mean(right[name] ** 2))
        assert np.sqrt(np.mean(error**2)) <= 1e-2 * scale


@pytest.mark.parametrize("decay", ["scalar", "bounded"])
@pytest.mark.parametrize("vectors", [COMPUTED, "exp(q), k, v", "q, k, exp(v)"])
def test_vectors_that_are_computed(run: Run, decay: str, vectors: str) -> None:
    """A dead token's query need not be 0; its output is. Its key and value write nothing."""
    given = rows(3, decay, B=2, Hk=2, G=1, T=140)
    given["valid_len"] = np.array([140, 9], np.int32)
    source = text(decay, vectors=vectors)
    right = run(source, **given)
    for name in ("q", "k", "v"):
        given[name][1, :, 9:] = np.nan
    got = gdsl.compile(gdsl.loads(source)).run(given)
    assert not got["out"][1, :, 9:].any()
    for name, found in got.items():
        close(found, right[name], 3e-5)


def test_nothing_is_inverted(launch: Launch) -> None:
    plan = gdsl.compile(gdsl.loads(text("scalar")))
    assert "inverse" not in plan.text
    assert "nothing is erased" in " ".join(plan.compilation.plan.why)
