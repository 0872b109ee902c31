"""What the window schedule does not emit is refused with E0521 and its place in the text."""

from __future__ import annotations

import pytest

import gdsl
from gdsl.errors import CompileError

HEAD = """
use conv, gates
kernel refused:
    axes B, T, C, W, N
    input x: f32[B, T, C]
    input w: f32[C, W]
"""
TEXTS = {
    "windows after every few tokens": HEAD.replace(", N", ", P")
    + """    state win: f32[B, C, W] = window
    y, win, wins = scan[T every 2 -> P] causal_conv(x, w, win)
    output out: f32[B, T, C] = y
    output last = win
    output all: f32[B, P, C, W] = wins
""",
    "the sum over the window": HEAD.replace(", N", "")
    + """    state win: f32[B, C, W] = window
    y, win = scan[T] causal_conv(x, w, win)
    output out: f32[B, T, C] = exp(y)
    output last = win
""",
    "the new column as an input": HEAD.replace(", N", "")
    + """    state win: f32[B, C, W] = window
    y, win = scan[T] causal_conv(2 * x, w, win)
    output out: f32[B, T, C] = y
    output last = win
""",
}


@pytest.mark.parametrize("what", TEXTS)
def test_refused(what: str) -> None:
    definition = gdsl.loads(TEXTS[what])
    with pytest.raises(CompileError) as caught:
        _ = gdsl.compile(definition, target="trn2").text
    (found,) = caught.value.diagnostics
    assert found.code == "E0521"
    assert what in found.message
    assert found.span is not None
