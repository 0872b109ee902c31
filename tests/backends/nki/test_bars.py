"""Estimated time of the decode kernels against the limits they were designed for.

trn2, one core, program order, no clock gate, bf16 inputs, fp32 state, K = V = 128. All figures are
estimates of the cost model; nothing here is measured.
"""

from __future__ import annotations

from functools import cache

import pytest

from gdsl import api
from gdsl.estimate import estimate
from gdsl.shapes import resolve_sizes

HEADS = {8: "B=1,Hv=8", 32: "B=1,Hv=32", 128: "B=4,Hv=32"}


@cache
def estimated(kernel: str, heads: int) -> tuple[float, float]:
    """Program order and the HBM roofline, in microseconds."""
    definition = api.load(kernel)
    shape = HEADS[heads].replace("Hv", "H") if kernel.startswith("kda") else HEADS[heads]
    sizes = resolve_sizes(definition.kernel, (), f"{shape},K=128,V=128")
    report = estimate(definition, sizes, target="trn2").report
    return report.estimate.program_order, report.hbm


@pytest.mark.parametrize(("heads", "limit"), [(8, 15.0), (32, 23.0)])
def test_few_heads(heads: int, limit: float) -> None:
    assert estimated("gdn_tkg", heads)[0] <= limit


def test_many_heads_run_at_the_rate_of_hbm() -> None:
    time, roofline = estimated("gdn_tkg", 128)
    assert time <= 1.2 * roofline


@pytest.mark.parametrize("heads", [8, 32, 128])
def test_a_decay_per_channel_costs_little(heads: int) -> None:
    assert estimated("kda_tkg", heads)[0] <= 1.10 * estimated("gdn_tkg", heads)[0]


@pytest.mark.parametrize(
    ("kernel", "shape", "limit"),
    [
        ("gdn_tkg_vk", "B=4,Hv=32", 1.8),
        ("gdn_tkg_pool", "B=4,N=8,Hk=16,G=2", 1.25),
        ("gdn_tkg_tokens", "B=4,T=4,Hk=16,G=2", 1.5),
    ],
)
def test_other_places_of_the_state(kernel: str, shape: str, limit: float) -> None:
    """States [V, K] are turned on TensorE; of four tokens each state leaves with each token."""
    definition = api.load(kernel)
    sizes = resolve_sizes(definition.kernel, (), f"{shape},K=128,V=128")
    report = estimate(definition, sizes, target="trn2").report
    assert report.estimate.program_order <= limit * report.hbm


def test_half_the_state_bytes_take_less_time() -> None:
    assert estimated("gdn_tkg_bf16_state", 128)[0] <= 0.85 * estimated("gdn_tkg", 128)[0]
