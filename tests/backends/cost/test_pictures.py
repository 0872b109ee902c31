"""Chrome trace, HTML page and roofline: well-formed, self-contained, showing the numbers."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from backends.cost import PROFILER
from backends.isa.trace import Trace
from gdsl.ir.work import Contract
from gdsl.profiler import CostOptions, CostReport

SOURCE = "import nki  # <a & b>\n"
STEPS = [(n % 9, n % 5, n % 7, n % 3, n % 4) for n in range(300)]


@pytest.fixture(scope="module")
def report(random_trace: Callable[..., Trace]) -> CostReport:
    traces = [random_trace(STEPS), random_trace(STEPS[:100], program=1)]
    contract = Contract(hbm_bytes=1 << 20, matmul_flops=1e8)
    return PROFILER.profile(traces, "trn2", contract, CostOptions(sources={"kernel.py": SOURCE}))


def test_rows_of_the_chrome_trace_do_not_overlap(report: CostReport) -> None:
    events = PROFILER.chrome_trace(report)["traceEvents"]
    rows: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events:
        if event["ph"] == "X":
            rows.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["dur"]))
    assert len(rows) > 4
    for spans in rows.values():
        for (start, duration), (following, _) in pairwise(sorted(spans)):
            assert following >= start + duration - 1e-3


def test_the_chrome_trace_is_json_with_names_counters_and_arrows(report: CostReport) -> None:
    found = json.loads(json.dumps(PROFILER.chrome_trace(report)))
    events = found["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"TensorE", "VectorE", "ScalarE", "dma sync", "dma ring 2"} <= names
    assert {event["name"] for event in events if event["ph"] == "C"} == {
        "SBUF bytes per partition",
        "PSUM banks",
    }
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts
    assert starts.keys() == ends.keys()
    assert sum(1 for event in events if event["ph"] == "X") == 400


class _Checker(HTMLParser):
    """Collects tags that are open at the end, and references to other places."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "rect", "line", "path", "polyline", "circle"):
            self.open.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass


def test_the_page_needs_nothing_else(report: CostReport) -> None:
    page = PROFILER.html(report, {"kernel.py": SOURCE})
    checker = _Checker()
    checker.feed(page)
    assert checker.open == []
    assert all(reference.startswith("#") for reference in checker.references)
    assert "@import" not in page
    assert "url(" not in page
    assert "<script" not in page


def test_the_page_shows_figures_timeline_memory_and_source(report: CostReport) -> None:
    page = PROFILER.html(report, {"kernel.py": SOURCE})
    assert f"{report.estimate.program_order:.2f} us" in page
    assert page.count("<svg") == 5
    assert "Timeline of core 1" in page
    assert "&lt;a &amp; b&gt;" in page
    assert "nothing was measured" in page


def test_without_known_flops_there_is_no_roofline_picture(
    random_trace: Callable[..., Trace],
) -> None:
    report = PROFILER.profile([random_trace(STEPS)], "trn2")
    assert "<h2>Roofline</h2>" not in PROFILER.html(report, {})


def test_a_page_of_a_long_trace_stays_small(random_trace: Callable[..., Trace]) -> None:
    steps = [(n % 9, n % 5, n % 7, n % 3, n % 4) for n in range(6000)]
    report = PROFILER.profile([random_trace(steps)], "trn2")
    assert len(PROFILER.html(report, {})) < 2_000_000


def test_the_roofline_is_an_svg_with_the_kernel_in_it(report: CostReport) -> None:
    pytest.importorskip("matplotlib")
    text = PROFILER.roofline_svg(report)
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    assert re.search(r"<!-- kernel: [\d.]+ us, [\d.]+ x its roofline -->", text)
    assert text == PROFILER.roofline_svg(report)
