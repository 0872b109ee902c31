"""Several tokens per call: splits, drafts, accepted counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gdsl.errors import RunError


@pytest.mark.parametrize("cut", range(5))
def test_b30_any_split_equals_one_run(scalar: Callable[..., Any], cut: int) -> None:
    states = [0.5, 1.25, 2.125, 3.0625]
    v = [1.0, 2.0, 3.0, 4.0]
    left = scalar(v[:cut], 0, 0.5)
    right = scalar(v[cut:], 0, 0.5, s0=left["s1"].item())
    assert [*left["out"], *right["out"]] == states
    assert right["s1"].item() == states[-1]


DRAFT = """
use conv, delta_rule
kernel draft:
    axes B, T <= 16, P <= 17, C, W, H, K, V
    input x: f32[B, T, C]
    input w: f32[C, W]
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input beta: f32[B, T, H]
    input accepted, valid_len: i32[B]
    state win: f32[B, P, C, W] = windows[P at accepted]
    state S: f32[B, P, H, K, V] = states[P at accepted]
    y, win, wins = scan[T < valid_len every 1] causal_conv(x, w, win)
    o, S, Ss = scan[T < valid_len every 1] gated_delta(q, k, v, 1, beta, S)
    output conv: f32[B, T, C] = y
    output out: f32[B, T, H, V] = o
    output window_out: f32[B, C, W] = win
    output windows_out: f32[B, T, C, W] = wins
    output states_out: f32[B, T, H, K, V] = Ss
"""


def drafted(
    run: Callable[..., Any], accepted: list[int], tokens: Any, lengths: list[int]
) -> dict[str, Any]:
    """Verify tokens [B, T] from the states after 0..4 tokens 1, 2, 3, 4 (beta = 0.5, g = 0)."""
    B, T = np.shape(tokens)
    one = np.ones((B, T, 1, 1))
    history = np.array([0, 0.5, 1.25, 2.125, 3.0625])
    line = np.array([0, 0, 0, 0, 1, 2, 3, 4.0])
    return run(  # type: ignore[no-any-return]
        DRAFT,
        x=np.array(tokens, float)[..., None],
        w=[[0.1, 0.2, 0.3, 0.4]],
        q=one,
        k=one,
        v=one * np.array(tokens, float)[..., None, None],
        beta=np.full((B, T, 1), 0.5),
        accepted=np.array(accepted, np.int32),
        valid_len=np.array(lengths, np.int32),
        windows=np.array([[[line[i : i + 4]] for i in range(5)]] * B),
        states=np.array([history] * B).reshape(B, 5, 1, 1, 1),
    )


@pytest.mark.parametrize(
    ("accepted", "start", "window"),
    [(2, 1.25, [0, 1, 2, 9]), (0, 0.0, [0, 0, 0, 9]), (4, 3.0625, [2, 3, 4, 9])],
)
def test_b35_b36_state_and_window_restart_at_the_accepted_token(
    run: Callable[..., Any], accepted: int, start: float, window: list[float]
) -> None:
    outputs = drafted(run, [accepted], [[9.0]], [1])
    assert outputs["out"].item() == start + 0.5 * (9 - start)
    assert outputs["window_out"].ravel().tolist() == window


def test_b24_states_after_each_token_are_indexed_by_batch_row(run: Callable[..., Any]) -> None:
    outputs = drafted(run, [4, 0], [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], [3, 2])
    assert outputs["states_out"].shape == (2, 3, 1, 1, 1)
    assert outputs["states_out"][1].ravel().tolist() == [0.5, 1.25, 0.0]
    assert outputs["states_out"][0].ravel().tolist() == outputs["out"][0].ravel().tolist()
    assert outputs["windows_out"][1, 2].tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize("accepted", [-1, 5])
def test_accepted_counts_never_wrap(run: Callable[..., Any], accepted: int) -> None:
    with pytest.raises(RunError) as error:
        drafted(run, [0, accepted], [[1.0], [1.0]], [1, 1])
    (found,) = error.value.diagnostics
    assert found.code == "E0708"
    assert f"`accepted` is {accepted} at B=1" in found.message
