"""`gdsl verify` of every convolution kernel of the library, on both targets and core counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gdsl import api

SHAPES = {
    "gdn_conv1d_decode": {"B": 3, "C": 131, "W": 4},
    "gdn_conv1d_decode_w1": {"B": 3, "C": 131, "M": 3},
    "gdn_conv1d_prefill": {"B": 2, "C": 130, "T": 5, "W": 4},
    "causal_conv1d_prefill": {"B": 2, "C": 130, "T": 5, "W": 4},
    "gdn_conv1d_prefill_w1": {"B": 2, "C": 130, "T": 5, "M": 3},
}


@pytest.mark.parametrize("kernel", SHAPES)
def test_agrees_with_the_interpreter(kernel: str) -> None:
    report = api.verify(api.load(kernel), shape=SHAPES[kernel], lnc=(1, 2))
    assert report.run
    report.assert_ok()


def test_a_long_prompt_in_bf16(agrees: Callable[..., None]) -> None:
    """Longer than a bank: the weights of a scan have 11 bits."""
    agrees(api.load("gdn_conv1d_prefill"), {"B": 1, "C": 130, "T": 600, "W": 4})
