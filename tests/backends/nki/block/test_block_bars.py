"""Estimated time of the decode block against the limits it was designed for.

trn2, program order, no clock gate, Qwen3-Next's sizes. All figures are estimates of the cost model;
nothing here is measured.
"""

from __future__ import annotations

from functools import cache

import pytest

from examples.bench.block import CASES, KERNEL
from gdsl import api
from gdsl.estimate import estimate
from gdsl.profiler import CostReport


@cache
def report(case: str) -> CostReport:
    return estimate(api.load(KERNEL), CASES[case].sizes, lnc=CASES[case].lnc).report


@pytest.mark.parametrize("case", CASES)
def test_time_is_near_that_of_the_bytes(case: str) -> None:
    found = report(case)
    assert found.estimate.program_order <= CASES[case].factor * CASES[case].base(found)


def test_one_row_takes_few_transfers() -> None:
    assert max(core.dma_count for core in report("b1").cores) <= 150


def test_every_weight_is_read_once() -> None:
    """What moves is the contract's bytes, and hardly more."""
    found = report("b1")
    assert sum(core.dma_bytes for core in found.cores) <= 1.01 * found.contract.hbm_bytes
