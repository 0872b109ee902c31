"""Rows and the table of `public_kernels.py`, and how a result is compared with its reference."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray


@frozen
class Row:
    """One kernel run."""

    kernel: str
    case: str
    target: str
    lnc: int
    outcome: str
    """ok, differs, refused (a fault of the simulator), rejected (the kernel's own assertion, as its
    test expects), unsupported (needs what no public file provides), timeout, error."""
    error: float | None = None
    """Largest error as a fraction of what the kernel's own test allows."""
    instructions: int = 0
    seconds: float = 0.0
    note: str = ""


class OutOfTime(Exception):
    """A run took longer than allowed."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise OutOfTime in the block after so many seconds."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise OutOfTime

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def relative_error(value: NDArray[Any], reference: NDArray[Any], rtol: float, atol: float) -> float:
    """Return max|value - reference| / (atol + rtol max|reference|), the vendor's comparison.

    Infinite when shapes differ or one side is not finite where the other is.
    """
    if value.shape != reference.shape:
        return float("inf")
    a, b = value.astype(np.float64), reference.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    if not (same | finite).all():
        return float("inf")
    if not finite.any():
        return 0.0
    allowed = atol + rtol * float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
    worst = float(np.abs(np.where(same, 0.0, a - b)).max(initial=0.0))
    return worst / allowed if allowed > 0 else (0.0 if worst == 0 else float("inf"))


_COLUMNS = ("kernel", "case", "target", "lnc", "outcome", "error", "instr", "seconds", "note")


def table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned text."""
    cells = [_COLUMNS] + [
        (
            row.kernel,
            row.case,
            row.target,
            str(row.lnc),
            row.outcome,
            "" if row.error is None else f"{row.error:.2g}",
            str(row.instructions or ""),
            f"{row.seconds:.1f}",
            row.note,
        )
        for row in rows
    ]
    widths = [max(len(line[i]) for line in cells) for i in range(len(_COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def summary(rows: Sequence[Row]) -> str:
    """Return how many runs and kernels ended in which way."""
    outcomes = Counter(row.outcome for row in rows)
    good = {row.kernel for row in rows if row.outcome == "ok"}
    bad = {row.kernel for row in rows if row.outcome == "differs"}
    counted = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    return f"{len(rows)} runs: {counted}; kernels within tolerance: {len(good - bad)}"
