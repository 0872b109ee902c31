"""The emitted short convolution against the interpreter: lengths, widths, layouts, cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gdsl

Both = Callable[..., Any]
STEPS = {"gdn_conv1d_decode": 0, "gdn_conv1d_decode_w1": 1}
SCANS = {"gdn_conv1d_prefill": 0, "causal_conv1d_prefill": 0, "gdn_conv1d_prefill_w1": 1}
CASES = [(taps, tokens) for taps in (2, 3, 4) for tokens in range(1, taps + 2)]


def agree(outputs: tuple[dict[str, Any], dict[str, Any]], tolerance: float = 3e-5) -> None:
    """Sums within `tolerance` of their rms, and an ulp if stored in bf16; windows bit for bit."""
    wanted, found = outputs
    assert wanted.keys() == found.keys()
    for name, right in wanted.items():
        if name == "out":
            exact = right.astype(np.float64)
            ulp = 2.0**-7 if right.dtype == ml_dtypes.bfloat16 else 0.0
            most = tolerance * np.sqrt(np.mean(np.square(exact))) + ulp * np.abs(exact)
            assert (np.abs(found[name].astype(np.float64) - exact) <= most).all()
        else:
            np.testing.assert_array_equal(found[name], right)


@pytest.mark.parametrize("kernel", STEPS)
@pytest.mark.parametrize("taps", [2, 3, 4])
@pytest.mark.parametrize(("channels", "lnc"), [(5, 1), (131, 2), (259, 1)])
def test_step(both: Both, arrays_of: Both, kernel: str, taps: int, channels: int, lnc: int) -> None:
    arrays = arrays_of(3, channels, 1, taps, columns=taps - STEPS[kernel])
    agree(both(kernel, arrays, lnc=lnc))


@pytest.mark.parametrize("kernel", SCANS)
@pytest.mark.parametrize(("taps", "tokens"), CASES)
def test_scan_of_few_tokens(
    both: Both, arrays_of: Both, kernel: str, taps: int, tokens: int
) -> None:
    """Every length up to W + 1: without a window, with one, with bias, with lengths."""
    columns = taps - SCANS[kernel]
    agree(both(kernel, arrays_of(2, 5, tokens, taps)))
    agree(both(kernel, arrays_of(2, 5, tokens, taps, columns=columns, bias=True), lnc=2))
    every = tuple(range(tokens + 1))
    arrays = arrays_of(len(every), 5, tokens, taps, columns=columns, lengths=every)
    for row, length in enumerate(every):
        arrays["x"][row, :, length:] = np.nan
    agree(both(kernel, arrays))


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_scan_in_tiles(both: Both, arrays_of: Both, target: str) -> None:
    """Two tiles of tokens, channels that leave a rest, lengths around the tile's end."""
    lengths = (2047, 2048, 2051)
    arrays = arrays_of(3, 130, 2051, 4, columns=4, bias=True, lengths=lengths)
    agree(both("gdn_conv1d_prefill", arrays, target=target))
    del arrays["valid_len"]
    agree(both("gdn_conv1d_prefill", arrays, target=target, lnc=2))


def test_scan_with_several_groups_of_channels(both: Both, arrays_of: Both) -> None:
    """Five channels of each partition, two a transfer; a rest of one channel."""
    lengths = (0, 3, 7)
    agree(both("gdn_conv1d_prefill", arrays_of(3, 641, 7, 4, columns=4, lengths=lengths)))
    agree(both("gdn_conv1d_prefill_w1", arrays_of(3, 641, 7, 3)))


def test_many_rows_and_wide_windows(both: Both, arrays_of: Both) -> None:
    """More rows than fit one block of a step; a window of which a block holds few channels."""
    agree(both("gdn_conv1d_decode", arrays_of(700, 128, 1, 4, columns=4)))
    agree(both("gdn_conv1d_decode", arrays_of(2, 384, 1, 1500, columns=1500)))
    agree(both("gdn_conv1d_prefill", arrays_of(150, 3, 5, 4, columns=4)))


@pytest.mark.parametrize("kernel", ["gdn_conv1d_decode", "gdn_conv1d_prefill"])
def test_bf16(both: Both, arrays_of: Both, kernel: str) -> None:
    tokens = 1 if kernel == "gdn_conv1d_decode" else 9
    arrays = arrays_of(2, 130, tokens, 4, columns=4, dtype=ml_dtypes.bfloat16)
    agree(both(kernel, arrays), tolerance=2e-3)


@pytest.mark.parametrize("kernel", [*STEPS, *SCANS])
def test_equal_bits_on_one_core_and_two(arrays_of: Both, kernel: str) -> None:
    tokens = 1 if kernel in STEPS else 6
    columns = 4 - {**STEPS, **SCANS}[kernel]
    arrays = arrays_of(2, 261, tokens, 4, columns=columns)
    program = gdsl.compile(gdsl.load(kernel), target="trn2")
    one, two = (dict(program.run(arrays, lnc=lnc)) for lnc in (1, 2))
    for name, array in one.items():
        np.testing.assert_array_equal(two[name], array)


OTHER = """
use conv, gates
kernel other:
    axes B, T, C, W
    input x: bf16[B, T, C]
    input w: f32[C, W]
    input fresh: bool[B]
    state win: f32[B, W, C] = window inplace unless fresh
    y, win = scan[T] causal_conv(x, w, win)
    output out: f32[B, T, C] = silu(y)
    output window = win
"""


def test_layout_and_dtypes_come_from_the_text(both: Both) -> None:
    """Channels fastest, an fp32 window of bf16 tokens, in place; nothing rounds but the text."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 6, 5)).astype(ml_dtypes.bfloat16)
    window = rng.normal(size=(2, 4, 5)).astype(np.float32)
    window[1] = np.nan
    arrays = {
        "x": x,
        "w": rng.normal(size=(5, 4)).astype(np.float32),
        "fresh": np.array([True, False]),
        "window": window,
    }
    agree(both(OTHER, arrays))
