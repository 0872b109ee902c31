"""Estimated time of the decode block against the limits it was designed for.

trn2, program order, no clock gate, Qwen3-Next's sizes. All figures are estimates of the cost model;
nothing here is measured.
"""

from __future__ import annotations

from functools import cache

import pytest

from examples.bench.block import CASES, KERNEL
from gdsl import api
from gdsl.estimate import estimate, shapes_only
from gdsl.launch import trace
from gdsl.profiler import CostReport


@cache
def report(case: str) -> CostReport:
    return estimate(api.load(KERNEL), CASES[case].sizes, lnc=CASES[case].lnc).report


@pytest.mark.parametrize("case", CASES)
def test_time_is_near_that_of_the_bytes(case: str) -> None:
    found = report(case)
    assert found.estimate.program_order <= CASES[case].factor * CASES[case].base(found)


def test_eight_bits_take_little_more_than_half_the_time() -> None:
    """The states and the small weights keep their bytes."""
    sizes = CASES["b1"].sizes
    narrow = estimate(api.load("gdn_block_tkg_fp8"), sizes, lnc=1).report
    assert narrow.estimate.program_order <= 0.6 * report("b1").estimate.program_order
    assert narrow.estimate.program_order <= 1.1 * narrow.hbm
    assert sum(core.dma_bytes for core in narrow.cores) <= 1.01 * narrow.contract.hbm_bytes


def test_one_row_takes_few_transfers() -> None:
    assert max(core.dma_count for core in report("b1").cores) <= 150


def test_every_weight_is_read_once() -> None:
    """What moves is the contract's bytes, and hardly more."""
    found = report("b1")
    assert sum(core.dma_bytes for core in found.cores) <= 1.01 * found.contract.hbm_bytes


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        (1, ["W_in_qkv", "W_in_a", "W_in_b", "recurrent_state", "W_in_z"]),
        (16, ["W_in_qkv", "W_in_a", "W_in_b", "W_in_z", "recurrent_state"]),
    ],
)
def test_what_is_large_shares_a_ring_in_the_order_it_is_needed(rows: int, order: list[str]) -> None:
    """The weights that only outputs need come behind the states where all rows share a tile."""
    definition = api.load(KERNEL)
    sizes = {"B": rows, "Hid": 1024, "Hk": 8, "G": 2, "K": 128, "V": 128, "W": 4}
    arguments = shapes_only(definition.kernel, sizes, {})
    program = api.compile(definition, target="trn2").nki
    found = trace(program, definition.kernel, arguments).traces[0]
    names = {buffer.id: buffer.name for buffer in found.buffers}
    ring = [
        names[access.buffer]
        for record in found.records
        if record.opcode == "dma_copy" and record.attributes.get("queue") == "sync"
        for access in (*record.reads, *record.writes)
        if names[access.buffer] in order
    ]
    assert list(dict.fromkeys(ring)) == order
