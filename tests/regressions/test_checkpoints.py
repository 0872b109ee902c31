"""States on the way, and states of shards."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

CHECKPOINTS = """
use delta_rule
kernel checkpoints:
    axes B, T, P, H, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input g: f32[B, T, H]
    input valid_len: i32[B] or T
    param block: int = 0
    state S: f32[B, H, K, V] = s0 or zeros
    o, S, kept = scan[T < valid_len every block -> P] gated_delta(q, k, v, exp(g), 0.5, S)
    output s1: f32[B, H, K, V] = S
    output checkpoints: f32[B, P, H, K, V] = kept
"""


def checkpoints(run: Callable[..., Any], T: int, block: int, **more: Any) -> dict[str, Any]:
    one = np.ones((1, T, 1, 1))
    v = np.arange(1.0, T + 1).reshape(1, T, 1, 1)
    return run(  # type: ignore[no-any-return]
        CHECKPOINTS, q=one, k=one, v=v, g=np.full((1, T, 1), -0.1), block=block, **more
    )


def test_b72_checkpoints_are_the_states_after_n_tokens(run: Callable[..., Any]) -> None:
    kept = checkpoints(run, 130, 64)["checkpoints"].ravel()
    assert len(kept) == 2
    assert kept[0] == checkpoints(run, 64, 0)["s1"].item()
    assert kept[1] == checkpoints(run, 128, 0)["s1"].item()
    assert checkpoints(run, 130, 0)["checkpoints"].size == 0


def test_b65_no_checkpoint_before_its_block_is_complete(run: Callable[..., Any]) -> None:
    """Block 8 with 6 + 5 tokens: none after the first 6; a padded row's entry is exactly 0."""
    first = checkpoints(run, 6, 8)
    assert first["checkpoints"].size == 0
    padded_row = checkpoints(run, 11, 8, valid_len=np.array([6], np.int32))
    assert padded_row["checkpoints"].ravel().tolist() == [0.0]
    assert padded_row["s1"].item() == first["s1"].item()
    whole = checkpoints(run, 11, 8)["checkpoints"].ravel()
    assert whole.tolist() == [checkpoints(run, 8, 0)["s1"].item()]


def test_b63_merging_two_shards(scalar: Callable[..., Any]) -> None:
    """The right shard's transition is what its tokens do to a state when they write nothing."""
    g = math.log(0.9)
    left = scalar([1.0, 2.0], g, 0.5)["s1"].item()
    local = scalar([3.0, 4.0], g, 0.5)["s1"].item()
    transition = scalar([0.0, 0.0], g, 0.5, s0=1.0)["s1"].item()
    assert left == pytest.approx(1.225, abs=1e-12)
    assert local == pytest.approx(2.675, abs=1e-12)
    assert transition == pytest.approx(0.2025, abs=1e-12)
    whole = scalar([1.0, 2.0, 3.0, 4.0], g, 0.5)["s1"].item()
    assert local + transition * left == pytest.approx(2.9230625, abs=1e-12)
    assert whole == pytest.approx(2.9230625, abs=1e-12)


def test_b63_every_head_has_its_own_gate(run: Callable[..., Any], scan_text: str) -> None:
    ones = np.ones((1, 2, 2, 1))
    g = np.broadcast_to(np.array([0.0, -10.0]), (1, 2, 2))
    outputs = run(scan_text, q=ones, k=ones, v=ones, g=g, beta=np.full((1, 2, 2), 0.5))
    states = outputs["s1"].ravel()
    assert states[0] == 0.75
    assert states[1] == pytest.approx(0.5 + 0.25 * math.exp(-10), rel=1e-12)
