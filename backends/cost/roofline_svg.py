"""The roofline as SVG, by matplotlib (the `plot` extra): what the machine allows; the kernel."""

from __future__ import annotations

import io

from backends.cost.roofline import roofline
from backends.isa.machine import MACHINES
from gdsl.errors import BackendUnavailable
from gdsl.profiler import CostReport

_DTYPES = (("peak_mx", "MX"), ("peak_fp8", "fp8"), ("peak_bf16", "bf16"), ("peak_fp32", "fp32"))
_SIZE = (7.2, 4.6)
_DECADES = 2.2
"""How far, in powers of ten, the picture reaches to each side of the kernel."""


def roofline_svg(report: CostReport) -> str:
    """Return the SVG text.

    The horizontal axis is the contract's FLOPs per byte, the vertical its FLOPs per second. A
    kernel without known FLOPs is drawn by its bytes: one FLOP per byte, so that the distance to the
    slanted line is still its distance to the HBM bound. Raises BackendUnavailable.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BackendUnavailable(
            "the roofline picture needs matplotlib; install it with `pip install gdsl[plot]`"
        ) from error
    mpl.rcParams["svg.hashsalt"] = "gdsl"  # the same report gives the same text
    machine = MACHINES[report.target]
    roof = roofline(report.contract, machine, report.lnc)
    flops = report.contract.matmul_flops or float(report.contract.hbm_bytes)
    intensity = flops / max(report.contract.hbm_bytes, 1)
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    peaks = [(label, machine[key] * report.lnc) for key, label in _DTYPES if key in machine]
    bandwidth = roof.hbm_rate / 1000  # TB/s, so that times FLOP/byte it is TFLOPS
    ridge = max(peak for _, peak in peaks) / bandwidth
    left = min(intensity, ridge) / 10**_DECADES
    right = max(intensity, ridge) * 10**_DECADES / 10
    for label, peak in peaks:
        knee = peak / bandwidth
        own = label == report.contract.operands
        axes.plot(
            [left, knee, right],
            [left * bandwidth, peak, peak],
            color="#1f5fa8" if own else "#9aa4ae",
            linewidth=2.0 if own else 1.0,
        )
        axes.annotate(
            f"{label} {peak:.3g} TFLOPS",
            (right, peak),
            xytext=(-4, 3),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color="#1f5fa8" if own else "#5c6670",
        )
    low_at = left * 2
    axes.annotate(
        f"HBM {roof.hbm_rate:.0f} GB/s",
        (low_at, low_at * bandwidth),
        xytext=(6, -2),
        textcoords="offset points",
        fontsize=8,
        color="#1f5fa8",
        rotation=0,
        va="top",
    )
    reached = flops / (report.estimate.program_order * 1e6)
    listed = flops / (report.estimate.list_scheduled * 1e6)
    bound = max(report.hbm, report.pe)
    limit = flops / (bound * 1e6) if bound else reached
    axes.plot([intensity, intensity], [reached, limit], color="#c2410c", linewidth=1, linestyle=":")
    axes.plot(intensity, listed, "o", mfc="white", mec="#c2410c", label="list-scheduled")
    axes.plot(intensity, reached, "o", color="#c2410c", label="program order")
    axes.annotate(
        f"{report.kernel}: {report.estimate.program_order:.1f} us, "
        f"{report.estimate.program_order / bound:.2f} x its roofline"
        if bound
        else f"{report.kernel}: {report.estimate.program_order:.1f} us",
        (intensity, reached),
        xytext=(9, -4),
        textcoords="offset points",
        fontsize=9,
        color="#7c2d12",
        va="top",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    known = bool(report.contract.matmul_flops)
    axes.set_xlabel(
        "FLOPs of the contract per HBM byte" if known else "FLOPs unknown: one per HBM byte assumed"
    )
    axes.set_ylabel("TFLOPS")
    cores = "" if report.lnc == 1 else f", {report.lnc} cores"
    axes.set_title(
        f"{report.kernel} on {report.target}{cores} (estimated, {report.model})", fontsize=10
    )
    axes.grid(True, which="major", color="#e3e7eb", linewidth=0.6)
    axes.legend(loc="lower right", fontsize=8, frameon=False)
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()
