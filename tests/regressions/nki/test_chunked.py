"""Inverses, masks, tails and chunk sizes of the emitted chunked kernels, against the recurrence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl

PREFILL = """
use delta_rule
kernel prefill:
    axes B, H, T, K, V
    input q, k: f32[B, H, T, K]
    input v: f32[B, H, T, V]
    input g: f32[B, H, T] in (-inf, 0]
    input beta: f32[B, H, T] in [0, 1]
    assume sum[K](k * k) <= 1.01
    state S: f32[B, H, K, V] = s0 inplace
    o, S = scan[T] gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, H, T, V] = o
    output s0 = S
"""
NEUMANN = "\nschedule prefill:\n    inverse = neumann\n"
INVERSES = ["", NEUMANN]
C = 128
"""Tokens per chunk."""


def prefill(
    launch: Callable[..., Any],
    run: Callable[..., Any],
    given: Mapping[str, Any],
    lnc: int = 1,
    schedule: str = "",
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return what the emitted kernel computes, and the recurrence in float64."""
    return launch(PREFILL + schedule, lnc=lnc, **given), run(PREFILL, **given)


def close(got: dict[str, NDArray[Any]], exact: dict[str, NDArray[Any]], limit: float) -> None:
    """Per head: the largest error in units of the head's rms."""
    for name, right in exact.items():
        error = np.abs(got[name] - right).max(axis=(-1, -2))
        scale = np.sqrt(np.mean(right**2, axis=(-1, -2)))
        assert (error <= limit * np.maximum(scale, 1e-3)).all(), (name, (error / scale).max())


def rows(
    seed: int, T: int, *, strength: float = 0.0, heads: int = 1, K: int = 16, V: int = 8
) -> dict[str, NDArray[Any]]:
    """Random rows with unit keys, `strength` times a fixed vector in each."""
    rng = np.random.default_rng(seed)
    keys = strength * rng.standard_normal(K) + rng.standard_normal((1, heads, T, K))
    return {
        "q": rng.standard_normal((1, heads, T, K)) * K**-0.5,
        "k": keys / np.linalg.norm(keys, axis=-1, keepdims=True),
        "v": rng.standard_normal((1, heads, T, V)),
        "g": -0.1 * rng.random((1, heads, T)),
        "beta": rng.random((1, heads, T)),
        "s0": rng.standard_normal((1, heads, K, V)),
    }


def test_the_text_is_computed_in_chunks() -> None:
    plan = gdsl.compile(gdsl.loads(PREFILL)).compilation.plan
    assert (plan.form, plan.settings["chunk"]) == ("chunked", C)


@pytest.mark.parametrize("schedule", INVERSES)
@pytest.mark.parametrize("signs", [(1.0, 1.0), (1.0, -1.0)])
def test_b01_equal_tokens_stay_finite(
    launch: Callable[..., Any],
    run: Callable[..., Any],
    signs: tuple[float, float],
    schedule: str,
) -> None:
    """Every key the same, hardly any decay: powers of the chunk matrix would overflow."""
    T = 128
    given = rows(1, T)
    given["k"][:] = given["k"][:, :, :1]
    given |= {
        "q": given["k"].copy(),
        "v": np.resize(signs, T)[None, None, :, None] * np.ones((1, 1, T, 8)),
        "g": np.full((1, 1, T), -3.0720873e-5),
        "beta": np.full((1, 1, T), 0.99966465),
        "s0": np.zeros((1, 1, 16, 8)),
    }
    got, exact = prefill(launch, run, given, schedule=schedule)
    close(got, exact, 3e-5)
    if signs == (1.0, -1.0):
        first = [0.99966465, -0.99932942, 0.99932953]
        np.testing.assert_allclose(got["out"][0, 0, :3, 0], first, atol=1e-5)


@pytest.mark.parametrize("schedule", INVERSES)
@pytest.mark.parametrize(
    ("betas", "g"), [((0.9, 1.0), -1e-3), ((0.9, 1.0), -3.0), ((0.9, 0.9), -1e-4)]
)
def test_b02_b04_correlated_keys(
    launch: Callable[..., Any],
    run: Callable[..., Any],
    betas: tuple[float, float],
    g: float,
    schedule: str,
) -> None:
    """Cosine about 0.9; the fast decay between is the twin that passes with any inverse."""
    given = rows(2, 128, strength=3.0)
    given["beta"] = np.random.default_rng(3).uniform(*betas, given["beta"].shape)
    given["g"][:] = g
    got, exact = prefill(launch, run, given, schedule=schedule)
    close(got, exact, 1e-4)


@pytest.mark.parametrize("T", [1, 20, C - 1, C, C + 1, C + 15])
def test_b07_tails_of_a_chunk_under_strong_decay(
    launch: Callable[..., Any], run: Callable[..., Any], T: int
) -> None:
    """What lies past T in the last chunk is unwritten, which is NaN in the simulator."""
    given = rows(7, T, K=2, V=2)
    given["g"][:] = -10.0
    got, exact = prefill(launch, run, given)
    close(got, exact, 3e-5)


@pytest.mark.parametrize("g", [-0.7, -1.5, -6.0, -21.0])
def test_b08_uniform_decay_that_overflows_a_chunk(
    launch: Callable[..., Any], run: Callable[..., Any], g: float
) -> None:
    """Above the diagonal exp(G_i - G_j) would be e^90 at -0.7 and chunk 128."""
    given = rows(8, 128)
    given["g"][:] = g
    got, exact = prefill(launch, run, given)
    close(got, exact, 3e-5)


def test_b08_strong_tokens_before_weak_ones(
    launch: Callable[..., Any], run: Callable[..., Any]
) -> None:
    """-21 for half a chunk, then -1e-3, with one token of -336 (B12): segment sums, no prefixes."""
    given = rows(12, 128)
    given["g"][..., :64], given["g"][..., 64:] = -21.0, -1e-3
    given["g"][..., 40] = -336.0
    got, exact = prefill(launch, run, given)
    close(got, exact, 3e-5)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_b09_decay_of_one_is_the_plain_delta_rule(
    launch: Callable[..., Any], run: Callable[..., Any], zero: float
) -> None:
    given = rows(9, 50)
    given["g"][:] = zero
    got, exact = prefill(launch, run, given)
    close(got, exact, 3e-5)
    one = np.ones((1, 1, 7, 1))
    scalar = {
        "q": one, "k": one, "v": one, "g": np.full((1, 1, 7), zero),
        "beta": np.full((1, 1, 7), 0.5), "s0": np.zeros((1, 1, 1, 1)),
    }  # fmt: skip
    states, _ = prefill(launch, run, scalar)
    np.testing.assert_allclose(states["s0"].item(), 1 - 2.0**-7, rtol=1e-6)


@pytest.mark.parametrize("lnc", [1, 2])
def test_b31_several_heads_and_a_partial_chunk(
    launch: Callable[..., Any], run: Callable[..., Any], lnc: int
) -> None:
    got, exact = prefill(launch, run, rows(56, 160, heads=3), lnc)
    close(got, exact, 3e-5)


@pytest.mark.parametrize("chunk", [16, 32, 64])
def test_b56_a_chunk_size_is_the_one_computed_with(
    launch: Callable[..., Any], run: Callable[..., Any], chunk: int
) -> None:
    """Accepting 64 and computing with 128 inside is what the case is about."""
    schedule = f"\nschedule prefill:\n    chunk = {chunk}\n"
    got, exact = prefill(launch, run, rows(56, 150), schedule=schedule)
    close(got, exact, 3e-5)
    text = gdsl.compile(gdsl.loads(PREFILL + schedule)).text
    assert f"CHUNK = {chunk}" in text


def test_b58_tokens_beyond_one_segment(launch: Callable[..., Any], run: Callable[..., Any]) -> None:
    """Ten chunks go beyond the group of 8 that is in flight together; every row is written."""
    got, exact = prefill(launch, run, rows(58, 9 * C + 3))
    close(got, exact, 3e-5)


@pytest.mark.parametrize("cut", [1, C - 1, C, C + 1])
def test_b30_prefill_in_two_calls_is_prefill_in_one(
    launch: Callable[..., Any], run: Callable[..., Any], cut: int
) -> None:
    given = rows(30, 200)
    left, right = ({n: x[:, :, part] for n, x in given.items() if n != "s0"} for part in
                   (slice(None, cut), slice(cut, None)))  # fmt: skip
    first = launch(PREFILL, **left, s0=given["s0"])
    second = launch(PREFILL, **right, s0=first["s0"])
    exact = run(PREFILL, **given)
    out = np.concatenate([first["out"], second["out"]], 2)
    close({"out": out, "s0": second["s0"]}, exact, 3e-5)


def test_b63_the_state_of_a_later_part_is_an_affine_map_of_its_start(
    launch: Callable[..., Any], run: Callable[..., Any]
) -> None:
    """K = V = 1, beta = 0.5, decay 0.9, v = 3, 4: S = 2.675 + 0.2025 S_left."""
    one = np.ones((1, 1, 2, 1))
    call = {
        "q": one, "k": one, "v": np.array([3.0, 4.0]).reshape(1, 1, 2, 1),
        "g": np.full((1, 1, 2), math.log(0.9)), "beta": np.full((1, 1, 2), 0.5),
    }  # fmt: skip
    for left, right in ((0.0, 2.675), (1.0, 2.8775), (1.225, 2.9230625)):
        got, _ = prefill(launch, run, {**call, "s0": np.full((1, 1, 1, 1), left)})
        assert got["s0"].item() == pytest.approx(right, rel=1e-6)


def test_a_state_that_is_not_in_place_is_returned(launch: Callable[..., Any]) -> None:
    """The same text with a state of its own: same bits, and the caller's state is left alone."""
    text = PREFILL.replace("s0 inplace", "s0").replace("output s0 = S", "output s1 = S")
    given = rows(13, C)
    before = given["s0"].copy()
    separate, same = launch(text, **given), launch(PREFILL, **given)
    assert separate["s1"].tobytes() == same["s0"].tobytes()
    assert separate["out"].tobytes() == same["out"].tobytes()
    assert given["s0"].tobytes() == before.tobytes()
