"""Head maps, strides, odd head dimensions and many rows in emitted kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from gdsl.errors import GdslError

MAP = """
use delta_rule
kernel heads:
    axes B, Hk, G, Hv = ({map}), K, V
    input q, k: f32[B, Hk, K]
    input v: f32[B, Hv, V]
    state S: f32[B, Hv, K, V] = s0
    o, S = step gated_delta(q, k, v, 1, 1, S)
    output out: f32[B, Hv, V] = o
    output s1 = S
"""


def test_b15_interleaved_head_map(launch: Callable[..., Any]) -> None:
    out = launch(
        MAP.replace("{map}", "Hk G"),
        q=np.ones((1, 2, 1)),
        k=np.array([1.0, 0.0]).reshape(1, 2, 1),
        v=np.array([10.0, 20.0, 30.0, 40.0]).reshape(1, 4, 1),
        s0=np.zeros((1, 4, 1, 1)),
    )["out"]
    assert out.ravel().tolist() == [10.0, 20.0, 0.0, 0.0]


TILED = """
use delta_rule, norms
kernel tiled:
    axes B, {axes}Hk, G, Hv = (G Hk), K, V
    input q, k: f32[B, {axes}Hk, K]
    input v, z: f32[B, {axes}Hv, V]
    input g, beta: f32[B, {axes}Hv] in (-1, 0]
    input bias: f32[Hv]
    {state}
    o, S = {run} gated_delta(l2norm[K](q), l2norm[K](k), v, exp(g), -beta, S)
    output out: f32[B, {axes}Hv, V] = rms_norm[V](o) * z + bias
    output s0 = S
"""
PLAIN = "state S: f32[B, Hv, K, V] = s0 inplace"
POOLED = """input read, write: i32[B]
    state S: f32[N, Hv, K, V] = s0[N at read -> write] inplace"""


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("sizes", [(1, 2, 3), (3, 16, 3), (70, 2, 2)])
@pytest.mark.parametrize("kind", ["step", "tokens", "pool", "value first"])
def test_b15_tiled_head_map(
    launch: Callable[..., Any],
    run: Callable[..., Any],
    kind: str,
    sizes: tuple[int, int, int],
    lnc: int,
) -> None:
    """Value head j reads key head j % Hk: rows go through the heads as they lie in the state."""
    B, Hk, G = sizes
    several = kind == "tokens"
    axes = "T <= 16, " if several else "N, " if kind == "pool" else ""
    text = TILED.format(
        axes="{axes}",
        state=POOLED if kind == "pool" else PLAIN,
        run="scan[T]" if several else "step",
    )
    text = text.replace("axes B, {axes}", f"axes B, {axes}")
    text = text.replace("{axes}", "T, " if several else "")
    if kind == "value first":
        text = text.replace("Hv, K, V] = s0", "Hv, V, K] = s0")
    definition = gdsl.loads(text)
    given_sizes = {"B": B, "Hk": Hk, "G": G, "K": 8, "V": 8, "T": 3, "N": B + 1}
    own = {axis.name for axis in definition.kernel.axes}
    given = gdsl.random_inputs(
        definition, {a: n for a, n in given_sizes.items() if a in own}, seed=15
    )
    exact, got = run(text, **given), launch(text, lnc=lnc, **given)
    for name, right in exact.items():
        np.testing.assert_allclose(got[name], right, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("lnc", [1, 2])
def test_b31_every_head_finds_its_rows(
    launch: Callable[..., Any], run: Callable[..., Any], tokens_text: str, lnc: int
) -> None:
    """H = 3 and token > 0: an offset that forgets the head stride shows here, not with H = 1."""
    rng = np.random.default_rng(31)
    B, T, H, K, V = 2, 3, 3, 5, 7
    arguments = {
        "q": rng.standard_normal((B, T, H, K)),
        "k": rng.standard_normal((B, T, H, K)) / 3,
        "v": rng.standard_normal((B, T, H, V)),
        "g": -rng.random((B, T, H)),
        "beta": rng.random((B, T, H)),
        "s0": rng.standard_normal((B, H, K, V)),
        "valid_len": np.full(B, T, np.int32),
    }
    exact = run(tokens_text, **arguments)
    for name, array in launch(tokens_text, lnc=lnc, **arguments).items():
        np.testing.assert_allclose(array, exact[name], rtol=2e-5, atol=2e-5, err_msg=name)


CHANNELS = """
use delta_rule, norms
kernel channels:
    axes B, H, K, V
    input q, k, g: f32[B, H, K]
    input v: f32[B, H, V]
    input beta: f32[B, H]
    state S: f32[B, H, K, V] = s0 inplace
    o, S = step gated_delta(l2norm[K](q), l2norm[K](k), v, exp(-softplus(g)), beta, S)
    output out: f32[B, H, V] = o
    output s0 = S
"""


@pytest.mark.parametrize("K", [60, 72, 100])
def test_b32_odd_head_dimensions_keep_out_of_their_neighbours(
    launch: Callable[..., Any], run: Callable[..., Any], K: int
) -> None:
    """Heads 0 and 2 keep their bits whatever head 1 between them holds, here its extremes.

    Its numbers are finite: the deltas of a tile are spread by a contraction over its heads with a
    0/1 matrix, in which a NaN that a live head computes reaches the others of its tile.
    """
    rng = np.random.default_rng(K)
    H, V = 3, K - 7
    arguments: dict[str, NDArray[Any]] = {
        "q": rng.standard_normal((1, H, K)),
        "k": rng.standard_normal((1, H, K)),
        "g": rng.standard_normal((1, H, K)),
        "v": rng.standard_normal((1, H, V)),
        "beta": rng.random((1, H)),
        "s0": rng.standard_normal((1, H, K, V)),
    }
    exact = run(CHANNELS, **arguments)
    got = launch(CHANNELS, **arguments)
    for name in ("out", "s0"):
        np.testing.assert_allclose(got[name], exact[name], rtol=2e-5, atol=2e-5)
    for name, extreme in {"q": 1e6, "k": -1e6, "g": -1e30, "v": 1e12, "s0": -1e12}.items():
        arguments[name][:, 1] = extreme
    beside = launch(CHANNELS, **arguments)
    for name in ("out", "s0"):
        assert beside[name][:, ::2].tobytes() == got[name][:, ::2].tobytes()
        assert np.isfinite(beside[name][:, 1]).all()


@pytest.mark.parametrize(("K", "V"), [(192, 64), (64, 513)])
def test_b32_b76_a_dimension_beyond_the_partitions_is_refused_with_its_number(
    launch: Callable[..., Any], step_text: str, K: int, V: int
) -> None:
    rows = {"q": (1, 1, K), "k": (1, 1, K), "v": (1, 1, V), "g": (1, 1), "beta": (1, 1)}
    arguments = {name: np.zeros(shape) for name, shape in rows.items()}
    with pytest.raises(GdslError, match=r"needs (K <= 128, got K = 192|V <= 512, got V = 513)"):
        launch(step_text, s0=np.zeros((1, 1, K, V)), **arguments)


def test_b45_rows_of_a_packed_array_are_as_contiguous_ones(
    launch: Callable[..., Any], step_text: str
) -> None:
    """q, k, v as slices of one [B, H, 2 K + V] array, whose other elements are NaN."""
    rng = np.random.default_rng(45)
    B, H, K, V = 2, 3, 8, 4
    packed = np.full((B, 2 * H, 2 * K + V + 1), np.nan, np.float32)
    packed[:, ::2, :-1] = rng.standard_normal((B, H, 2 * K + V))
    views = {
        "q": packed[:, ::2, :K], "k": packed[:, ::2, K : 2 * K], "v": packed[:, ::2, 2 * K : -1]
    }  # fmt: skip
    rest = {
        "g": -rng.random((B, H)),
        "beta": rng.random((B, H)),
        "s0": rng.standard_normal((B, H, K, V)),
    }
    strided = launch(step_text, **views, **rest)
    copies = {name: np.ascontiguousarray(view) for name, view in views.items()}
    for name, array in launch(step_text, **copies, **rest).items():
        assert np.isfinite(array).all()
        assert array.tobytes() == strided[name].tobytes()


@pytest.mark.parametrize("heads", [129, 256, 300])
def test_values_that_need_no_preparation_belong_to_their_own_tile(
    launch: Callable[..., Any], heads: int
) -> None:
    """Found by the sweep of B69: with beta = 1 the deltas read v as loaded, while the next tile of
    rows is already on its way."""
    k = np.ones((1, heads, 1))
    v = np.arange(float(heads)).reshape(1, heads, 1)
    text = MAP.replace("{map}", "Hk G")
    outputs = launch(text, q=k, k=k, v=v, s0=np.full((1, heads, 1, 1), 0.5))
    assert outputs["out"].ravel().tolist() == v.ravel().tolist()
    assert outputs["s1"].ravel().tolist() == v.ravel().tolist()


def test_b55_more_rows_than_a_launch_dimension_may_have_elsewhere(
    launch: Callable[..., Any], step_text: str
) -> None:
    """N * HV = 2,080 rows in one launch: 65 groups of 32 heads; rows are loops here, no grid."""
    B, H = 65, 32
    one = np.ones((B, H, 1))
    v = np.arange(float(B * H)).reshape(B, H, 1)
    outputs = launch(
        step_text, q=one, k=one, v=v, g=np.zeros((B, H)), beta=np.ones((B, H)),
        s0=np.zeros((B, H, 1, 1)),
    )  # fmt: skip
    assert outputs["out"].ravel().tolist() == v.ravel().tolist()


@pytest.mark.parametrize("axes", ["Hk, K", "K, Hk", "G, K", "Hv, K", "B, Hk, K"])
@pytest.mark.parametrize("order", ["Hk G", "G Hk"])
def test_inputs_of_some_of_the_axes_of_heads(
    both: Callable[..., Any], axes: str, order: str
) -> None:
    """Rows go through B, Hk and G; an input of Hk alone stands still, moves and stands still."""
    text = f"""
use delta_rule, norms
kernel scaled:
    axes B, Hk, G, Hv = ({order}), K, V
    input q, k: f32[B, Hk, K]
    input v: f32[B, Hv, V]
    input scale: f32[{axes}]
    state S: f32[B, Hv, K, V] = s0
    o, S = step delta(q, l2norm[K](k) * scale, v, 1, S)
    output out: f32[B, Hv, V] = o
    output s1: f32[B, Hv, K, V] = S
"""
    got, right = both(text, {"B": 3, "Hk": 2, "G": 3, "K": 8, "V": 12})
    np.testing.assert_allclose(got["out"], right["out"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_a_key_that_is_the_same_for_all_rows(both: Callable[..., Any], dtype: str) -> None:
    """It stands on keys once for every row, as vectors that differ do."""
    text = f"""
use delta_rule
kernel same_key:
    axes B, H, K, V
    input q: {dtype}[B, H, K]
    input k: {dtype}[K]
    input v: {dtype}[B, H, V]
    state S: f32[B, H, K, V] = s0
    o, S = step delta(q, k / sum[K](k * k + 1.0), v, 1, S)
    output out: f32[B, H, V] = o
    output s1: f32[B, H, K, V] = S
"""
    got, right = both(text, {"B": 3, "H": 5, "K": 8, "V": 12})
    np.testing.assert_allclose(got["out"], right["out"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got["s1"], right["s1"], rtol=1e-4, atol=1e-5)
