"""Public kernels that have no test suite of their own that can run here: cases and references."""

from __future__ import annotations

from pathlib import Path

from public_report import Row


def run_cases(folder: Path, expression: str, seconds: int) -> list[Row]:
    """Run every case whose file the folder holds."""
    return []
