"""The model's code holds no number of a machine: they are facts in `backends/isa/machine*.py`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import backends.cost
from backends.cost.program import prepare
from backends.cost.timeline import program_order
from backends.isa.evidence import Fact
from backends.isa.machine import MACHINES, Machine

MODULES = ("bounds", "core", "dma", "durations", "hazards", "list_schedule", "placement", "rings",
           "roofline", "timeline", "widths", "workload")  # fmt: skip
COUNTING = {-1, 0, 1, 2}
UNITS = {1000}
"""Nanoseconds in a microsecond, GFLOPS in a TFLOPS."""


@pytest.mark.parametrize("module", MODULES)
def test_a_module_counts_but_does_not_know_numbers(module: str) -> None:
    path = Path(backends.cost.__file__).with_name(f"{module}.py")
    found = {
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float)
    }
    # Bytes of an fp32 element tell it from narrower ones.
    allowed = COUNTING | UNITS | ({4} if module == "workload" else set())
    assert found <= allowed | {float("inf")}


class _Asked(dict[str, Fact]):
    """Facts that remember who was asked for."""

    def __init__(self, facts: dict[str, Fact]) -> None:
        super().__init__(facts)
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> Fact:
        self.asked.add(key)
        return super().__getitem__(key)


def test_every_fact_of_the_timeline_is_used_somewhere() -> None:
    """A fact that no module names is a fact that is not modelled."""
    folder = Path(backends.cost.__file__).parent
    text = "\n".join(path.read_text() for path in folder.glob("*.py"))
    built = {f"dma_{kind}" for kind in ("transpose_hbm", "transpose_sbuf", "compute")}
    built |= {key for key in MACHINES["trn3"].facts if key.startswith("peak_")}
    only_in_examples = {"launch"}
    for key in MACHINES["trn3"].facts:
        assert f'"{key}"' in text or key in built | only_in_examples, key


def test_a_mixed_kernel_asks_for_facts_of_every_engine(random_trace: object) -> None:
    assert callable(random_trace)
    trace = random_trace([(n % 9, n % 5, n % 7, n % 3, n % 4) for n in range(100)])
    facts = _Asked(dict(MACHINES["trn2"].facts))
    program_order([prepare(trace)], Machine("trn2", facts))
    for prefix in ("pe_", "vector_", "scalar_", "gpsimd_", "dma_", "hop", "v_", "g_", "s_"):
        assert any(key.startswith(prefix) for key in facts.asked), prefix
