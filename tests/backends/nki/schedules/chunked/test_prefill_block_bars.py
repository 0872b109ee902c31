"""Estimated time of whole layers over a prompt against the engine that has most to do.

trn2, one core, program order, no clock gate, 512 tokens; a shard of Qwen3-Next for two cores, of
Kimi-Linear for four. Projections, taps and the rule keep TensorE busy one after the other. All
figures are estimates of the cost model.
"""

from __future__ import annotations

from functools import cache

import pytest

from gdsl import api
from gdsl.estimate import estimate
from gdsl.profiler import CostReport
from gdsl.shapes import resolve_sizes

SHARD = "Hid=2048,Hk=8,G=2"


@cache
def estimated(kernel: str, sizes: str) -> CostReport:
    definition = api.load(kernel)
    shape = resolve_sizes(definition.kernel, (), f"B=1,T=512,K=128,V=128,W=4,{sizes}")
    return estimate(definition, shape, target="trn2").report


@pytest.mark.parametrize(
    ("kernel", "sizes", "factor"),
    [
        ("gdn_block_prefill", SHARD, 1.55),
        ("gdn_mixer_prefill", "Hk=8,G=2", 1.57),
        ("qwen3next_block_prefill", SHARD, 1.55),
        ("kda_block_prefill", "Hid=2304,H=8,R=128", 1.75),
    ],
)
def test_whole_layers_are_near_the_time_of_their_busiest_engine(
    kernel: str, sizes: str, factor: float
) -> None:
    report = estimated(kernel, sizes)
    busiest = max(engine.busy for engine in report.cores[0].engines.values())
    assert report.estimate.program_order <= factor * max(busiest, report.hbm)


def test_packed_weights_cost_no_more_than_sorted_ones() -> None:
    """The same bytes, no column multiplied twice, and hardly more time."""
    found = [estimated(name, SHARD) for name in ("gdn_block_prefill", "qwen3next_block_prefill")]
    alone, packed = found
    assert packed.hbm == pytest.approx(alone.hbm, rel=1e-3)
    busy = [report.cores[0].engines["tensor"].busy for report in found]
    assert busy[1] <= 1.01 * busy[0]
    assert packed.estimate.program_order <= 1.02 * alone.estimate.program_order
