"""The report for a terminal: figures, engines, critical path, time per source line. Plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from backends.cost.lines import base_name, find_source
from gdsl.profiler import Case, CoreReport, CostReport, Event, LineTime, Step

_BAR = 24
_LINES = 16
"""How many source lines a table shows; the rest is summed up."""
_STEPS = 14
"""How many stretches of the critical path are shown."""
_ROWS = 6
_CASES = 12


def to_text(report: CostReport, sources: Mapping[str, str]) -> str:
    """Return the whole report; `sources` (NKI and `.gdn` texts by name) quote the lines."""
    sections = [_figures(report)]
    for core in report.cores:
        sections.append(_engines(core, len(report.cores) > 1))
    last = max(report.cores, key=lambda core: core.estimate.program_order)
    sections.append(_path(last))
    if any(line.file for line in report.origin_lines):
        sections.append(_lines("time per .gdn line", report.origin_lines, sources))
    sections.append(_lines("time per NKI line", report.lines, sources))
    if report.cases:
        sections.append(_cases(report))
    return "\n\n".join(sections)


def _figures(report: CostReport) -> str:
    estimate = report.estimate
    time = estimate.program_order
    shape = " ".join(f"{axis}={size}" for axis, size in report.shape.items())
    schedule = " ".join(f"{key}={value}" for key, value in report.schedule.items())
    head = f"{report.kernel} on {report.target}, lnc {report.lnc}"
    rows = [
        f"{head}{', ' + shape if shape else ''}",
        *([f"schedule {schedule}"] if schedule else []),
        f"every time is estimated ({report.model}), none is measured",
        "",
        f"program order   {time:10.2f} us   {report.low:.2f} to {report.high:.2f} "
        "over the assumed numbers of the machine",
        f"list-scheduled  {estimate.list_scheduled:10.2f} us   if the compiler reorders freely",
        f"throttled       {estimate.throttled:10.2f} us   program order under TensorE's clock gate",
        f"roofline, hbm   {report.hbm:10.2f} us   {report.contract.hbm_bytes:,} bytes; "
        f"{_times(time, report.hbm)}",
    ]
    if report.contract.matmul_flops:
        rows.append(
            f"roofline, pe    {report.pe:10.2f} us   {report.contract.matmul_flops:,.0f} FLOPs "
            f"in {report.contract.operands}; {_times(time, report.pe)}"
        )
    rows.append(f"bound by        {_WHY[report.bound_by]}")
    return "\n".join(rows)


_WHY = {
    "hbm": "hbm: the bytes of the contract",
    "pe": "pe: the FLOPs of the contract",
    "dma": "dma: the transfers, by bytes or by their number",
    "latency": "latency: no engine is busy for most of the time; chains of dependent instructions",
} | {
    engine: f"{engine}: that engine's instructions"
    for engine in ("tensor", "vector", "scalar", "gpsimd", "sync")
}


def _times(time: float, bound: float) -> str:
    return f"program order is {time / bound:.2f} x this" if bound > 0 else "nothing to move"


def _engines(core: CoreReport, several: bool) -> str:
    total = core.estimate.program_order or 1.0
    rows = [
        (f"core {core.program}    " if several else "")
        + f"{core.instructions} instructions, {core.table_loads} function-table loads, "
        f"SBUF {core.sbuf_bytes_per_partition:,} bytes per partition, PSUM {core.psum_banks} banks",
        "",
        f"{'engine':8} {'busy us':>10} {'of time':>8}  {'':{_BAR}} {'instructions':>12}",
    ]
    for name, use in core.engines.items():
        share = use.busy / total
        rows.append(f"{name:8} {use.busy:10.2f} {share:8.1%}  {_bar(share)} {use.instructions:12}")
    share = core.bounds["dma"] / total
    rows.append(
        f"{'dma':8} {core.bounds['dma']:10.2f} {share:8.1%}  {_bar(share)} {core.dma_count:12}"
        f"   {core.dma_bytes:,} bytes"
    )
    return "\n".join(rows)


def _bar(share: float) -> str:
    full = min(round(share * _BAR), _BAR)
    return "#" * full + "." * (_BAR - full)


def _path(core: CoreReport) -> str:
    """Stretches of the critical path: neighbours of one line on one row are one stretch."""
    events = core.events

    def key(step: Step) -> tuple[str, int, str]:
        event = events[step.event]
        return event.row, event.line, event.opcode

    stretches = [(place, list(steps)) for place, steps in groupby(core.critical_path, key=key)]
    by_kind: dict[str, float] = {}
    for step in core.critical_path:
        row = events[step.event].row
        by_kind[row] = by_kind.get(row, 0.0) + step.microseconds
    total = core.estimate.program_order or 1.0
    ranked = sorted(by_kind.items(), key=lambda item: -item[1])
    spent = ", ".join(f"{row} {time / total:.0%}" for row, time in ranked[:_ROWS])
    rows = [
        f"critical path: {len(core.critical_path)} instructions; {spent}",
        f"{'from us':>10} {'us':>8} {'row':10} {'opcode':22} {'line':>5} {'count':>6}  "
        "started when",
    ]
    shown = sorted(
        sorted(stretches, key=lambda item: -sum(step.microseconds for step in item[1]))[:_STEPS],
        key=lambda item: events[item[1][0].event].start,
    )
    for (row, line, opcode), steps in shown:
        first = events[steps[0].event]
        spent_here = sum(step.microseconds for step in steps)
        rows.append(
            f"{first.start:10.2f} {spent_here:8.2f} {row:10} {opcode:22} {line:5} {len(steps):6}"
            f"  {_started(first, events)}"
        )
    if len(stretches) > len(shown):
        rows.append(f"{'':10} the {len(shown)} longest of {len(stretches)} stretches")
    return "\n".join(rows)


_STARTED = {
    "engine": "the instruction before it on its engine was done",
    "data": "its operand was there",
    "buffer": "its destination was free",
    "ring": "the transfer before it on its ring was through",
    "bank": "the other engine left its PSUM bank",
    "barrier": "both cores were there",
    "": "the kernel began",
}


def _started(event: Event, events: Sequence[Event]) -> str:
    text = _STARTED[event.waited]
    if event.waited in ("data", "buffer", "bank") and event.waits_for is not None:
        before = events[event.waits_for]
        text += f" ({before.opcode}, line {before.line})"
    return text


def _lines(title: str, lines: Sequence[LineTime], sources: Mapping[str, str]) -> str:
    total = sum(line.path for line in lines) or 1.0
    ranked = sorted(lines, key=lambda line: (-line.path, -line.busy))
    rows = [
        title,
        f"{'path us':>10} {'':>6} {'busy us':>10} {'instr':>6}  line",
    ]
    for line in ranked[:_LINES]:
        rows.append(
            f"{line.path:10.2f} {line.path / total:6.1%} {line.busy:10.2f} {line.instructions:6}"
            f"  {_quoted(line, sources)}"
        )
    rest = ranked[_LINES:]
    if rest:
        rows.append(
            f"{sum(line.path for line in rest):10.2f} "
            f"{sum(line.path for line in rest) / total:6.1%} "
            f"{sum(line.busy for line in rest):10.2f} {sum(line.instructions for line in rest):6}"
            f"  {len(rest)} more lines"
        )
    return "\n".join(rows)


def _quoted(line: LineTime, sources: Mapping[str, str]) -> str:
    if not line.file:
        return "(no line: set-up and moves that serve the whole kernel)"
    text = find_source(sources, line.file)
    quoted = text.split("\n")[line.line - 1].strip() if text else ""
    return f"{base_name(line.file)}:{line.line}  {quoted}"[:100].rstrip()


def _cases(report: CostReport) -> str:
    time = report.estimate.program_order
    ranked = sorted(report.cases, key=lambda case: -abs(case.program_order - time))
    rows = [
        "assumed numbers of the machine, each at the ends of its range, by effect",
        f"{'us':>10} {'change':>8}  number",
    ]
    rows.extend(_case(case, time) for case in ranked[:_CASES] if case.program_order != time)
    still = sum(1 for case in ranked if case.program_order == time)
    rows.append(f"{'':10} {still} further cases change nothing")
    return "\n".join(rows)


def _case(case: Case, time: float) -> str:
    change = case.program_order / time - 1 if time else 0.0
    return f"{case.program_order:10.2f} {change:+8.1%}  {case.key} = {case.value:g}"
