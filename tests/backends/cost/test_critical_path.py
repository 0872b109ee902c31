"""The chain that sets the end."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.cost.critical_path import critical_path
from backends.cost.program import prepare
from backends.cost.timeline import program_order
from backends.isa.machine import MACHINES
from backends.isa.trace import Trace

STEPS = st.lists(st.tuples(*(st.integers(0, 8) for _ in range(5))), min_size=1, max_size=40)


@settings(deadline=None)
@given(steps=STEPS)
def test_the_links_add_up_to_the_end(random_trace: Callable[..., Trace], steps: Any) -> None:
    timeline = program_order([prepare(random_trace(steps))], MACHINES["trn2"])
    links = critical_path(timeline.cores[0])
    assert sum(link.nanoseconds for link in links) == pytest.approx(timeline.end)
    assert [link.at for link in links] == sorted({link.at for link in links})
    assert all(link.nanoseconds >= -1e-6 for link in links)


def test_a_chain_is_its_own_critical_path(builder: Callable[..., Any]) -> None:
    trace = builder()
    tiles = [trace.tile("sbuf", (128, 512)) for _ in range(6)]
    for before, after in pairwise(tiles):
        trace.vector("tensor_copy", after, {"src": before})
    timeline = program_order([prepare(trace.build())], MACHINES["trn2"])
    links = critical_path(timeline.cores[0])
    assert [link.at for link in links] == [0, 1, 2, 3, 4]
    assert [link.reason for link in links] == ["", "data", "data", "data", "data"]


def test_nothing_has_no_path() -> None:
    assert critical_path(()) == ()
