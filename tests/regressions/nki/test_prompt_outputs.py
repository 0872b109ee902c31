"""What prompt kernels return: outputs beside the rule, selections by what is known before it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


@pytest.mark.parametrize("output", ["log(abs(v) + 0.2)", "silu(v) * v"])
def test_an_output_that_the_rule_is_not_in(both: Callable[..., Any], output: str) -> None:
    """It is made with what stands before the rule and leaves with what stands behind it."""
    text = f"""
use delta_rule, gates, norms
kernel beside:
    axes B, T, H, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input g: f32[B, T, H] in (-inf, 0]
    state S: f32[B, H, K, V] = s0
    o, S = scan[T] gated_delta(q, l2norm[K](k), v, exp(g), 1, S)
    output out: f32[B, T, H, V] = {output}
    output s1: f32[B, H, K, V] = S
"""
    got, right = both(text, {"B": 1, "T": 37, "H": 5, "K": 8, "V": 12}, {"chunk": 16})
    np.testing.assert_allclose(got["out"], right["out"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got["s1"], right["s1"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("condition", ["nw >= a", "a >= 0", "v >= 0", "o >= 0"])
def test_a_condition_that_is_known_before_what_it_selects(
    both: Callable[..., Any], condition: str
) -> None:
    """It is made with the tokens of a group, or for all of them, and seen chunk by chunk."""
    text = f"""
use delta_rule, norms
kernel chosen:
    axes B, T, H, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input a: f32[B, T, H]
    input nw: f32[V]
    state S: f32[B, H, K, V] = s0
    o, S = scan[T] delta(q, l2norm[K](k), v, 1, S)
    output out: f32[B, T, H, V] = where({condition}, 2 * o, v + a) * nw
    output s1: f32[B, H, K, V] = S
"""
    got, right = both(text, {"B": 3, "T": 37, "H": 4, "K": 8, "V": 12}, {"chunk": 16})
    np.testing.assert_allclose(got["out"], right["out"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", [{"chunk": 16}, {"form": "recurrent"}])
@pytest.mark.parametrize("chosen", ["nw", "D", "v"])
def test_a_16_bit_value_that_is_chosen_for_some_tokens(
    both: Callable[..., Any], chosen: str, settings: dict[str, Any]
) -> None:
    """It is converted beside the tile it goes to, not at the stage it comes from."""
    text = f"""
use delta_rule, norms
kernel chosen:
    axes B, T, H, K, V
    input q, k: f32[B, T, H, K]
    input v: bf16[B, T, H, V]
    input D: bf16[H]
    input nw: bf16[V]
    state S: f32[B, H, K, V] = s0
    o, S = scan[T] delta(q, l2norm[K](k), v, 1, S)
    output out: f32[B, T, H, V] = where(v >= 0, {chosen}, o) * nw + D
    output s1: f32[B, H, K, V] = S
"""
    got, right = both(text, {"B": 3, "T": 37, "H": 4, "K": 8, "V": 12}, settings)
    np.testing.assert_allclose(got["out"], right["out"], rtol=2e-4, atol=1e-4)
