"""Norms, gates and output gates folded into chunked kernels: tails, lengths, layouts, cuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl

Launch = Callable[..., dict[str, NDArray[Any]]]
Run = Callable[..., dict[str, NDArray[Any]]]
C = 128
K, V = 16, 24

TOKEN_MAJOR = """
use delta_rule, gates, norms
kernel token_major:
    axes B, T, Hk, G, K, V, Hv = (G Hk)
    input q, k: f32[B, T, Hk, K]
    input v: f32[B, T, Hv, V]
    input z: f32[B, Hv, V, T]
    input a, b: f32[B, T, Hv]
    input A_log, dt_bias: f32[Hv]
    input w: f32[Hv, V]
    param eps: float = 1e-5
    state S: f32[B, Hv, K, V] = s0 or zeros
    decay = exp(log_decay(a, A_log, dt_bias))
    o, S = scan[T] gated_delta(l2norm[K](q), 0.5 * l2norm[K](k), v, decay, 2 * sigmoid(b), S)
    output out: f32[B, T, Hv, V] = rms_norm[V](o, eps) * (1 + w) * sigmoid(z)
    output s1: f32[B, Hv, K, V] = S
"""


def rows(
    seed: int, T: int, B: int = 1, Hk: int = 1, G: int = 1, V: int = V
) -> dict[str, NDArray[Any]]:
    """Arguments of `gdn_prefill`: raw vectors of any length, raw gates."""
    rng = np.random.default_rng(seed)
    heads = Hk * G
    return {
        "query": 3 * rng.standard_normal((B, Hk, T, K)),
        "key": rng.standard_normal((B, Hk, T, K)) * rng.uniform(0.1, 9, (B, Hk, T, 1)),
        "value": rng.standard_normal((B, heads, T, V)),
        "z": rng.standard_normal((B, heads, T, V)),
        "a": rng.standard_normal((B, heads, T)),
        "b": rng.standard_normal((B, heads, T)),
        "A_log": np.log(rng.uniform(0.001, 16, heads)),
        "dt_bias": rng.standard_normal(heads),
        "norm_weight": rng.uniform(0.5, 1.5, V),
        "recurrent_state": rng.standard_normal((B, heads, K, V)),
    }


def close(got: NDArray[Any], right: NDArray[Any], limit: float = 3e-5) -> None:
    """In units of the rms of each head."""
    scale = np.sqrt(np.mean(right**2, axis=(-1, -2), keepdims=True))
    assert (np.abs(got - right) <= limit * np.maximum(scale, 0.01)).all()


def both(
    launch: Launch, run: Run, given: dict[str, Any], lnc: int = 1, text: str = "gdn_prefill"
) -> None:
    got, right = launch(text, lnc=lnc, **given), run(text, **given)
    for name, found in got.items():
        close(found, right[name])


@pytest.mark.parametrize("T", [1, C, C + 1, 2 * C + 15])
def test_chunk_tails(launch: Launch, run: Run, T: int) -> None:
    """Gates of tokens that are none would decay the state: sigmoid(0) and softplus(0) are not 0."""
    both(launch, run, rows(1, T, Hk=2, G=2))


@pytest.mark.parametrize(("heads", "lnc"), [((1, 1), 1), ((5, 1), 2), ((2, 3), 1)])
def test_heads(launch: Launch, run: Run, heads: tuple[int, int], lnc: int) -> None:
    """Few lanes have several chunks in a group, each with its own part of the outputs."""
    both(launch, run, rows(2, 3 * C + 7, Hk=heads[0], G=heads[1]), lnc)


@pytest.mark.parametrize(
    ("V", "heads", "lnc", "inverse"),
    [
        (192, (1, 1), 1, "schur"),
        (192, (1, 3), 2, "neumann"),
        (256, (2, 2), 1, "neumann"),
        (256, (3, 1), 2, "schur"),
        (512, (1, 2), 1, "schur"),
    ],
)
def test_a_norm_over_more_value_columns_than_a_tile_has(
    run: Run, V: int, heads: tuple[int, int], lnc: int, inverse: str
) -> None:
    """The norm of an output needs all columns of a head; their lanes are as wide."""
    given = rows(7, C + 3, Hk=heads[0], G=heads[1], V=V)
    given = {name: value.astype(np.float32) for name, value in given.items()}
    kernel = gdsl.compile(gdsl.load("gdn_prefill"), settings={"inverse": inverse})
    got, right = kernel.run(given, lnc=lnc), run("gdn_prefill", **given)
    for name, found in got.items():
        close(found, right[name])


def test_lengths_with_a_zero_and_nan_behind(launch: Launch, run: Run) -> None:
    given = rows(3, C + 5, B=3, Hk=2)
    lengths = np.array([0, 7, C + 5], np.int32)
    clean = run("gdn_prefill", **given, valid_len=lengths)
    for name in ("query", "key", "value", "z", "a", "b"):
        for row, length in enumerate(lengths):
            given[name][row, :, length:] = np.nan
    got = launch("gdn_prefill", **given, valid_len=lengths)
    assert not got["out"][0].any()
    assert not got["out"][1, :, 7:].any()
    np.testing.assert_array_equal(
        got["recurrent_state"][0], given["recurrent_state"][0].astype(np.float32)
    )
    for name, found in got.items():
        close(found, clean[name])


@pytest.mark.parametrize("cut", [1, C - 1, C])
def test_two_calls_are_one(launch: Launch, cut: int) -> None:
    given = rows(4, 200)
    whole = launch("gdn_prefill", **given)
    tokens = ("query", "key", "value", "z", "a", "b")
    parts: list[dict[str, Any]] = []
    state: Any = given["recurrent_state"]
    for part in (slice(None, cut), slice(cut, None)):
        now = {n: x[:, :, part] if n in tokens else x for n, x in given.items()}
        parts.append(launch("gdn_prefill", **{**now, "recurrent_state": state}))
        state = parts[-1]["recurrent_state"]
    close(np.concatenate([p["out"] for p in parts], 2), whole["out"])
    close(state, whole["recurrent_state"])


@pytest.mark.parametrize("key", ["0.5 * l2norm[K](k)", "sigmoid(b) * l2norm[K](k)"])
def test_layouts_head_map_factors_and_an_epsilon(launch: Launch, run: Run, key: str) -> None:
    """Tokens before heads, tiled heads, z with its tokens last, 1 + w for each head."""
    text = TOKEN_MAJOR.replace("0.5 * l2norm[K](k)", key)
    rng = np.random.default_rng(5)
    B, T, Hk, G = 2, C + 9, 2, 2
    heads = Hk * G
    given: dict[str, Any] = {
        "q": rng.standard_normal((B, T, Hk, K)),
        "k": rng.standard_normal((B, T, Hk, K)),
        "v": rng.standard_normal((B, T, heads, V)),
        "z": rng.standard_normal((B, heads, V, T)),
        "a": rng.standard_normal((B, T, heads)),
        "b": rng.standard_normal((B, T, heads)),
        "A_log": rng.uniform(-1, 1, heads),
        "dt_bias": rng.standard_normal(heads),
        "w": rng.standard_normal((heads, V)),
        "s0": rng.standard_normal((B, heads, K, V)),
        "eps": 0.3,
    }
    got, right = launch(text, **given), run(text, **given)
    close(np.moveaxis(got["out"], 1, 2), np.moveaxis(right["out"], 1, 2))
    close(got["s1"], right["s1"])


def test_zero_rows_and_extreme_gates(launch: Launch, run: Run) -> None:
    given = rows(6, 60)
    given["key"][:, :, 10] = 0
    given["query"][:, :, 11] = 0
    given["a"][..., :20], given["a"][..., 20:40] = 90.0, -90.0
    given["b"][..., 5], given["b"][..., 6] = -200.0, 200.0
    given["z"][:, :, 30] = -200.0
    both(launch, run, given)


def test_the_gate_of_a_head_that_never_decays(launch: Launch, run: Run) -> None:
    given = rows(7, 70, Hk=2)
    given["A_log"][0] = -np.inf
    both(launch, run, given)


@pytest.mark.parametrize("name", ["kda_prefill", "kda_prefill_bounded"])
@pytest.mark.parametrize("T", [5, C + 3])
def test_decays_per_channel(launch: Launch, run: Run, name: str, T: int) -> None:
    given = rows(8, T, Hk=3)
    rng = np.random.default_rng(9)
    del given["a"]
    given |= {"f": rng.standard_normal((1, 3, T, K)), "dt_bias": rng.standard_normal((3, K))}
    both(launch, run, given, text=name)
    del given["A_log"], given["recurrent_state"]
    both(launch, run, given, text=name)


def test_more_lanes_than_a_group(launch: Launch, run: Run) -> None:
    """What is shared by a head lies in a tile of the team, of which a group has a part."""
    given = rows(10, 20, Hk=6)
    rng = np.random.default_rng(11)
    del given["a"]
    given |= {"f": rng.standard_normal((1, 6, 20, K)), "dt_bias": rng.standard_normal((6, K))}
    both(launch, run, given, text="kda_prefill")


@pytest.mark.parametrize("decay", ["1", "exp(slope)"])
def test_a_decay_that_is_the_same_for_all_tokens(launch: Launch, run: Run, decay: str) -> None:
    """Gates without tokens, and no decay at all; tokens behind the end decay nothing either."""
    rule = "delta(q, k, v, beta, S)" if decay == "1" else f"gated_delta(q, k, v, {decay}, beta, S)"
    slope = "" if decay == "1" else "    input slope: f32[H] in (-inf, 0]\n"
    text = f"""
use delta_rule
kernel fixed:
    axes B, H, T, K, V
    input q, k: f32[B, H, T, K]
    input v: f32[B, H, T, V]
    input beta: f32[B, H, T] in [0, 1]
{slope}    assume sum[K](k * k) <= 1.01
    state S: f32[B, H, K, V] = s0 or zeros
    o, S = scan[T] {rule}
    output out: f32[B, H, T, V] = o
    output s1 = S
"""
    rng = np.random.default_rng(12)
    keys = rng.standard_normal((1, 2, C + 5, K))
    given = {
        "q": rng.standard_normal((1, 2, C + 5, K)),
        "k": keys / np.linalg.norm(keys, axis=-1, keepdims=True),
        "v": rng.standard_normal((1, 2, C + 5, V)),
        "beta": rng.random((1, 2, C + 5)),
        "s0": rng.standard_normal((1, 2, K, V)),
    }
    if slope:
        given["slope"] = -rng.random(2)
    both(launch, run, given, text=text)


@pytest.mark.parametrize(
    "vectors",
    [
        "l2norm[K](silu(q)), l2norm[K](silu(k)), silu(v)",
        "l2norm[K](q + k), l2norm[K](k), v * sigmoid(v)",
    ],
)
def test_vectors_that_are_more_than_an_input_and_a_factor(
    launch: Launch, run: Run, vectors: str
) -> None:
    """They are computed where those that come in are loaded, and turned on chip."""
    text = TOKEN_MAJOR.replace("l2norm[K](q), 0.5 * l2norm[K](k), v", vectors)
    assert vectors in text
    rng = np.random.default_rng(8)
    B, T, Hk, G = 1, C + 9, 1, 3
    given: dict[str, Any] = {
        "q": rng.standard_normal((B, T, Hk, K)),
        "k": rng.standard_normal((B, T, Hk, K)),
        "v": rng.standard_normal((B, T, G, V)),
        "z": rng.standard_normal((B, G, V, T)),
        "a": rng.standard_normal((B, T, G)),
        "b": rng.standard_normal((B, T, G)) - 2,
        "A_log": rng.uniform(-1, 1, G),
        "dt_bias": rng.standard_normal(G),
        "w": rng.standard_normal((G, V)),
        "s0": rng.standard_normal((B, G, K, V)),
        "eps": 0.3,
    }
    got, right = launch(text, **given), run(text, **given)
    close(np.moveaxis(got["out"], 1, 2), np.moveaxis(right["out"], 1, 2))
    close(got["s1"], right["s1"])


@pytest.mark.parametrize("kernel", ["gdn_prefill", "kda_prefill"])
@pytest.mark.parametrize("chunk", [16, 64])
def test_more_key_channels_than_tokens_of_a_chunk(kernel: str, chunk: int) -> None:
    """Norms are summed over the channels, which then need more partitions than a chunk has."""
    definition = gdsl.load(kernel)
    given = gdsl.random_inputs(definition, "B=1,Hk=1,G=1,T=20,K=80,V=16", seed=1)
    right = gdsl.run(definition, given, precision="float64")
    got = gdsl.run(definition, given, backend="simulator", settings={"chunk": chunk})
    for name, array in right.items():
        error = np.abs(np.asarray(got[name], float) - array).max()
        assert error < 0.05 * np.sqrt(np.mean(array**2))
