"""One self-contained HTML page of a cost report: no script or style from anywhere else.

It says, from top to bottom: the figures beside the rooflines; what each engine does; the roofline;
the engine timeline with the critical path; memory over time; and the sources, each line with its
share of the critical path.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from backends.cost.html_roofline import roofline_inline
from backends.cost.html_source import source_section
from backends.cost.html_timeline import memory_svg, timeline_svg
from gdsl.profiler import CostReport

_STYLE = """
:root { color-scheme: light; }
body { font: 14px/1.45 system-ui, sans-serif; color: #1b2733; margin: 2rem auto; max-width: 76rem;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p.note { color: #5c6670; margin: .2rem 0 .8rem; max-width: 60rem; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: right;
       font-variant-numeric: tabular-nums; } th { color: #5c6670; font-weight: 500; }
td:first-child, th:first-child, td.text, th.text { text-align: left; }
.bar { background: #e9edf1; width: 16rem; height: .8rem; display: inline-block; }
.bar > i { background: #3b7dd8; height: 100%; display: block; }
.bar > i.roof { background: #c2410c; } .bar > i.now { background: #1b2733; }
pre.source { font: 12px/1.5 ui-monospace, monospace; background: #fbfcfd; border: 1px solid #e3e7eb;
       padding: .5rem 0; overflow-x: auto; max-height: 40rem; }
pre.source > span { display: block; padding: 0 .6rem; white-space: pre; }
pre.source .n { color: #9aa4ae; display: inline-block; width: 3.2rem; text-align: right; }
pre.source .t { color: #7c2d12; display: inline-block; width: 6.6rem; text-align: right;
       margin-right: 1rem; }
svg text { font: 11px system-ui, sans-serif; fill: #1b2733; } svg .axis { fill: #5c6670; }
a { color: #1f5fa8; } code { font: 12px ui-monospace, monospace; }
"""


def html(report: CostReport, sources: Mapping[str, str]) -> str:
    """Return the page; `sources` are NKI and `.gdn` texts by file name."""
    body = [
        f"<h1>{escape(report.kernel)} on {report.target}</h1>",
        f'<p class="note">{escape(_subtitle(report))}</p>',
        _figures(report),
        _bounds(report),
        _roofline(report),
    ]
    for core in report.cores:
        title = "Timeline" if report.lnc == 1 else f"Timeline of core {core.program}"
        body += [
            f"<h2>{title}</h2>",
            '<p class="note">Program order. Each block is one instruction (hover for its line, '
            "cycles and what it waited for); orange blocks are on the critical path. DMA rows show "
            "data moving, not the wait before it.</p>",
            timeline_svg(core),
            "<h2>On-chip memory over time</h2>",
            '<p class="note">Tiles count from the first to the last instruction that touches '
            "them, at the estimated times. Counted in program order the kernel needs "
            f"{core.sbuf_bytes_per_partition:,} bytes per partition and {core.psum_banks} banks."
            "</p>",
            memory_svg(core, report.target),
        ]
    if any(line.file for line in report.origin_lines):
        body.append(source_section("Time per .gdn line", report.origin_lines, sources))
    body.append(source_section("Time per NKI line", report.lines, sources))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(report.kernel)}, {report.target}: estimated cost</title>"
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _subtitle(report: CostReport) -> str:
    shape = " ".join(f"{axis}={size}" for axis, size in report.shape.items())
    schedule = " ".join(f"{key}={value}" for key, value in report.schedule.items())
    parts = [f"{report.lnc} core{'s' if report.lnc > 1 else ''}", shape, schedule]
    return (
        ", ".join(part for part in parts if part)
        + f". Every time is estimated by {report.model}; nothing was measured."
    )


def _figures(report: CostReport) -> str:
    """The figures as bars on one scale, rooflines first."""
    estimate = report.estimate
    rows = [
        ("roofline: HBM bytes", report.hbm, "roof", f"{report.contract.hbm_bytes:,} bytes"),
        (
            "roofline: TensorE FLOPs",
            report.pe,
            "roof",
            f"{report.contract.matmul_flops:,.0f} in {report.contract.operands}",
        ),
        ("list-scheduled", estimate.list_scheduled, "now", "if the compiler reorders freely"),
        (
            "program order",
            estimate.program_order,
            "now",
            f"{report.low:.2f} to {report.high:.2f} over the assumed numbers of the machine",
        ),
        ("throttled", estimate.throttled, "now", "program order under TensorE's clock gate"),
    ]
    scale = max(time for _, time, _, _ in rows) or 1.0
    lines = [
        f'<tr><td>{label}</td><td>{time:.2f} us</td><td class="text"><span class="bar">'
        f'<i class="{kind}" style="width:{100 * time / scale:.1f}%"></i></span></td>'
        f'<td class="text">{escape(note)}</td></tr>'
        for label, time, kind, note in rows
        if time > 0
    ]
    return f"<table>{''.join(lines)}</table>"


def _roofline(report: CostReport) -> str:
    picture = roofline_inline(report)
    return f"<h2>Roofline</h2>{picture}" if picture else ""


def _bounds(report: CostReport) -> str:
    """Engines of every core: busy time and its share."""
    rows = []
    for core in report.cores:
        total = core.estimate.program_order or 1.0
        uses = [(name, use.busy, use.instructions) for name, use in core.engines.items()]
        uses.append(("dma", core.bounds["dma"], core.dma_count))
        for name, busy, instructions in uses:
            label = name if report.lnc == 1 else f"core {core.program} {name}"
            share = min(busy / total, 1.0)
            rows.append(
                f"<tr><td>{label}</td><td>{busy:.2f} us</td><td>{share:.0%}</td>"
                f'<td class="text"><span class="bar"><i style="width:{100 * share:.1f}%"></i>'
                f"</span></td><td>{instructions}</td></tr>"
            )
    return (
        f"<h2>Engines (bound by {report.bound_by})</h2><table><tr><th>engine</th><th>busy</th>"
        "<th>of time</th><th></th><th>instructions</th></tr>" + "".join(rows) + "</table>"
    )
