"""The timeline as Chrome trace JSON: Perfetto (ui.perfetto.dev) and chrome://tracing open it.

One process per core; one thread per engine and per DMA ring; counters for SBUF and PSUM; an arrow
from each instruction to the one that waited for its result on another row. Times are microseconds,
as the format wants them. Instructions on one row never overlap.
"""

from __future__ import annotations

from typing import Any

from gdsl.profiler import CoreReport, CostReport, Event

_ROWS = ("tensor", "vector", "scalar", "gpsimd", "sync")
_TITLES = {
    "tensor": "TensorE",
    "vector": "VectorE",
    "scalar": "ScalarE",
    "gpsimd": "GpSimdE",
    "sync": "SyncE",
}


def chrome_trace(report: CostReport) -> dict[str, Any]:
    """Return the JSON object of the whole report."""
    found: list[dict[str, Any]] = []
    for core in report.cores:
        found.extend(_core(core))
    return {
        "traceEvents": found,
        "displayTimeUnit": "ns",
        "otherData": {
            "kernel": report.kernel,
            "target": report.target,
            "model": report.model,
            "note": "estimated in program order; nothing was measured",
        },
    }


def _core(core: CoreReport) -> list[dict[str, Any]]:
    pid = core.program
    rows = [*_ROWS, *sorted({event.row for event in core.events} - set(_ROWS))]
    threads = {row: number for number, row in enumerate(rows)}
    found: list[dict[str, Any]] = [_meta("process_name", pid, 0, f"NeuronCore {pid}, estimated")]
    for row, tid in threads.items():
        found.append(_meta("thread_name", pid, tid, _TITLES.get(row, row)))
        found.append(
            {
                "ph": "M",
                "name": "thread_sort_index",
                "pid": pid,
                "tid": tid,
                "args": {"sort_index": tid},
            }
        )
    on_path = {step.event for step in core.critical_path}
    for event in core.events:
        found.append(_slice(event, pid, threads[event.row], event.index in on_path))
        found.extend(_arrow(event, core, pid, threads))
    for point in core.memory:
        found.append(_counter("SBUF bytes per partition", pid, point.time, point.sbuf))
        found.append(_counter("PSUM banks", pid, point.time, point.psum_banks))
    return found


def _meta(name: str, pid: int, tid: int, value: str) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": {"name": value}}


def _slice(event: Event, pid: int, tid: int, on_path: bool) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "index": event.index,
        "visible_us": round(event.visible, 3),
        "nki": f"{event.file}:{event.line}",
        "waited_for": event.waited or "nothing",
        "on_critical_path": on_path,
    }
    if event.bytes:
        arguments["bytes"] = event.bytes
    if event.cycles:
        arguments["streaming_cycles"] = round(event.cycles, 1)
    if event.origin:
        arguments["gdn"] = event.origin
    return {
        "ph": "X",
        "name": event.name or event.opcode,
        "cat": event.opcode + (",critical" if on_path else ""),
        "pid": pid,
        "tid": tid,
        "ts": round(event.start, 4),
        "dur": round(event.end - event.start, 4),
        "args": arguments,
    }


def _arrow(
    event: Event, core: CoreReport, pid: int, threads: dict[str, int]
) -> list[dict[str, Any]]:
    """Return the two ends of the arrow from what an event waited for on another row."""
    if event.waits_for is None:
        return []
    source = core.events[event.waits_for]
    if source.row == event.row:
        return []
    common = {"name": event.waited, "cat": "wait", "pid": pid, "id": pid << 32 | event.index}
    # The start must lie on its slice, so the arrow leaves at the slice's end.
    return [
        {**common, "ph": "s", "tid": threads[source.row], "ts": round(source.end, 4)},
        {
            **common,
            "ph": "f",
            "bp": "e",
            "tid": threads[event.row],
            "ts": round(event.start, 4),
        },
    ]


def _counter(name: str, pid: int, time: float, value: int) -> dict[str, Any]:
    return {
        "ph": "C",
        "name": name,
        "pid": pid,
        "ts": round(time, 4),
        "args": {name: value},
    }
