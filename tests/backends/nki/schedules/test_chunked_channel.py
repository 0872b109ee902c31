"""Decays per channel in the chunked schedule: every chunk, sub-block and regime, and the estimates.

The definition is run by `verify`, which judges f32 at the fp32 bounds and bf16 operands within 1.5
times of the plan evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gdsl import api
from gdsl.emitter import EmitOptions
from gdsl.estimate import estimate
from gdsl.pipeline import Compilation
from gdsl.shapes import resolve_sizes

SMALL = "B=1,Hk=1,G=2,T=150,K=32,V=48"
HARD = (
    "gaussian",
    "identical-keys",
    "decay-1",
    "strongest-decay",
    "strong-then-weak",
    "one-reset",
    "strong-channel",
    "half-decay-1",
)


def verified(kernel: str, regimes: tuple[str, ...], **settings: int) -> None:
    report = api.verify(
        api.load(kernel),
        shape=SMALL,
        targets=["trn2"],
        lnc=[1],
        regimes=regimes,
        precisions=["fp32", "bf16"],
        settings=settings,
    )
    report.assert_ok()
    assert "strong-channel" in report.run or "strong-channel" not in regimes


@pytest.mark.parametrize("kernel", ["kda_cte", "kda_cte_bounded"])
@pytest.mark.parametrize("chunk", [64, 128])
def test_hard_regimes(kernel: str, chunk: int) -> None:
    verified(kernel, HARD, chunk=chunk)


@pytest.mark.parametrize(
    ("chunk", "subblock"), [(16, 16), (32, 8), (64, 2), (128, 1), (128, 4), (128, 8)]
)
def test_every_subblock_the_gate_allows(chunk: int, subblock: int) -> None:
    verified("kda_cte_bounded", ("gaussian", "strong-channel"), chunk=chunk, subblock=subblock)


def test_the_plan_decides_what_is_emitted() -> None:
    """The same text with another bound on the gate gets other references."""
    text = Compilation(api.load("kda_cte_bounded"), EmitOptions()).program.text
    assert "SUBBLOCK = 16 " in text
    assert "MASKED_LEVELS" not in text
    text = Compilation(api.load("kda_cte"), EmitOptions()).program.text
    assert "SUBBLOCK" not in text
    assert "MASKED_LEVELS = (1, 2, 4, 8) " in text
    shorter = api.load("kda_cte_bounded").file.source.text.replace("[-5, 0]", "[-9, 0]")
    text = Compilation(api.loads(shorter, kernel="kda_cte_bounded"), EmitOptions()).program.text
    assert "SUBBLOCK = 8 " in text


BARS: Mapping[str, float] = {"kda_cte_bounded": 4.0, "kda_cte": 8.0}
"""Microseconds per chunk of 128 tokens and head."""


@pytest.mark.parametrize("kernel", BARS)
def test_the_estimated_time_per_chunk_and_head(kernel: str) -> None:
    definition = api.load(kernel)
    sizes = resolve_sizes(definition.kernel, (), "B=1,Hk=8,G=1,T=2048,K=128,V=128")
    report = estimate(definition, sizes, target="trn2").report
    assert report.estimate.program_order / (8 * 16) <= BARS[kernel]
