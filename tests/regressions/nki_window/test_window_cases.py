"""Public bugs of short convolutions on emitted kernels: taps, short calls, restarts, padding."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from gdsl.api import Program

TAPS = [0.1, 0.2, 0.3, 0.4]
Outputs = dict[str, NDArray[Any]]


@cache
def program_of(text: str, target: str) -> Program:
    definition = gdsl.loads(text) if "\n" in text else gdsl.load(text)
    return gdsl.compile(definition, target=target)


def launch(text: str, *, target: str = "trn2", lnc: int = 1, **arguments: Any) -> Outputs:
    """Simulate the emitted kernel; lists and float64 become float32."""
    arrays = {name: np.asarray(value) for name, value in arguments.items()}
    narrow = {n: a.astype(np.float32) if a.dtype == np.float64 else a for n, a in arrays.items()}
    return dict(program_of(text, target).run(narrow, lnc=lnc))


def line(*values: float) -> NDArray[Any]:
    """One row, one channel."""
    return np.array(values, float).reshape(1, 1, -1)


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_b37_the_last_tap_meets_the_newest_token(target: str) -> None:
    x = line(1, 2, 3, 4, 5)
    plain = launch("causal_conv1d_prefill", x=x, weight=[TAPS], target=target)
    np.testing.assert_allclose(plain["out"].ravel(), [0.4, 1.1, 2, 3, 4], rtol=1e-6)
    assert plain["conv_state_out"].ravel().tolist() == [2, 3, 4, 5]
    silu = launch("gdn_conv1d_prefill", x=x, weight=[TAPS], target=target)
    np.testing.assert_allclose(silu["out"].ravel()[:2], [0.2394751, 0.8252861], rtol=1e-6)
    window = launch("gdn_conv1d_prefill_w1", x=x, weight=[TAPS], target=target)["conv_state_out"]
    assert window.ravel().tolist() == [3, 4, 5]


def test_b37_a_call_shorter_than_the_window() -> None:
    first = launch("gdn_conv1d_prefill_w1", x=line(1, 2), weight=[TAPS])
    assert first["conv_state_out"].ravel().tolist() == [0, 1, 2]
    window = first["conv_state_out"]
    for kernel in ("gdn_conv1d_prefill_w1", "gdn_conv1d_decode_w1"):
        following = launch(kernel, x=line(3), weight=[TAPS], conv_state=window)
        assert following["out"].item() == pytest.approx(2.0 / (1 + np.exp(-2.0)), rel=1e-6)
        assert following["conv_state_out"].ravel().tolist() == [1, 2, 3]


@pytest.mark.parametrize("W", [2, 3, 4])
@pytest.mark.parametrize("T", range(1, 6))
def test_b30_b37_every_cut_equals_one_run(W: int, T: int) -> None:
    """A filled window is carried into the next call, however few tokens either call has."""
    x, weight = np.arange(1.0, T + 1), np.array(TAPS[-W:])
    padded = np.concatenate([np.zeros(W - 1), x])
    right = np.convolve(padded, weight[::-1], mode="valid")
    kernel = "causal_conv1d_prefill"
    whole = launch(kernel, x=line(*x), weight=[weight])
    np.testing.assert_allclose(whole["out"].ravel(), right, rtol=2e-6)
    for cut in range(1, T):
        left = launch(kernel, x=line(*x[:cut]), weight=[weight])
        state = left["conv_state_out"]
        rest = launch(kernel, x=line(*x[cut:]), weight=[weight], conv_state=state)
        joined = np.concatenate([left["out"], rest["out"]], axis=2)
        np.testing.assert_array_equal(joined, whole["out"])
        np.testing.assert_array_equal(rest["conv_state_out"], whole["conv_state_out"])


def test_b30_a_step_continues_a_prompt() -> None:
    prompt = launch("gdn_conv1d_prefill", x=line(1, 2, 3, 4), weight=[TAPS])
    step = launch(
        "gdn_conv1d_decode", x=line(5), weight=[TAPS], conv_state=prompt["conv_state_out"]
    )
    assert step["out"].item() == pytest.approx(4.0 / (1 + np.exp(-4.0)), rel=1e-6)
    assert step["conv_state_out"].ravel().tolist() == [2, 3, 4, 5]


RESET = """
use conv
kernel reset:
    axes B, C, T, W
    input x: f32[B, C, T]
    input weight: f32[C, W]
    input has_initial_state: bool[B]
    state win: f32[B, C, W] = conv_state or zeros unless has_initial_state
    y, win = scan[T] causal_conv(x, weight, win)
    output out: f32[B, C, T] = y
    output window: f32[B, C, W] = win
"""


@pytest.mark.parametrize("garbage", [9.0, np.nan, np.inf])
def test_b28_b38_a_row_that_starts_anew_sees_zeros(garbage: float) -> None:
    """Documents [1, 2, 3] and [4, 5] as rows: the bleed would give [3.0, 4.0] for the second."""
    x = np.array([[[1.0, 2.0]], [[4.0, 5.0]], [[4.0, 5.0]]])
    state = np.array([[[garbage] * 4], [[garbage] * 4], [[0.0, 1, 2, 3]]])
    flags = np.array([False, False, True])
    outputs = launch(RESET, x=x, weight=[TAPS], conv_state=state, has_initial_state=flags)
    rows = outputs["out"].reshape(3, 2)
    np.testing.assert_allclose(rows, [[0.4, 1.1], [1.6, 3.2], [3.0, 4.0]], rtol=1e-6)
    windows = [[0, 0, 1, 2], [0, 0, 4, 5], [2, 3, 4, 5]]
    assert outputs["window"].reshape(3, 4).tolist() == windows


@pytest.mark.parametrize("pads", [1, 2, 63])
@pytest.mark.parametrize("pad", [0.0, 7.0, np.nan])
@pytest.mark.parametrize("lnc", [1, 2])
def test_b39_padding_changes_nothing(pads: int, pad: float, lnc: int) -> None:
    """Outputs behind the end are exactly 0, the window is that of the last valid token."""
    x = np.full((4, 2, 5 + pads), pad)
    lengths = np.array([5, 2, 0, 1], np.int32)
    for row, length in enumerate(lengths):
        x[row, :, :length] = np.arange(1.0, length + 1)
    state = np.broadcast_to([6.0, 7, 8, 9], (4, 2, 4))
    outputs = launch(
        "causal_conv1d_prefill",
        x=x, weight=[TAPS, TAPS], conv_state=state, valid_len=lengths, lnc=lnc,
    )  # fmt: skip
    windows = [[2, 3, 4, 5], [8, 9, 1, 2], [6, 7, 8, 9], [7, 8, 9, 1]]
    assert outputs["conv_state_out"][:, 0].tolist() == windows
    assert outputs["conv_state_out"][:, 1].tolist() == windows
    for row, length in enumerate(lengths):
        assert not outputs["out"][row, :, length:].any()
        padded = np.concatenate([[7.0, 8, 9], np.arange(1.0, length + 1)])
        right = np.convolve(padded, TAPS[::-1], mode="full")[3 : 3 + length]
        np.testing.assert_allclose(outputs["out"][row, 0, :length], right, rtol=2e-6)


ACCEPTED = """
use conv
kernel drafts:
    axes B, C, T, W, P
    input x: f32[B, C, T]
    input weight: f32[C, W]
    input accepted: i32[B]
    state win: f32[B, P, C, W] = windows[P at accepted]
    y, win = scan[T] causal_conv(x, weight, win)
    output out: f32[B, C, T] = y
    output window: f32[B, C, W] = win
"""


@pytest.mark.parametrize("lnc", [1, 2])
def test_b36_a_row_restarts_from_the_window_after_its_accepted_drafts(lnc: int) -> None:
    """Drafts 1, 2, 3, 4 leave five windows; each row reads the one behind its accepted tokens."""
    line = np.array([0, 0, 0, 0, 1, 2, 3, 4.0])
    windows = np.array([[[line[i : i + 4]] * 3 for i in range(5)]] * 4)
    accepted = np.array([0, 1, 2, 4], np.int32)
    outputs = launch(
        ACCEPTED,
        x=np.full((4, 3, 1), 9.0), weight=[TAPS] * 3, accepted=accepted, windows=windows, lnc=lnc,
    )  # fmt: skip
    for row, kept in enumerate(accepted):
        window = [*line[kept + 1 : kept + 4], 9.0]
        assert outputs["window"][row].tolist() == [window] * 3
        np.testing.assert_allclose(outputs["out"][row].ravel(), np.dot(TAPS, window), rtol=1e-6)
