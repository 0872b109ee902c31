"""The schedule key `operands` in chunks: operands of another dtype than that of the inputs."""

from __future__ import annotations

import pytest

import gdsl
from gdsl import api

SMALL = {"B": 1, "Hk": 1, "G": 2, "T": 140, "K": 32, "V": 24}
KERNELS = ("gdn_cte", "kda_cte", "kda_cte_bounded", "gdn_prefill", "kda_prefill_bounded")
REGIMES = ("gaussian", "identical-keys", "strong-then-weak", "head-ratios")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("operands", "inputs"), [("bf16", "fp32"), ("f32", "bf16")])
def test_every_stage_takes_them(kernel: str, operands: str, inputs: str) -> None:
    """bf16 operands of fp32 inputs are judged as bf16."""
    report = api.verify(
        api.load(kernel),
        shape=SMALL,
        targets=["trn2"],
        lnc=[1],
        regimes=REGIMES,
        precisions=[inputs],
        settings={"operands": operands},
    )
    assert report.run
    report.assert_ok()


def test_rows_of_lengths_with_operands_of_four_bytes() -> None:
    report = api.verify(
        api.load("gdn_cte_varlen"),
        shape={**SMALL, "B": 2},
        targets=["trn2"],
        lnc=[2],
        regimes=("padding",),
        precisions=["bf16"],
        settings={"operands": "f32"},
    )
    assert "padding" in report.run
    report.assert_ok()


@pytest.mark.parametrize(("operands", "held"), [("bf16", "nl.bfloat16"), ("f32", "nl.float32")])
def test_the_text_names_the_dtype(operands: str, held: str) -> None:
    text = gdsl.compile(gdsl.load("gdn_cte"), settings={"operands": operands}).text
    assert f"identity = nl.ndarray((CHUNK, CHUNK), dtype={held}" in text
