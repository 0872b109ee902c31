"""Decays per channel in the chunked schedule: every chunk, sub-block and regime, and the estimates.

The definition is run by `verify`, which judges f32 at the fp32 bounds and bf16 operands within 1.5
times of the plan evaluator.
"""

from __future__ import annotations

import pytest

from gdsl import api, registry
from gdsl.emitter import EmitOptions
from gdsl.estimate import shapes_only
from gdsl.ir.dtypes import Dtype
from gdsl.launch import trace
from gdsl.pipeline import Compilation
from gdsl.profiler import CostOptions
from gdsl.regimes.typed import bind_dtypes
from gdsl.shapes import resolve_sizes

SMALL = "B=1,Hk=1,G=1,T=140,K=32,V=24"
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
def test_hard_regimes(kernel: str) -> None:
    verified(kernel, HARD)


@pytest.mark.parametrize(
    ("kernel", "settings"),
    [
        ("kda_cte", {"chunk": 64}),
        ("kda_cte_bounded", {"chunk": 64}),
        ("kda_cte_bounded", {"chunk": 32, "subblock": 8}),
        ("kda_cte_bounded", {"subblock": 1}),
        ("kda_cte_bounded", {"subblock": 4}),
    ],
)
def test_every_chunk_and_subblock(kernel: str, settings: dict[str, int]) -> None:
    verified(kernel, ("strong-channel",), **settings)


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


@pytest.mark.parametrize(("lengths", "bar"), [(False, 3.7), (True, 4.0)])
def test_the_estimated_time_per_chunk_and_head_with_a_bounded_gate(
    lengths: bool, bar: float
) -> None:
    """At most 3.7 us where every row has all tokens, 4.0 us where rows have lengths."""
    definition = api.load("kda_cte_bounded")
    sizes = resolve_sizes(definition.kernel, (), "B=1,Hk=8,G=1,T=2048,K=128,V=128")
    given = shapes_only(definition.kernel, sizes, bind_dtypes(definition.kernel, Dtype.BF16))
    if not lengths:
        del given["valid_len"]
    program = api.compile(definition, target="trn2").compilation.program
    traces = trace(program, definition.kernel, given, lnc=1).traces
    report = registry.profiler().profile(traces, "trn2", None, CostOptions())
    assert report.estimate.program_order / (8 * 16) <= bar
