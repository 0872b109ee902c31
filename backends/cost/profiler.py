"""The cost model behind the `gdsl.profiler.Profiler` protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backends.cost.chrome_trace import chrome_trace
from backends.cost.compare import compare
from backends.cost.html import html
from backends.cost.profile import profile
from backends.cost.report import to_json
from backends.cost.roofline_svg import roofline_svg
from backends.cost.text import to_text
from gdsl.ir.work import Contract
from gdsl.profiler import CostOptions, CostReport


class CostProfiler:
    """Estimates time from instruction traces; see `backends/cost/profile.py`."""

    name = "cost"

    def profile(
        self,
        traces: Sequence[Any],
        target: str,
        contract: Contract | None = None,
        options: CostOptions | None = None,
    ) -> CostReport:
        """Return the report for one launch, one trace per core."""
        return profile(traces, target, contract, options or CostOptions())

    def to_json(self, report: CostReport) -> dict[str, Any]:
        """Return the report as `gdsl/schemas/cost.schema.json` describes it."""
        return to_json(report)

    def to_text(self, report: CostReport, sources: Mapping[str, str]) -> str:
        """Return the report for a terminal."""
        return to_text(report, sources)

    def compare(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
        """Return two JSON reports side by side."""
        return compare(old, new)

    def chrome_trace(self, report: CostReport) -> dict[str, Any]:
        """Return the timeline as Chrome trace JSON."""
        return chrome_trace(report)

    def html(self, report: CostReport, sources: Mapping[str, str]) -> str:
        """Return one self-contained page."""
        return html(report, sources)

    def roofline_svg(self, report: CostReport) -> str:
        """Return the roofline as SVG."""
        return roofline_svg(report)
