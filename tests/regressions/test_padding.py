"""Padding and empty sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gdsl.errors import RunError

PADDED = """
use delta_rule, gates
kernel padded:
    axes B, T, H, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input a, b: f32[B, T, H]
    input A_log, dt_bias: f32[H]
    input valid_len: i32[B] or T
    state S: f32[B, H, K, V] = s0
    decay = exp(log_decay(a, A_log, dt_bias))
    o, S = scan[T < valid_len] gated_delta(q, k, v, decay, sigmoid(b), S)
    output out: f32[B, T, H, V] = o + 1
    output s1: f32[B, H, K, V] = S
"""


def padded(run: Callable[..., Any], pads: int, fill: float, **more: Any) -> dict[str, Any]:
    rows = np.full((1, pads, 1, 1), fill)
    return run(  # type: ignore[no-any-return]
        PADDED,
        q=rows, k=rows, v=rows, a=rows[..., 0], b=rows[..., 0],
        A_log=[0.0], dt_bias=[1.0], s0=np.ones((1, 1, 1, 1)), **more,
    )  # fmt: skip


@pytest.mark.parametrize("pads", [0, 1, 63, 64])
def test_b39_padding_changes_nothing_and_may_hold_nan(run: Callable[..., Any], pads: int) -> None:
    outputs = padded(run, pads, np.nan, valid_len=np.zeros(1, np.int32))
    assert outputs["s1"].item() == 1.0
    assert (outputs["out"] == 0).all()


@pytest.mark.parametrize(("pads", "right"), [(1, 0.2689414), (63, 1.2e-36)])
def test_b39_zeroed_hidden_states_alone_are_not_neutral(
    run: Callable[..., Any], pads: int, right: float
) -> None:
    """Why the mask is in the language: the gate of a zero row still decays."""
    assert padded(run, pads, 0.0)["s1"].item() == pytest.approx(right, rel=0.05)


def test_b40_empty_rows_and_empty_calls(run: Callable[..., Any]) -> None:
    """Lengths 0, 3, 0: an empty row returns its initial state; no tokens, no rows likewise."""
    rng = np.random.default_rng(40)

    def call(B: int, T: int, lengths: list[int]) -> dict[str, Any]:
        rows = rng.standard_normal((B, T, 1, 1))
        s0 = np.arange(1.0, B + 1).reshape(B, 1, 1, 1)
        return run(  # type: ignore[no-any-return]
            PADDED, q=rows, k=rows, v=rows, a=rows[..., 0], b=rows[..., 0],
            A_log=[0.0], dt_bias=[1.0], s0=s0, valid_len=np.array(lengths, np.int32),
        )  # fmt: skip

    mixed = call(3, 3, [0, 3, 0])
    assert mixed["s1"].ravel()[[0, 2]].tolist() == [1.0, 3.0]
    assert (mixed["out"][[0, 2]] == 0).all()
    assert mixed["s1"].ravel()[1] != 2.0
    no_tokens = call(2, 0, [0, 0])
    assert no_tokens["out"].shape == (2, 0, 1, 1)
    assert no_tokens["s1"].ravel().tolist() == [1.0, 2.0]
    assert call(0, 4, [])["s1"].shape == (0, 1, 1, 1)


@pytest.mark.parametrize("length", [-1, 4])
def test_lengths_out_of_bounds_are_refused(run: Callable[..., Any], length: int) -> None:
    with pytest.raises(RunError) as error:
        padded(run, 3, 0.0, valid_len=np.array([length], np.int32))
    assert error.value.diagnostics[0].code == "E0708"
