"""A gate in the wrong space is said, where ranges show it (case B42)."""

from __future__ import annotations

import pytest

import gdsl

TEXT = """
use delta_rule, norms
kernel k:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input g: f32[B, H]{range}
    input beta: f32[B, H] in [0, 1]
    state S: f32[B, H, K, V] = s0
    o, S = step gated_delta(l2norm[K](q), l2norm[K](k), v, {decay}, beta, S)
    output out: f32[B, H, V] = o
    output s1: f32[B, H, K, V] = S
"""


@pytest.mark.parametrize(
    ("range", "decay", "said"),
    [
        (" in (-inf, 0]", "g", "never positive"),
        (" in [-5, 0]", "g", "never positive"),
        (" in (-inf, 0]", "exp(-g)", "never below 1, since its logarithm"),
        (" in [0, inf)", "exp(g)", "never below 1, since its logarithm"),
        (" in [1, 2]", "g", "lies in [1, 2]"),
    ],
)
def test_said(range: str, decay: str, said: str) -> None:
    (found,) = gdsl.check(TEXT.format(range=range, decay=decay))
    assert found.code == "W0502"
    assert found.severity.value == "warning"
    assert said in found.message
    assert found.help


@pytest.mark.parametrize(
    ("range", "decay"),
    [
        ("", "g"),
        ("", "exp(g)"),
        (" in (-inf, 0]", "exp(g)"),
        (" in [0, 1]", "g"),
        (" in [-1, 1]", "g"),
        ("", "sigmoid(g)"),
        ("", "exp(0 * g)"),
    ],
)
def test_not_said(range: str, decay: str) -> None:
    assert gdsl.check(TEXT.format(range=range, decay=decay)) == ()
