"""Convolution and delta rule in one emitted kernel: window and state restart and end together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Outputs = dict[str, NDArray[Any]]
TAPS = (0.1, 0.2, 0.3, 0.4)
NEWEST = (0.0, 0.0, 0.0, 1.0)

DRAFT = """
use delta_rule, conv
kernel draft:
    axes B, T <= 16, P <= 17, H, K, V, W
    input x: f32[B, T, (H V)]
    input w: f32[(H V), W]
    input k: f32[B, T, H, K]
    input g, beta: f32[B, T, H]
    input accepted, valid_len: i32[B]
    state win: f32[B, P, (H V), W] = windows[P at accepted]
    state S: f32[B, P, H, K, V] = states[P at accepted]
    v, win, wins = scan[T < valid_len every 1] causal_conv(x, w, win)
    o, S, Ss = scan[T < valid_len every 1] gated_delta(k, k, v, exp(g), beta, S)
    output out: f32[B, T, H, V] = o
    output window_out: f32[B, (H V), W] = win
    output state_out: f32[B, H, K, V] = S
    output windows_out: f32[B, T, (H V), W] = wins
    output states_out: f32[B, T, H, K, V] = Ss
"""
HISTORY = np.array([0, 0.5, 1.25, 2.125, 3.0625])
"""States after 0..4 tokens 1, 2, 3, 4: beta = 0.5, no decay, one key."""
LINE = np.array([0, 0, 0, 0, 1, 2, 3, 4.0])


def drafted(
    launch: Callable[..., Any],
    accepted: list[int],
    tokens: Any,
    lengths: list[int],
    *,
    taps: tuple[float, ...] = NEWEST,
    lnc: int = 1,
) -> Outputs:
    """Verify tokens [B, T] after drafts 1, 2, 3, 4; what lies past a row's length is NaN."""
    B, T = np.shape(tokens)
    past = np.arange(T)[None] >= np.array(lengths)[:, None]
    one = np.where(past, np.nan, 1.0)[..., None]
    outputs: Outputs = launch(
        DRAFT,
        lnc=lnc,
        x=np.where(past, np.nan, tokens)[..., None],
        w=[taps],
        k=one[..., None],
        g=0 * one,
        beta=0.5 * one,
        accepted=np.array(accepted, np.int32),
        valid_len=np.array(lengths, np.int32),
        windows=np.array([[[LINE[i : i + 4]] for i in range(5)]] * B),
        states=np.array([HISTORY] * B).reshape(B, 5, 1, 1, 1),
    )
    return outputs


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize(
    ("accepted", "start", "window"),
    [(2, 1.25, [0, 1, 2, 9]), (0, 0.0, [0, 0, 0, 9]), (4, 3.0625, [2, 3, 4, 9])],
)
def test_b35_b36_state_and_window_restart_at_the_accepted_token(
    launch: Callable[..., Any], accepted: int, start: float, window: list[float], lnc: int
) -> None:
    outputs = drafted(launch, [accepted], [[9.0]], [1], lnc=lnc)
    assert outputs["out"].item() == start + 0.5 * (9 - start)
    assert outputs["window_out"].ravel().tolist() == window


def test_b35_the_convolution_sees_accepted_tokens_alone(launch: Callable[..., Any]) -> None:
    """After 1, 2 of the drafts the token 3 meets [1, 2, 3]: 0.2 + 0.6 + 1.2."""
    outputs = drafted(launch, [2], [[3.0]], [1], taps=TAPS)
    assert outputs["out"].item() == pytest.approx(1.25 + 0.5 * (2.0 - 1.25), rel=1e-6)


def test_b24_states_after_each_token_are_indexed_by_batch_row(launch: Callable[..., Any]) -> None:
    outputs = drafted(launch, [4, 0], [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], [3, 2])
    assert outputs["states_out"][1].ravel().tolist() == [0.5, 1.25, 0.0]
    assert outputs["states_out"][0].ravel().tolist() == outputs["out"][0].ravel().tolist()
    assert outputs["windows_out"][0, :, 0].tolist() == [[2, 3, 4, 1], [3, 4, 1, 2], [4, 1, 2, 3]]
    assert outputs["windows_out"][1, :, 0].tolist() == [[0, 0, 0, 1], [0, 0, 1, 2], [0, 0, 0, 0]]


@pytest.mark.parametrize("length", [0, 1, 3])
def test_b39_padding_ends_window_state_and_output(launch: Callable[..., Any], length: int) -> None:
    """Right padding is NaN in every input: nothing moves behind the last valid token."""
    outputs = drafted(launch, [2], [[7.0, 8.0, 9.0]], [length], taps=TAPS)
    line = [0.0, 0.0, 1.0, 2.0, 7.0, 8.0, 9.0]
    assert outputs["window_out"].ravel().tolist() == line[length : length + 4]
    assert outputs["out"].ravel()[length:].tolist() == [0.0] * (3 - length)
    state = 1.25
    for t in range(length):
        state += 0.5 * (np.dot(TAPS, line[t + 1 : t + 5]) - state)
        assert outputs["out"].ravel()[t] == pytest.approx(state, rel=1e-6)
    assert outputs["state_out"].item() == pytest.approx(state, rel=1e-6)


@pytest.mark.parametrize("cut", range(5))
def test_b30_b37_any_split_equals_one_call(launch: Callable[..., Any], cut: int) -> None:
    """Calls shorter than the window, from a filled one: states .5, 1.25, 2.125, 3.0625."""
    tokens = [1.0, 2.0, 3.0, 4.0]
    states: list[float] = []
    window, state = np.zeros(4), 0.0
    for piece in (tokens[:cut], tokens[cut:]):
        if not piece:
            continue
        one = np.ones((1, len(piece), 1))
        outputs = launch(
            DRAFT,
            x=np.reshape(piece, (1, -1, 1)),
            w=[NEWEST],
            k=one[..., None],
            g=0 * one,
            beta=0.5 * one,
            accepted=np.array([0], np.int32),
            valid_len=np.array([len(piece)], np.int32),
            windows=np.resize(window, (1, len(piece) + 1, 1, 4)),
            states=np.full((1, len(piece) + 1, 1, 1, 1), state),
        )
        states += outputs["out"].ravel().tolist()
        window, state = outputs["window_out"].ravel(), outputs["state_out"].item()
    assert states == HISTORY[1:].tolist()
    assert window.tolist() == tokens


POOL = """
use delta_rule, conv
kernel pooled:
    axes B, N, H, K, V, W
    input x: f32[B, (H V)]
    input w: f32[(H V), W]
    input k: f32[B, H, K]
    input read, write: i32[B]
    input keep: bool[B]
    state win: f32[N, (H V), W] = windows[N at read -> write] inplace or zeros unless keep
    state S: f32[N, H, K, V] = pool[N at read -> write] inplace or zeros unless keep
    v, win = step causal_conv(x, w, win)
    o, S = step gated_delta(k, k, v, 1, 0.5, S)
    output out: f32[B, H, V] = o
    output windows = win
    output pool = S
"""


def pooled(
    launch: Callable[..., Any], read: list[int], write: list[int], keep: list[bool], x: list[float]
) -> Outputs:
    """A pool of four slots; slot 2 holds what an earlier request left."""
    outputs: Outputs = launch(
        POOL,
        x=np.reshape(x, (-1, 1)),
        w=[TAPS],
        k=np.ones((len(x), 1, 1)),
        read=np.array(read, np.int32),
        write=np.array(write, np.int32),
        keep=np.array(keep),
        windows=np.array([[[0, 0, 0, 1.0]], [[4.0, 4, 4, 4]], [[9.0, 9, 9, 9]], [[0, 1.0, 2, 3]]]),
        pool=np.array([0.5, 2.0, 7.0, 1.0]).reshape(4, 1, 1, 1),
    )
    return outputs


def test_b28_a_new_request_sees_neither_state_nor_window_of_the_last(
    launch: Callable[..., Any],
) -> None:
    """Slot 2 holds S = 7 and a window of nines: tokens 1, 2 give 0.4, 1.1 as from zeros."""
    first = pooled(launch, [2], [2], [False], [1.0])
    assert first["out"].item() == pytest.approx(0.5 * 0.4, rel=1e-6)
    assert first["windows"][2].ravel().tolist() == [0, 0, 0, 1]
    second = pooled(launch, [0], [0], [True], [2.0])
    assert second["out"].item() == pytest.approx(0.5 + 0.5 * (1.1 - 0.5), rel=1e-6)


def test_b22_b27_rows_without_a_slot_touch_no_window(launch: Callable[..., Any]) -> None:
    """Read-only, skipped and write-only rows; what no row writes keeps its bits."""
    outputs = pooled(launch, [3, -1, -1], [-1, 9, 1], [True, True, True], [5.0, float("nan"), 5.0])
    window = float(np.dot(TAPS, [1, 2, 3, 5]))
    assert outputs["out"].ravel()[0] == pytest.approx(1 + 0.5 * (window - 1), rel=1e-6)
    assert outputs["out"].ravel()[1] == 0.0
    assert outputs["out"].ravel()[2] == pytest.approx(1.0, rel=1e-6)
    assert outputs["windows"][:, 0].tolist() == [
        [0, 0, 0, 1],
        [0, 0, 0, 5],
        [9, 9, 9, 9],
        [0, 1, 2, 3],
    ]
    assert outputs["pool"].ravel()[[0, 2, 3]].tolist() == [0.5, 7.0, 1.0]
