"""The short convolution: tap order, window width, short sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

TAPS = [0.1, 0.2, 0.3, 0.4]

CONV = """
use conv, gates
kernel conv:
    axes B, T, C, W
    input x: f32[B, T, C]
    input w: f32[C, W]
    state win: f32[B, C, W] = window or zeros
    y, win = scan[T] causal_conv(x, w, win)
    output out: f32[B, T, C] = y
    output activated: f32[B, T, C] = silu(y)
    output window_out: f32[B, C, W] = win
"""

NARROW = """
rule short_conv[J](x, w[J], tap, state win[J]) -> y:
    y = sum[J](win * w) + x * tap
    win = shift[J](win, x)
kernel conv:
    axes B, T, C, J
    input x: f32[B, T, C]
    input w: f32[C, J]
    input tap: f32[C]
    state win: f32[B, C, J] = window or zeros
    y, win = scan[T] short_conv(x, w, tap, win)
    output out: f32[B, T, C] = y
    output window_out: f32[B, C, J] = win
"""


def line(values: list[float]) -> Any:
    return np.array(values, float).reshape(1, -1, 1)


def test_b37_the_last_tap_meets_the_newest_token(run: Callable[..., Any]) -> None:
    outputs = run(CONV, x=line([1, 2, 3, 4, 5]), w=[TAPS])
    np.testing.assert_allclose(outputs["out"].ravel(), [0.4, 1.1, 2, 3, 4])
    np.testing.assert_allclose(outputs["activated"].ravel()[:2], [0.2394751, 0.8252861], atol=1e-7)
    assert outputs["window_out"].ravel().tolist() == [2, 3, 4, 5]


def test_b37_window_of_w_minus_one_columns(run: Callable[..., Any]) -> None:
    args = {"w": [TAPS[:3]], "tap": [TAPS[3]]}
    outputs = run(NARROW, x=line([1, 2, 3, 4, 5]), **args)
    np.testing.assert_allclose(outputs["out"].ravel(), [0.4, 1.1, 2, 3, 4])
    assert outputs["window_out"].ravel().tolist() == [3, 4, 5]
    first = run(NARROW, x=line([1, 2]), **args)
    assert first["window_out"].ravel().tolist() == [0, 1, 2]
    following = run(NARROW, x=line([3]), window=first["window_out"], **args)
    assert following["out"].item() == pytest.approx(2.0)
    assert following["window_out"].ravel().tolist() == [1, 2, 3]


@pytest.mark.parametrize("W", [2, 3, 4])
@pytest.mark.parametrize("T", range(1, 6))
def test_b37_b64_any_length_and_every_cut(run: Callable[..., Any], W: int, T: int) -> None:
    """Shards shorter than the window carry what they need: every cut equals one run."""
    x, w = np.arange(1.0, T + 1), np.array(TAPS[-W:])
    right = np.convolve(np.concatenate([np.zeros(W - 1), x]), w[::-1], mode="valid")
    whole = run(CONV, x=line(list(x)), w=w[None])
    np.testing.assert_allclose(whole["out"].ravel(), right)
    for cut in range(T + 1):
        left = run(CONV, x=line(list(x[:cut])), w=w[None])
        rest = run(CONV, x=line(list(x[cut:])), w=w[None], window=left["window_out"])
        joined = np.concatenate([left["out"], rest["out"]], axis=1)
        np.testing.assert_allclose(joined, whole["out"])
        np.testing.assert_array_equal(rest["window_out"], whole["window_out"])


VARLEN = """
use conv
kernel documents:
    axes B, T, C, W
    input x: f32[B, T, C]
    input w: f32[C, W]
    input length: i32[B]
    state win: f32[B, C, W] = window or zeros
    y, win = scan[T < length] causal_conv(x, w, win)
    output out: f32[B, T, C] = y
    output window_out: f32[B, C, W] = win
"""


def test_b38_documents_do_not_leak_through_the_window(run: Callable[..., Any]) -> None:
    """Documents [1,2,3] and [4,5] as rows; the bleed would give [3.0, 4.0] for the second."""
    x = np.array([[1.0, 2, 3], [4, 5, np.nan]])[..., None]
    outputs = run(VARLEN, x=x, w=[TAPS], length=np.array([3, 2]))
    np.testing.assert_allclose(outputs["out"][1].ravel(), [1.6, 3.2, 0.0])
    assert outputs["window_out"][1].ravel().tolist() == [0, 0, 4, 5]
