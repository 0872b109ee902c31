"""Reports: JSON by its schema, text, comparison, and the numbers behind them."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from backends.cost import PROFILER
from backends.isa.trace import Trace
from gdsl.errors import UsageError
from gdsl.ir.work import Contract
from gdsl.profiler import CostOptions, CostReport

SCHEMA = json.loads((files("gdsl") / "schemas" / "cost.schema.json").read_text())
SOURCE = "import nki\n# step.gdn:4\nnisa.anything()\n"
Steps = list[tuple[int, int, int, int, int]]
STEPS: Steps = [(n % 9, n % 5, n % 7, n % 3, n % 4) for n in range(200)]


@pytest.fixture(scope="module")
def report(random_trace: Callable[..., Trace]) -> CostReport:
    options = CostOptions(
        shape={"B": 1, "Hv": 4}, schedule={"group": "8"}, sources={"kernel.py": SOURCE}, sweep=True
    )
    contract = Contract(hbm_bytes=1 << 20, matmul_flops=1e6)
    return PROFILER.profile([random_trace(STEPS)], "trn2", contract, options)


def test_json_follows_its_schema(report: CostReport) -> None:
    jsonschema.validate(PROFILER.to_json(report), SCHEMA)


def test_json_of_two_cores_follows_it_too(random_trace: Callable[..., Trace]) -> None:
    report = PROFILER.profile([random_trace(STEPS), random_trace(STEPS[:50], program=1)], "trn3")
    found = PROFILER.to_json(report)
    jsonschema.validate(found, SCHEMA)
    assert found["lnc"] == 2
    assert found["instructions"] == 250
    assert found["estimated_us"]["program_order"] == max(
        core["estimated_us"]["program_order"] for core in found["cores"]
    )


def test_the_rooflines_are_the_contracts(report: CostReport) -> None:
    assert report.hbm == pytest.approx((1 << 20) / 368e3)
    assert report.pe == pytest.approx(1e6 / 78.64e6)


def test_without_a_contract_the_arguments_count(builder: Callable[..., Any]) -> None:
    trace = builder()
    inp = trace.tile("hbm", (128, 512), role="input")
    state = trace.tile("hbm", (128, 512), role="inout")
    scratch = trace.tile("hbm", (128, 512))
    tile = trace.tile("sbuf", (128, 512))
    for place in (inp, state, scratch):
        trace.dma(tile, place)
    report = PROFILER.profile([trace.build()], "trn2")
    assert report.contract == Contract(hbm_bytes=3 * 128 * 512 * 4, matmul_flops=0)


def test_the_range_holds_the_figure_and_every_single_change(report: CostReport) -> None:
    assert report.low <= report.estimate.program_order <= report.high
    assert report.cases
    for case in report.cases:
        assert report.low <= case.program_order <= report.high, case.key


def test_time_by_line_adds_up(report: CostReport) -> None:
    total = report.estimate.program_order
    assert sum(line.path for line in report.lines) == pytest.approx(total)
    assert sum(line.path for line in report.origin_lines) == pytest.approx(total)
    assert {line.instructions for line in report.lines} == {200}


def test_engine_time_counts_every_instruction(report: CostReport) -> None:
    (core,) = report.cores
    engines = sum(use.instructions for use in core.engines.values())
    assert engines + core.dma_count == core.instructions == 200
    for name, use in core.engines.items():
        assert use.busy >= core.bounds[name] - 1e-9


def test_text_says_what_matters(report: CostReport) -> None:
    text = PROFILER.to_text(report, {"kernel.py": SOURCE, "step.gdn": "a\nb\nc\no = S * q\n"})
    for expected in (
        "kernel on trn2, lnc 1, B=1 Hv=4",
        "every time is estimated",
        "program order",
        "list-scheduled",
        "critical path",
        "time per NKI line",
        "assumed numbers of the machine",
    ):
        assert expected in text
    assert f"{report.estimate.program_order:.2f} us" in text
    assert all(len(line) <= 140 for line in text.split("\n"))


def test_time_is_attributed_to_gdn_lines(builder: Callable[..., Any]) -> None:
    trace = builder()
    dst, src = (trace.tile("sbuf", (128, 512)) for _ in range(2))
    trace.vector("tensor_copy", dst, {"src": src})
    trace.add("vector", "tensor_copy", {"dst": src}, {"src": dst}, line=3)
    options = CostOptions(sources={"kernel.py": SOURCE})
    report = PROFILER.profile([trace.build()], "trn2", None, options)
    assert [(line.file, line.line) for line in report.origin_lines] == [("", 0), ("step.gdn", 4)]
    text = PROFILER.to_text(report, {"step.gdn": "a\nb\nc\no = S * q\n"})
    assert "step.gdn:4  o = S * q" in text
    elsewhere = PROFILER.to_text(report, {"some/folder/step.gdn": "a\nb\nc\no = S * q\n"})
    assert "step.gdn:4  o = S * q" in elsewhere


def test_names_of_models_differ_when_numbers_do(random_trace: Callable[..., Trace]) -> None:
    trace = random_trace(STEPS)
    plain = PROFILER.profile([trace], "trn2")
    slower = PROFILER.profile([trace], "trn2", None, CostOptions(machine={"hop": 60.0}))
    assert plain.model == PROFILER.profile([trace], "trn2").model
    assert plain.model != slower.model
    assert slower.estimate.program_order > plain.estimate.program_order


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("trn9", CostOptions(), "no machine data for `trn9`"),
        ("trn2", CostOptions(machine={"hopp": 1.0}), "`hopp` is no number of the machine"),
    ],
)
def test_bad_requests(
    random_trace: Callable[..., Trace], target: str, options: CostOptions, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        PROFILER.profile([random_trace(STEPS[:5])], target, None, options)


def test_an_empty_trace_cannot_be_timed(builder: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="nothing to time"):
        PROFILER.profile([builder().build()], "trn2")


def test_comparison_says_whether_it_holds(report: CostReport) -> None:
    old = PROFILER.to_json(report)
    new = json.loads(json.dumps(old))
    assert "overlap" in PROFILER.compare(old, new)
    new["estimated_us"]["program_order"] /= 100
    new["sensitivity"] = {"low": 0.1, "high": old["sensitivity"]["low"] / 2}
    new["schedule"] = {"group": "16"}
    text = PROFILER.compare(old, new)
    assert "new is faster whatever the assumed numbers" in text
    assert "0.010" in text
    assert "schedule: group=8 -> group=16" in text
    assert "new is slower whatever" in PROFILER.compare(new, old)
    new["model"] = "timeline-1/00000000"
    assert "different models" in PROFILER.compare(old, new)


def test_comparison_refuses_what_is_no_report(report: CostReport) -> None:
    with pytest.raises(UsageError, match=r"the old file is no cost report.*--json"):
        PROFILER.compare({}, PROFILER.to_json(report))
