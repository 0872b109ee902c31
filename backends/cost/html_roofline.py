"""Inline SVG of the roofline: what the machine allows at each intensity, and where the kernel is.

The same picture as `roofline_svg.py`, small and without matplotlib, for the HTML page.
"""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10

from backends.cost.roofline import Roofline, roofline
from backends.isa.machine import MACHINES
from gdsl.profiler import CostReport

_WIDTH, _HEIGHT = 620, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 130, 12, 40
_DTYPES = ("mx", "fp8", "bf16", "fp32")


def roofline_inline(report: CostReport) -> str:
    """Return the picture; empty when the contract's FLOPs are not known."""
    flops, moved = report.contract.matmul_flops, report.contract.hbm_bytes
    if not flops or not moved:
        return ""
    machine = MACHINES[report.target]
    roof = roofline(report.contract, machine, report.lnc)
    peaks = {
        dtype: machine[f"peak_{dtype}"] * report.lnc
        for dtype in _DTYPES
        if f"peak_{dtype}" in machine
    }
    intensity = flops / moved
    reached = flops / (report.estimate.program_order * 1e6)
    plot = _Plot(intensity, reached, roof, max(peaks.values()))
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" '
        'xmlns="http://www.w3.org/2000/svg">',
        plot.grid(),
    ]
    for dtype, peak in peaks.items():
        parts.append(plot.roof(dtype, peak, own=dtype == report.contract.operands))
    parts.append(plot.kernel(intensity, reached, report))
    parts.append("</svg>")
    return "".join(parts)


class _Plot:
    """Log-log axes around one kernel: FLOPs per byte across, TFLOPS upwards."""

    def __init__(self, intensity: float, reached: float, roof: Roofline, top: float) -> None:
        self._bandwidth = roof.hbm_rate / 1000  # TFLOPS at one FLOP per byte
        ridge = top / self._bandwidth
        self._x0 = floor(log10(min(intensity, ridge))) - 1
        self._x1 = ceil(log10(max(intensity, ridge))) + 1
        self._y0 = floor(min(log10(reached), self._x0 + log10(self._bandwidth)))
        self._y1 = ceil(log10(top)) + 0.2

    def x(self, intensity: float) -> float:
        share = (log10(intensity) - self._x0) / (self._x1 - self._x0)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, tflops: float) -> float:
        share = (log10(tflops) - self._y0) / (self._y1 - self._y0)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    def grid(self) -> str:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        parts = []
        for power in range(self._x0, self._x1 + 1):
            x = self.x(10.0**power)
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" stroke="#e3e7eb"/>'
                f'<text class="axis" x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">'
                f"{10.0**power:g}</text>"
            )
        for power in range(self._y0, floor(self._y1) + 1):
            y = self.y(10.0**power)
            parts.append(
                f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e3e7eb"/>'
                f'<text class="axis" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
                f"{10.0**power:g}</text>"
            )
        parts.append(
            f'<text class="axis" x="{(_LEFT + right) / 2}" y="{bottom + 32}" '
            'text-anchor="middle">FLOPs of the contract per HBM byte; upwards TFLOPS</text>'
        )
        return "".join(parts)

    def roof(self, dtype: str, peak: float, *, own: bool) -> str:
        left, right = 10.0**self._x0, 10.0**self._x1
        knee = peak / self._bandwidth
        points = [(left, left * self._bandwidth), (knee, peak), (right, peak)]
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        colour, width = ("#1f5fa8", 2) if own else ("#9aa4ae", 1)
        return (
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
            f'<text class="axis" x="{_WIDTH - _RIGHT + 6}" y="{self.y(peak) + 4:.1f}">'
            f"{dtype} {peak:.3g} TFLOPS</text>"
        )

    def kernel(self, intensity: float, reached: float, report: CostReport) -> str:
        bound = max(report.hbm, report.pe)
        limit = reached * report.estimate.program_order / bound
        x, y, roof = self.x(intensity), self.y(reached), self.y(limit)
        label = f"program order, {report.estimate.program_order / bound:.2f} x the roofline"
        return (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y:.1f}" y2="{roof:.1f}" stroke="#ea7317" '
            'stroke-dasharray="2 2"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#ea7317"/>'
            f'<text x="{x + 9:.1f}" y="{y + 12:.1f}">{escape(label)}</text>'
        )
