"""A text may give its tensors and axes any name, also those that schedules use for their own."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gdsl
from gdsl.errors import CompileError

CHUNKED = """
use delta_rule
kernel m:
    axes B, H, T, P, K, V
    input q, k: f32[B, H, T, K]
    input v: f32[B, H, T, V]
    input g: f32[B, H, T] in (-inf, 0]
    input beta: f32[B, H, T] in [0, 1]
    assume sum[K](k * k) <= 1.01
    state S: f32[B, H, K, V] = s0 or zeros
    o, S, Ss = scan[T every 16 -> P] gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, H, T, V] = o
    output s1: f32[B, H, K, V] = S
    output ck: f32[B, P, H, K, V] = Ss
"""
DECODE = """
use delta_rule, norms
kernel m:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input g: f32[B, H] in (-inf, 0]
    input beta: f32[B, H] in [0, 1]
    state S: f32[B, H, K, V] = s0 or zeros
    o, S = step gated_delta(l2norm[K](q), l2norm[K](k), v, exp(g), beta, S)
    output out: f32[B, H, V] = rms_norm[V](o)
    output s1: f32[B, H, K, V] = S
"""
SIZES = {"B": 1, "H": 2, "T": 33, "K": 8, "V": 4}


def renamed(text: str, old: str, new: str) -> str:
    return re.sub(rf"\b{old}\b", new, text)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (CHUNKED, "T", "keys"),
        (CHUNKED, "T", "values"),
        (CHUNKED, "T", "CHUNK"),
        (CHUNKED, "T", "lambda"),
        (CHUNKED, "B", "tensors"),
        (DECODE, "B", "ROWS"),
        (CHUNKED, "v", "values"),
        (CHUNKED, "v", "k_sb"),
        (CHUNKED, "g", "gates"),
        (CHUNKED, "s0", "states"),
        (CHUNKED, "out", "total"),
        (CHUNKED, "ck", "states"),
        (DECODE, "H", "rows"),
        (DECODE, "v", "rows"),
        (DECODE, "q", "first"),
        (DECODE, "out", "vectors"),
        (DECODE, "o", "heads"),
    ],
)
def test_a_name_of_the_schedule_is_anyones(text: str, old: str, new: str) -> None:
    definition = gdsl.loads(renamed(text, old, new))
    axes = {axis.name for axis in definition.kernel.axes}
    sizes = {new if axis == old else axis: n for axis, n in SIZES.items()}
    given = gdsl.random_inputs(definition, {a: n for a, n in sizes.items() if a in axes}, seed=1)
    right = gdsl.run(definition, given, precision="float64")
    program = gdsl.compile(definition, settings={"chunk": 16} if text is CHUNKED else None)
    got = program.run(given)
    assert list(got) == list(right)
    for name, array in right.items():
        np.testing.assert_allclose(got[name], array, atol=2e-5)
    if old in ("v", "g", "q", "s0"):
        assert new in program.nki.arguments
        assert f"\n    {new}_given = {new}\n" in program.text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("v", "nl", "`nl` is a name of the emitted text"),
        ("v", "range", "`range` is a name of the emitted text"),
        ("m", "load_states", "`load_states` is a name of the emitted text"),
        ("m", "k_offset", "`k_offset` is a name of the emitted text"),
        ("beta", "lambda", "`lambda` is a word of Python"),
    ],
)
def test_a_call_that_python_cannot_write_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(CompileError, match=said) as caught:
        _ = gdsl.compile(gdsl.loads(renamed(CHUNKED, old, new)), settings={"chunk": 16}).text
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None
    assert new in diagnostic.span.text
