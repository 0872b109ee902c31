"""Inline SVG of a core's timeline and of its memory over time.

Long traces have more instructions than pixels: neighbours on a row that would share a pixel are
drawn as one block, so that the page stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10

from backends.isa.targets import PSUM_BANKS, find_target
from gdsl.profiler import CoreReport, Event

_WIDTH = 1180
_LEFT = 92
_ROW = 22
_BLOCK = 16
_TICKS = 10
_NAMES = {
    "tensor": "TensorE",
    "vector": "VectorE",
    "scalar": "ScalarE",
    "gpsimd": "GpSimdE",
    "sync": "SyncE",
}
_COLOURS = {
    "tensor": "#3b7dd8",
    "vector": "#2f9e63",
    "scalar": "#8a63d2",
    "gpsimd": "#b0892f",
    "sync": "#7b8794",
}
_DMA_COLOUR = "#56707f"
_PATH_COLOUR = "#ea7317"
_MEMORY_HEIGHT = 70


def timeline_svg(core: CoreReport) -> str:
    """Return the rows of one core, engines first, then DMA rings."""
    rows = [row for row in _NAMES if any(event.row == row for event in core.events)]
    rows += sorted({event.row for event in core.events} - set(_NAMES))
    end = max((event.end for event in core.events), default=1.0) or 1.0
    scale = (_WIDTH - _LEFT - 10) / end
    on_path = {step.event for step in core.critical_path}
    height = _ROW * len(rows) + 26
    parts = [_open(height), _ticks(end, scale, _ROW * len(rows))]
    for number, row in enumerate(rows):
        y = number * _ROW + 3
        parts.append(f'<text x="0" y="{y + 12}">{escape(_NAMES.get(row, row))}</text>')
        parts += _blocks([e for e in core.events if e.row == row], y, scale, on_path)
    parts.append("</svg>")
    return "".join(parts)


def _open(height: int) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="100%" role="img" '
        'xmlns="http://www.w3.org/2000/svg">'
    )


def _ticks(end: float, scale: float, bottom: int) -> str:
    """Return vertical lines at round microseconds."""
    step = 10 ** floor(log10(end / _TICKS))
    while end / step > _TICKS:
        step *= 2 if round(end / step / 2) >= _TICKS else 2.5
    parts = []
    for number in range(ceil(end / step) + 1):
        x = _LEFT + number * step * scale
        if x > _WIDTH:
            break
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{bottom}" stroke="#e3e7eb"/>'
            f'<text class="axis" x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">'
            f"{number * step:g} us</text>"
        )
    return "".join(parts)


def _blocks(events: Sequence[Event], y: int, scale: float, on_path: set[int]) -> list[str]:
    """Draw a row, merging what falls into one pixel."""
    parts = []
    held: list[Event] = []
    until = -1.0
    for event in sorted(events, key=lambda event: event.start):
        x = floor(event.start * scale)
        if held and x > until:
            parts.append(_block(held, y, scale, on_path))
            held = []
        held.append(event)
        until = max(floor(event.end * scale) - 1, x) if len(held) == 1 else max(until, x)
    if held:
        parts.append(_block(held, y, scale, on_path))
    return parts


def _block(events: Sequence[Event], y: int, scale: float, on_path: set[int]) -> str:
    start, end = events[0].start, max(event.end for event in events)
    first = events[0]
    critical = any(event.index in on_path for event in events)
    colour = _PATH_COLOUR if critical else _COLOURS.get(first.row, _DMA_COLOUR)
    title = _title(first) if len(events) == 1 else f"{len(events)} instructions from {first.opcode}"
    width = max((end - start) * scale - 0.4, 0.6)
    return (
        f'<rect x="{_LEFT + start * scale:.1f}" y="{y}" width="{width:.1f}" height="{_BLOCK}" '
        f'fill="{colour}"><title>{escape(title)}</title></rect>'
    )


def _title(event: Event) -> str:
    lines = [
        f"{event.name or event.opcode} ({event.opcode})" if event.name else event.opcode,
        f"{event.start:.3f} to {event.end:.3f} us, result at {event.visible:.3f}",
        f"line {event.line}" + (f", {event.origin}" if event.origin else ""),
    ]
    if event.bytes:
        lines.append(f"{event.bytes:,} bytes")
    if event.cycles:
        lines.append(f"{event.cycles:.0f} streaming cycles")
    if event.waited:
        lines.append(f"waited: {event.waited}")
    return "\n".join(lines)


def memory_svg(core: CoreReport, target: str) -> str:
    """Return SBUF bytes and PSUM banks in use over time, each with its limit."""
    end = max((event.end for event in core.events), default=1.0) or 1.0
    scale = (_WIDTH - _LEFT - 10) / end
    usable = find_target(target).sbuf_usable_bytes
    height = 2 * (_MEMORY_HEIGHT + 24)
    sbuf = [(point.time, float(point.sbuf)) for point in core.memory]
    banks = [(point.time, float(point.psum_banks)) for point in core.memory]
    top = max([value for _, value in sbuf], default=0.0) or 1.0
    below = _MEMORY_HEIGHT + 24
    return (
        _open(height)
        + _area(sbuf, end, scale, 0, top, "#3b7dd8")
        + _labels("SBUF", f"peak {top:,.0f} of {usable:,} bytes per partition", 0)
        + _area(banks, end, scale, below, float(PSUM_BANKS), "#8a63d2")
        + _labels("PSUM", f"full height is all {PSUM_BANKS} banks", below)
        + "</svg>"
    )


def _area(
    points: Sequence[tuple[float, float]],
    end: float,
    scale: float,
    y: int,
    top: float,
    colour: str,
) -> str:
    """Return a step curve, filled; the highest of several changes in one pixel counts."""
    steps: dict[int, float] = {}
    last = 0.0
    for time, value in points:
        x = floor(time * scale)
        steps[x] = max(steps.get(x, last), value)
        last = value
        steps[x + 1] = value
    base = y + _MEMORY_HEIGHT
    path = [f"M{_LEFT} {base}"]
    height = 0.0
    for x, value in sorted(steps.items()):
        if value != height:
            path.append(f"H{_LEFT + x}V{base - value / top * (_MEMORY_HEIGHT - 6):.1f}")
            height = value
    path.append(f"H{_LEFT + floor(end * scale)}V{base}Z")
    return (
        f'<path d="{"".join(path)}" fill="{colour}" fill-opacity="0.3" stroke="{colour}"/>'
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{base}" y2="{base}" stroke="#9aa4ae"/>'
    )


def _labels(name: str, note: str, y: int) -> str:
    return (
        f'<text x="0" y="{y + _MEMORY_HEIGHT - 4}">{name}</text>'
        f'<text class="axis" x="{_LEFT}" y="{y + _MEMORY_HEIGHT + 15}">{escape(note)}</text>'
    )
