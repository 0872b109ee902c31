"""Time by source line: what each adds to the critical path, and how long it keeps engines busy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from attrs import define

from gdsl.profiler import CoreReport, Event, LineTime


@define
class _Sum:
    path: float = 0.0
    busy: float = 0.0
    instructions: int = 0


def nki_place(event: Event) -> tuple[str, int]:
    """The NKI line of an event."""
    return event.file, event.line


def origin_place(event: Event) -> tuple[str, int]:
    """The `.gdn` line of an event; without one, an empty file name."""
    file, _, line = event.origin.rpartition(":")
    return file, int(line) if file else 0


def find_source(sources: Mapping[str, str], file: str) -> str | None:
    """Return the text of a file: by its name, or by what follows the last slash of both."""
    if file in sources:
        return sources[file]
    name = base_name(file)
    return next((text for known, text in sources.items() if base_name(known) == name), None)


def base_name(file: str) -> str:
    """Return what follows the last slash."""
    return file.rpartition("/")[2]


def line_times(
    cores: Sequence[CoreReport], place: Callable[[Event], tuple[str, int]]
) -> tuple[LineTime, ...]:
    """Return the times of every line, by `place`; the path is that of the core that ends last."""
    sums: dict[tuple[str, int], _Sum] = defaultdict(_Sum)
    for core in cores:
        for event in core.events:
            held = sums[place(event)]
            held.busy += event.end - event.start
            held.instructions += 1
    last = max(cores, key=lambda core: core.estimate.program_order)
    for step in last.critical_path:
        sums[place(last.events[step.event])].path += step.microseconds
    return tuple(
        LineTime(file, line, held.path, held.busy, held.instructions)
        for (file, line), held in sorted(sums.items())
    )
