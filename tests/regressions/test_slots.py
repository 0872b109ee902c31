"""Slot pools: padding, resets, aliases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gdsl.errors import RunError

POOL = """
use conv, delta_rule
kernel pooled:
    axes B, T, N, C, W, H, K, V
    input x: f32[B, T, C]
    input w: f32[C, W]
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input g, beta: f32[B, T, H]
    input read, write: i32[B]
    input keep: bool[B]
    state win: f32[N, C, W] = windows[N at read -> write] inplace or zeros unless keep
    state S: f32[N, H, K, V] = pool[N at read -> write] inplace or zeros unless keep
    y, win = scan[T] causal_conv(x, w, win)
    o, S = scan[T] gated_delta(q, k, v, exp(g), beta, S)
    output conv: f32[B, T, C] = y
    output out: f32[B, T, H, V] = o
    output windows = win
    output pool = S
"""


def pooled(
    run: Callable[..., Any],
    read: list[int],
    write: list[int],
    pool: Any,
    keep: list[bool] | None = None,
    v: list[float] | None = None,
) -> dict[str, Any]:
    """Run rows with k = q = 1, beta = 0.5, g = 0 and the inputs `v` (one number a token)."""
    tokens = v or [1.0]
    B, T, N = len(read), len(tokens), len(pool)
    one = np.ones((B, T, 1, 1))
    return run(  # type: ignore[no-any-return]
        POOL,
        x=np.broadcast_to(np.array(tokens)[:, None], (B, T, 1)),
        w=[[0.1, 0.2, 0.3, 0.4]],
        q=one,
        k=one,
        v=one * np.array(tokens)[:, None, None],
        g=np.zeros((B, T, 1)),
        beta=np.full((B, T, 1), 0.5),
        read=np.array(read, np.int32),
        write=np.array(write, np.int32),
        keep=np.array(keep or [True] * B),
        windows=np.repeat(np.array(pool, float), 4).reshape(N, 1, 4),
        pool=np.array(pool, float).reshape(N, 1, 1, 1),
    )


def test_b22_padding_slot_is_no_address(run: Callable[..., Any]) -> None:
    """Slots [3, -1, 0] of a pool of 4: row 1 exactly 0, slots 1 and 2 bit-identical."""
    outputs = pooled(run, [3, -1, 0], [3, -1, 0], [1.0, np.nan, -7.5, 3.0])
    assert outputs["out"].ravel().tolist() == [2.0, 0.0, 1.0]
    assert outputs["conv"][1].item() == 0.0
    after = outputs["pool"].ravel()
    assert after[[0, 3]].tolist() == [1.0, 2.0]
    before = np.array([np.nan, -7.5])
    assert after[[1, 2]].tobytes() == before.tobytes()


def test_b23_slot_zero_is_live(run: Callable[..., Any]) -> None:
    """Batch [0, -1]: slot 0 gets exactly one update."""
    outputs = pooled(run, [0, -1], [0, -1], [3.0, 9.0])
    assert outputs["pool"].ravel().tolist() == [2.0, 9.0]
    assert outputs["out"].ravel().tolist() == [2.0, 0.0]


def test_b27_minus_one_never_wraps_to_the_last_slot(run: Callable[..., Any]) -> None:
    outputs = pooled(run, [0, 1], [-1, 1], [3.0, 5.0, 11.0])
    assert outputs["pool"].ravel().tolist() == [3.0, 3.0, 11.0]
    assert outputs["out"].ravel().tolist() == [2.0, 3.0]
    reads = pooled(run, [-1], [0], [3.0, 11.0])
    assert reads["out"].ravel().tolist() == [0.5]
    assert reads["pool"].ravel().tolist() == [0.5, 11.0]


@pytest.mark.parametrize("slot", [4, 2**31 - 1, -(2**31)])
def test_a_slot_beyond_the_pool_is_no_slot(run: Callable[..., Any], slot: int) -> None:
    outputs = pooled(run, [slot], [slot], [1.0, 2.0, 3.0, 4.0])
    assert outputs["out"].ravel().tolist() == [0.0]
    assert outputs["pool"].ravel().tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("read", "write", "shown"),
    [
        ([0, 1], [2, 2], "slot 2 of `windows` is written by row 0 and written by row 1"),
        ([0, 1], [1, -1], "slot 1 of `windows` is written by row 0 and read by row 1"),
    ],
)
def test_two_rows_on_one_slot_are_refused(
    run: Callable[..., Any], read: list[int], write: list[int], shown: str
) -> None:
    with pytest.raises(RunError) as error:
        pooled(run, read, write, [1.0, 2.0, 3.0])
    assert error.value.diagnostics[0].code == "E0709"
    assert shown in error.value.diagnostics[0].message


def test_b28_a_new_request_starts_from_zeros_whatever_the_slot_holds(
    run: Callable[..., Any],
) -> None:
    """Slot 2 holds NaN (was: garbage 7); x = [1, 2] with the flag false, S and window alike."""
    outputs = pooled(run, [2], [2], [5.0, 6.0, np.nan, 8.0], keep=[False], v=[1.0, 2.0])
    np.testing.assert_allclose(outputs["conv"].ravel(), [0.4, 1.1])
    assert outputs["out"].ravel().tolist() == [0.5, 1.25]
    assert outputs["pool"].ravel().tolist() == [5.0, 6.0, 1.25, 8.0]
    assert outputs["windows"][2].ravel().tolist() == [0, 0, 1, 2]


MIXED = """
use conv, delta_rule
kernel mixed:
    axes B, N, C, W, K, V
    input x: f32[B, C]
    input w: f32[C, W]
    input k: f32[B, K]
    input v: f32[B, V]
    input read, write: i32[B]
    state win: f32[B, C, W] = window inplace
    state S: f32[N, K, V] = pool[N at read -> write] inplace
    y, win = step causal_conv(x, w, win)
    o, S = step delta(k, k, v, 0.5, S)
    output conv: f32[B, C] = y
    output out: f32[B, V] = o
    output window = win
    output pool = S
"""


def test_a_skipped_row_keeps_a_state_outside_the_pool(run: Callable[..., Any]) -> None:
    window = np.arange(8.0).reshape(2, 1, 4)
    outputs = run(
        MIXED,
        x=[[9.0], [np.nan]],
        w=[[0.0, 0.0, 0.0, 1.0]],
        k=np.ones((2, 1)),
        v=np.ones((2, 1)),
        read=np.array([0, -1], np.int32),
        write=np.array([0, -1], np.int32),
        window=window,
        pool=np.zeros((2, 1, 1)),
    )
    assert outputs["window"].reshape(2, 4).tolist() == [[1, 2, 3, 9], [4, 5, 6, 7]]
    assert outputs["conv"].ravel().tolist() == [9.0, 0.0]
    assert outputs["out"].ravel().tolist() == [0.5, 0.0]
