"""Two JSON reports side by side, and whether the difference survives the assumed numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gdsl.errors import UsageError

_SCALARS = (
    ("program order us", ("estimated_us", "program_order")),
    ("list-scheduled us", ("estimated_us", "list_scheduled")),
    ("throttled us", ("estimated_us", "throttled")),
    ("roofline hbm us", ("roofline", "hbm_us")),
    ("roofline pe us", ("roofline", "pe_us")),
    ("tensor busy us", ("engines", "tensor", "busy_us")),
    ("vector busy us", ("engines", "vector", "busy_us")),
    ("scalar busy us", ("engines", "scalar", "busy_us")),
    ("gpsimd busy us", ("engines", "gpsimd", "busy_us")),
    ("dma count", ("dma", "count")),
    ("dma bytes", ("dma", "bytes")),
    ("table loads", ("table_loads",)),
    ("instructions", ("instructions",)),
    ("SBUF bytes", ("sbuf_bytes_per_partition",)),
    ("PSUM banks", ("psum_banks",)),
)


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return a table of two reports. Raises UsageError when one is no cost report."""
    rows = [f"{'':20} {'old':>14} {'new':>14} {'new/old':>9}"]
    for label, path in _SCALARS:
        before, after = _at(old, path, "old"), _at(new, path, "new")
        ratio = f"{after / before:9.3f}" if before else f"{'-':>9}"
        rows.append(f"{label:20} {before:14,.6g} {after:14,.6g} {ratio}")
    for field in ("target", "lnc", "shape", "schedule", "bound_by"):
        if old.get(field) != new.get(field):
            rows.append(f"{field}: {_shown(old.get(field))} -> {_shown(new.get(field))}")
    rows.append(_verdict(old, new))
    return "\n".join(rows)


def _at(report: Mapping[str, Any], path: tuple[str, ...], which: str) -> float:
    value: Any = report
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            raise UsageError(
                f"the {which} file is no cost report: it has no `{'.'.join(path)}`; "
                "write one with `gdsl cost KERNEL --json`"
            )
        value = value[key]
    return float(value)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={held}" for key, held in value.items()) or "none"
    return str(value)


def _verdict(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The ranges are those of each report alone; overlapping ones decide nothing."""
    if old.get("model") != new.get("model"):
        return f"the reports come from different models ({old.get('model')}, {new.get('model')})"
    low, high = ("sensitivity", "low"), ("sensitivity", "high")
    before = _at(old, low, "old"), _at(old, high, "old")
    after = _at(new, low, "new"), _at(new, high, "new")
    if after[1] < before[0]:
        return "new is faster whatever the assumed numbers of the machine are"
    if before[1] < after[0]:
        return "new is slower whatever the assumed numbers of the machine are"
    return (
        f"the ranges over the assumed numbers overlap ({before[0]:.2f} to {before[1]:.2f}, "
        f"{after[0]:.2f} to {after[1]:.2f} us); run both with one number at a time by `--sweep`"
    )
