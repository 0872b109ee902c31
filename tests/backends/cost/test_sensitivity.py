"""Ranges over the assumed numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.cost.program import prepare
from backends.cost.sensitivity import bounds_over_assumptions, extreme
from backends.cost.timeline import program_order
from backends.isa.machine import MACHINES
from backends.isa.trace import Trace

STEPS = st.lists(st.tuples(*(st.integers(0, 8) for _ in range(5))), min_size=1, max_size=30)
DISCRETE = {
    "dma_rings",
    "dma_software_unnamed",
    "dma_unknown_ordered",
    "excludes_vector_scalar_bank",
}


@settings(deadline=None)
@given(steps=STEPS, where=st.lists(st.floats(0, 1), min_size=60, max_size=60))
def test_the_ends_bound_everything_in_between(
    random_trace: Callable[..., Trace], steps: Any, where: list[float]
) -> None:
    machine = MACHINES["trn3"]
    values = {}
    for key, place in zip(machine.assumed, where, strict=False):
        fact = machine.facts[key]
        assert fact.low is not None
        assert fact.high is not None
        if key not in DISCRETE:
            values[key] = fact.low + place * (fact.high - fact.low)
    programs = [prepare(random_trace(steps, target="trn3"))]
    low, high = bounds_over_assumptions(programs, machine)
    between = program_order(programs, machine.replaced(values)).end
    assert low - 1e-6 <= between <= high + 1e-6


@pytest.mark.parametrize("target", MACHINES)
def test_extremes_stay_in_the_ranges(target: str) -> None:
    machine = MACHINES[target]
    good, bad = (extreme(machine, end) for end in ("favourable", "unfavourable"))
    for key in machine.assumed:
        fact = machine.facts[key]
        assert {good[key], bad[key]} == {fact.low, fact.high}
    assert good["hop"] <= bad["hop"]
    assert good["dma_rings"] > bad["dma_rings"]
