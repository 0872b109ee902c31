"""Windows in a pool, after kept tokens, and after each token: as the contract says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

HEAD = """
use conv, gates
kernel windows:
    axes B, {token}C, W{places}
    input x: {dtype}[B, {token}C]
    input w: f32[C, W]
"""
POOL = """    input read, write: i32[B]
    input has: bool[B]
    state win: {dtype}[N, C, W] = pool[N at read -> write] inplace or zeros unless has
"""
KEPT = """    input accepted, n: i32[B]
    state win: {dtype}[B, P, C, W] = states[P at accepted]
"""
STEP = """    y, win = step causal_conv(x, w, win)
    output out: {dtype}[B, C] = silu(y)
    output pool = win
"""
SCAN = """    input n: i32[B]
    y, win = scan[T < n] causal_conv(x, w, win)
    output out: {dtype}[B, T, C] = silu(y)
    output pool = win
"""
EACH = """    y, win, wins = scan[T < n every 1] causal_conv(x, w, win)
    output out: {dtype}[B, T, C] = y
    output wins: {dtype}[B, T, C, W] = wins
"""
EACH_AND_LAST = """    state win: {dtype}[B, C, W] = window
    y, win, wins = scan[T every 1] causal_conv(x, w, win)
    output out: {dtype}[B, T, C] = y
    output last: {dtype}[B, C, W] = win
    output wins: {dtype}[B, T, C, W] = wins
"""
TEXTS = {
    "a step in a pool": (HEAD + POOL + STEP, "", ", N"),
    "a scan in a pool": (HEAD + POOL + SCAN, "T, ", ", N"),
    "after kept tokens": (HEAD + KEPT + EACH, "T, ", ", P"),
    "after each token": (HEAD + EACH_AND_LAST, "T, ", ""),
}
BATCH, TAPS = 5, 4
SLOTS, NOWHERE = 7, 99
RTOL = {"f32": 2e-6, "bf16": 8e-3}


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(("channels", "tokens", "lnc"), [(5, 2, 1), (300, 6, 2)])
@pytest.mark.parametrize("form", TEXTS)
def test_as_the_interpreter(
    form: str, channels: int, tokens: int, lnc: int, dtype: str, both: Callable[..., Any]
) -> None:
    text, token, places = TEXTS[form]
    arrays = _arrays(form, channels, tokens, dtype)
    text = text.format(token=token, places=places, dtype=dtype)
    wanted, found = both(text, arrays, lnc=lnc)
    assert wanted.keys() == found.keys()
    for name, expected in wanted.items():
        if name in ("pool", "wins", "last"):
            np.testing.assert_array_equal(found[name], expected, err_msg=name)
        else:
            got = found[name].astype(np.float32)
            np.testing.assert_allclose(got, expected.astype(np.float32), RTOL[dtype], 1e-5)


def test_reset_row_ignores_what_its_slot_holds(both: Callable[..., Any]) -> None:
    """A row that starts anew reads zeros, though its slot holds NaN; the slot is overwritten."""
    text, token, places = TEXTS["a step in a pool"]
    arrays = _arrays("a step in a pool", 5, 1, "f32")
    arrays["has"] = np.zeros(BATCH, np.bool_)
    arrays["pool"][arrays["read"][0]] = np.nan
    _, found = both(text.format(token=token, places=places, dtype="f32"), arrays)
    assert np.isfinite(found["out"]).all()
    written = found["pool"][arrays["write"][0]]
    np.testing.assert_array_equal(written[:, :-1], 0.0)
    np.testing.assert_array_equal(written[:, -1], arrays["x"][0])


def test_row_without_a_slot_gives_zeros_and_writes_nothing(both: Callable[..., Any]) -> None:
    text, token, places = TEXTS["a step in a pool"]
    arrays = _arrays("a step in a pool", 5, 1, "f32")
    arrays["read"][:], arrays["write"][:] = -1, NOWHERE
    arrays["x"][:] = np.nan
    before = arrays["pool"].copy()
    _, found = both(text.format(token=token, places=places, dtype="f32"), arrays)
    np.testing.assert_array_equal(found["out"], 0.0)
    np.testing.assert_array_equal(found["pool"], before)


def _arrays(form: str, channels: int, tokens: int, dtype: str) -> dict[str, Any]:
    rng = np.random.default_rng([channels, tokens])
    stored = np.float32 if dtype == "f32" else ml_dtypes.bfloat16

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape).astype(stored)

    arrays: dict[str, Any] = {"w": rng.normal(size=(channels, TAPS)).astype(np.float32)}
    line = () if "step" in form else (tokens,)
    arrays["x"] = normal(BATCH, *line, channels)
    lengths = np.array([0, tokens, 1, 2, tokens], np.int32)
    if "pool" in form:
        arrays["pool"] = normal(SLOTS, channels, TAPS)
        arrays["read"] = np.array([3, -1, 2, -1, 6], np.int32)
        arrays["write"] = np.array([5, 1, NOWHERE, NOWHERE, 6], np.int32)
        arrays["has"] = np.array([True, True, True, True, False])
        arrays["x"][3] = np.nan
        if line:
            arrays["n"] = lengths
    elif "kept" in form:
        arrays["states"] = normal(BATCH, tokens + 1, channels, TAPS)
        arrays["accepted"] = np.array([0, tokens, 1, 2, 0], np.int32)
        arrays["n"] = lengths
    else:
        arrays["window"] = normal(BATCH, channels, TAPS)
    return arrays
