"""Slot pools, drafts and padding in emitted kernels: rows not addressed stay bit-identical."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl

POOL = """
use delta_rule
kernel pooled:
    axes B, N, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input g, beta: f32[B, H]
    input read, write: i32[B]
    input keep: bool[B]
    state S: f32[N, H, K, V] = pool[N at read -> write] inplace or zeros unless keep
    o, S = step gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, H, V] = o
    output pool = S
"""


def pooled(
    launch: Callable[..., Any],
    read: list[int],
    write: list[int],
    pool: Any,
    keep: list[bool] | None = None,
    lnc: int = 1,
) -> dict[str, NDArray[Any]]:
    """Run rows with k = q = v = 1, beta = 0.5, g = 0 on a pool of numbers."""
    B = len(read)
    one = np.ones((B, 1, 1))
    outputs: dict[str, NDArray[Any]] = launch(
        POOL,
        lnc=lnc,
        q=one,
        k=one,
        v=one,
        g=np.zeros((B, 1)),
        beta=np.full((B, 1), 0.5),
        read=np.array(read, np.int32),
        write=np.array(write, np.int32),
        keep=np.array(keep or [True] * B),
        pool=np.reshape(np.array(pool, np.float32), (-1, 1, 1, 1)),
    )
    return {name: array.ravel() for name, array in outputs.items()}


@pytest.mark.parametrize("lnc", [1, 2])
def test_b22_padding_slot_is_no_address(launch: Callable[..., Any], lnc: int) -> None:
    """Slots [3, -1, 0] of a pool of 4: row 1 exactly 0, slots 1 and 2 bit-identical."""
    outputs = pooled(launch, [3, -1, 0], [3, -1, 0], [1.0, np.nan, -7.5, 3.0], lnc=lnc)
    assert outputs["out"].tolist() == [2.0, 0.0, 1.0]
    assert outputs["pool"][[0, 3]].tolist() == [1.0, 2.0]
    assert outputs["pool"][[1, 2]].tobytes() == np.array([np.nan, -7.5], np.float32).tobytes()


@pytest.mark.parametrize("lnc", [1, 2])
def test_b22_rows_without_a_slot_may_hold_anything(launch: Callable[..., Any], lnc: int) -> None:
    """Inputs of a padded row of the batch are NaN; the live rows beside it must not see them."""
    nan = np.array([1.0, np.nan, 1.0, np.nan])
    rows = nan.reshape(4, 1, 1)
    outputs = launch(
        POOL, lnc=lnc, q=rows, k=rows, v=rows, g=0 * rows[..., 0], beta=0.5 * rows[..., 0],
        read=np.array([3, -1, 0, -1], np.int32), write=np.array([3, -1, 0, -1], np.int32),
        keep=np.ones(4, bool), pool=np.array([1.0, 2.0, 3.0, 4.0]).reshape(4, 1, 1, 1),
    )  # fmt: skip
    assert outputs["out"].ravel().tolist() == [2.5, 0.0, 1.0, 0.0]
    assert outputs["pool"].ravel().tolist() == [1.0, 2.0, 3.0, 2.5]


def test_b23_slot_zero_is_live(launch: Callable[..., Any]) -> None:
    """Batch [0, -1]: slot 0 gets exactly one update."""
    outputs = pooled(launch, [0, -1], [0, -1], [3.0, 9.0])
    assert outputs["pool"].tolist() == [2.0, 9.0]
    assert outputs["out"].tolist() == [2.0, 0.0]


def test_b27_minus_one_never_wraps_to_the_last_slot(launch: Callable[..., Any]) -> None:
    """Read-only verify, and a row that starts from nothing."""
    outputs = pooled(launch, [0, 1], [-1, 1], [3.0, 5.0, 11.0])
    assert outputs["pool"].tolist() == [3.0, 3.0, 11.0]
    assert outputs["out"].tolist() == [2.0, 3.0]
    fresh = pooled(launch, [-1], [0], [3.0, 11.0])
    assert fresh["out"].tolist() == [0.5]
    assert fresh["pool"].tolist() == [0.5, 11.0]


@pytest.mark.parametrize("slot", [4, 2**31 - 1, -(2**31)])
def test_b29_a_slot_beyond_the_pool_is_no_address(launch: Callable[..., Any], slot: int) -> None:
    """2^31 - 1 slots times a slot's size passes any 32-bit product on the way to an address."""
    outputs = pooled(launch, [slot], [slot], [1.0, 2.0, 3.0, 4.0])
    assert outputs["out"].tolist() == [0.0]
    assert outputs["pool"].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_b28_a_new_request_starts_from_zeros_whatever_the_slot_holds(
    launch: Callable[..., Any],
) -> None:
    outputs = pooled(launch, [2, 1], [2, 1], [5.0, 6.0, np.nan, 8.0], keep=[False, True])
    assert outputs["out"].tolist() == [0.5, 3.5]
    assert outputs["pool"].tolist() == [5.0, 3.5, 0.5, 8.0]


def test_b28_zeros_are_selected_and_not_multiplied(launch: Callable[..., Any]) -> None:
    """All rows fresh on a pool of infinities and NaN."""
    outputs = pooled(launch, [0, 1], [0, 1], [np.inf, np.nan, -np.inf], keep=[False, False])
    assert outputs["pool"][:2].tolist() == [0.5, 0.5]
    assert outputs["pool"][2] == -np.inf


@pytest.mark.parametrize("lnc", [1, 2])
def test_pool_of_the_library_against_a_loop_over_rows(
    launch: Callable[..., Any], run: Callable[..., Any], lnc: int
) -> None:
    """gdn_tkg_pool: moved slots, skipped and fresh rows; all bits of other slots kept."""
    kernel = gdsl.load("gdn_tkg_pool")
    sizes = {"B": 5, "N": 9, "Hk": 2, "G": 3, "K": 16, "V": 8}
    arguments = gdsl.random_inputs(kernel, sizes, seed=22)
    arguments["read"] = np.array([7, -1, 3, 8, 2], np.int32)
    arguments["write"] = np.array([6, -1, 3, 0, -1], np.int32)
    arguments["has_initial_state"] = np.array([True, True, False, True, True])
    before = arguments["pool"].copy()
    before[[1, 4, 5]] = np.nan
    arguments["pool"] = before
    exact = gdsl.run(kernel, arguments, precision="float64")
    got = launch("gdn_tkg_pool", lnc=lnc, **arguments)
    rows = [0, 2, 3, 4]
    out = np.asarray(got["out"], np.float64)
    np.testing.assert_allclose(out[rows], exact["out"][rows], rtol=2**-7, atol=1e-3)
    assert (out[1] == 0).all()
    written = [6, 3, 0]
    np.testing.assert_allclose(got["pool"][written], exact["pool"][written], rtol=1e-5, atol=1e-5)
    kept = [1, 2, 4, 5, 7, 8]
    assert got["pool"][kept].tobytes() == before[kept].tobytes()


def test_b25_a_pool_that_is_a_view_of_a_wider_one(launch: Callable[..., Any]) -> None:
    """Updates come back in what is returned, as from a compact copy; no caller's array is written,
    so none can be lost in a silent copy."""
    rng = np.random.default_rng(25)
    big = rng.standard_normal((5, 4, 3, 2)).astype(np.float32)
    before, view = big.copy(), big[:, :2]
    assert not view.flags.c_contiguous
    row = {name: rng.standard_normal((2, 2, 3)) for name in ("q", "k")}
    call = {
        **row, "v": rng.standard_normal((2, 2, 2)), "g": np.zeros((2, 2)),
        "beta": np.full((2, 2), 0.5), "read": np.array([4, 1], np.int32),
        "write": np.array([4, 0], np.int32), "keep": np.array([True, True]),
    }  # fmt: skip
    got, compact = launch(POOL, **call, pool=view), launch(POOL, **call, pool=view.copy())
    assert got["pool"].tobytes() == compact["pool"].tobytes()
    assert got["out"].tobytes() == compact["out"].tobytes()
    assert (got["pool"][[0, 4]] != view[[0, 4]]).all(axis=(1, 2, 3)).all()
    assert got["pool"][1:4].tobytes() == view[1:4].tobytes()
    assert big.tobytes() == before.tobytes()


DRAFT = """
use delta_rule
kernel draft:
    axes B, T <= 16, P <= 17, H, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input g, beta: f32[B, T, H]
    input accepted, valid_len: i32[B]
    state S: f32[B, P, H, K, V] = states[P at accepted]
    o, S, Ss = scan[T < valid_len every 1] gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, T, H, V] = o
    output state_out: f32[B, H, K, V] = S
    output states_out: f32[B, T, H, K, V] = Ss
"""


BATCH_LAST = DRAFT.replace("axes B, ", "axes ").replace("H, K, V\n", "H, K, V, B\n", 1)


def drafted(
    launch: Callable[..., Any],
    accepted: list[int],
    tokens: Any,
    lengths: list[int],
    lnc: int = 1,
    text: str = DRAFT,
) -> dict[str, NDArray[Any]]:
    """Verify tokens [B, T] from the states after 0..4 tokens 1, 2, 3, 4 (beta = 0.5, g = 0).

    Tokens past their row's length are NaN in every input.
    """
    B, T = np.shape(tokens)
    one = np.ones((B, T, 1, 1))
    one[np.arange(T)[None] >= np.array(lengths)[:, None]] = np.nan
    outputs: dict[str, NDArray[Any]] = launch(
        text,
        lnc=lnc,
        q=one,
        k=one,
        v=one * np.array(tokens, float)[..., None, None],
        g=0 * one[..., 0],
        beta=0.5 * one[..., 0],
        accepted=np.array(accepted, np.int32),
        valid_len=np.array(lengths, np.int32),
        states=np.array([[0, 0.5, 1.25, 2.125, 3.0625]] * B).reshape(B, 5, 1, 1, 1),
    )
    return outputs


@pytest.mark.parametrize(("accepted", "start"), [(2, 1.25), (0, 0.0), (4, 3.0625)])
def test_b35_the_state_restarts_at_the_accepted_token(
    launch: Callable[..., Any], accepted: int, start: float
) -> None:
    outputs = drafted(launch, [accepted], [[9.0]], [1])
    assert outputs["out"].item() == start + 0.5 * (9 - start)
    assert outputs["state_out"].item() == outputs["out"].item()


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("text", [DRAFT, BATCH_LAST], ids=["batch first", "batch last"])
def test_b24_states_after_each_token_are_indexed_by_batch_row(
    launch: Callable[..., Any], text: str, lnc: int
) -> None:
    tokens = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
    outputs = drafted(launch, [4, 0], tokens, [3, 2], lnc, text)
    assert outputs["states_out"].shape == (2, 3, 1, 1, 1)
    assert outputs["states_out"][1].ravel().tolist() == [0.5, 1.25, 0.0]
    assert outputs["states_out"][0].ravel().tolist() == outputs["out"][0].ravel().tolist()
    assert outputs["out"][1].ravel().tolist() == [0.5, 1.25, 0.0]
    assert outputs["state_out"].ravel()[1] == 1.25


PADDED = """
use delta_rule, gates
kernel padded:
    axes B, T, H, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input a, b: f32[B, T, H]
    input A_log, dt_bias: f32[H]
    input valid_len: i32[B]
    state S: f32[B, H, K, V] = s0
    decay = exp(log_decay(a, A_log, dt_bias))
    o, S = scan[T < valid_len] gated_delta(q, k, v, decay, sigmoid(b), S)
    output out: f32[B, T, H, V] = o + 1
    output s1: f32[B, H, K, V] = S
"""


def padded(
    launch: Callable[..., Any], rows: NDArray[Any], lengths: list[int], s0: list[float]
) -> dict[str, NDArray[Any]]:
    """Run rows [B, T] as every input of a token, with dt_bias = 1."""
    wide = rows[..., None, None]
    outputs: dict[str, NDArray[Any]] = launch(
        PADDED, q=wide, k=wide, v=wide, a=wide[..., 0], b=wide[..., 0], A_log=[0.0],
        dt_bias=[1.0], valid_len=np.array(lengths, np.int32), s0=np.reshape(s0, (-1, 1, 1, 1)),
    )  # fmt: skip
    return outputs


@pytest.mark.parametrize("pads", [1, 63, 64])
def test_b39_padding_changes_nothing_and_may_hold_nan(
    launch: Callable[..., Any], pads: int
) -> None:
    """The gate of a zeroed row still decays (0.2689 a pad): padding is an identity step."""
    outputs = padded(launch, np.full((1, pads), np.nan), [0], [1.0])
    assert outputs["s1"].item() == 1.0
    assert (outputs["out"] == 0).all()


@pytest.mark.parametrize("pads", [1, 5])
def test_b39_pads_behind_tokens(launch: Callable[..., Any], pads: int) -> None:
    tokens = np.array([[0.3, -0.7]])
    bare = padded(launch, tokens, [2], [1.0])
    tail = np.full((1, pads), np.nan)
    outputs = padded(launch, np.concatenate([tokens, tail], 1), [2], [1.0])
    assert outputs["s1"].tobytes() == bare["s1"].tobytes()
    assert outputs["out"][:, :2].tobytes() == bare["out"].tobytes()
    assert (outputs["out"][:, 2:] == 0).all()


def test_b40_an_empty_row_returns_its_initial_state(launch: Callable[..., Any]) -> None:
    """Lengths 0, 3, 0."""
    rows = np.random.default_rng(40).standard_normal((3, 3))
    outputs = padded(launch, rows, [0, 3, 0], [1.0, 2.0, 3.0])
    assert outputs["s1"].ravel()[[0, 2]].tolist() == [1.0, 3.0]
    assert (outputs["out"][[0, 2]] == 0).all()
    assert outputs["s1"].ravel()[1] != 2.0
