"""The cost model against every published timing that can be reproduced, as one table.

    python -m examples.bench.calibrate [FOLDER] [-k WORD]

FOLDER holds checkouts of the public repositories whose kernels are run as they are:
`aws-neuron-sdk` and `nki-library` (with `experimental/gdn`). Rows whose source is not there are
left out and counted. Rows that only need a described instruction stream run without FOLDER.

A row says what was published and what the model gives, in program order and, for whole programs,
list-scheduled; a real launch lies between the two. `ok`: program order is inside the bound of the
row (`list-scheduled ok`: only the other is); `between`: neither is, and the published figure lies
between the two; `miss`: the rest, with the reason that is known. Nothing is fitted here: the
machine's numbers are in `backends/isa/machine*.py` with their evidence.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from backends.cost.program import Program
from backends.isa.machine import MACHINES
from examples.bench.calibrate.measures import Total, list_scheduled_total, measure
from examples.bench.calibrate.row import UNITS, Row
from examples.bench.calibrate.rows import ROWS, SOURCES
from examples.bench.calibrate.runs import Run, SourceMissing, program


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", help="folder with public checkouts")
    parser.add_argument("-k", dest="word", default="", help="only rows that contain this text")
    return parser.parse_args()


def main() -> int:
    """Print the table; exit 0 whatever it says: misses are results."""
    chosen = _arguments()

    # Neighbouring rows share a run; traces are large, so few are kept.
    @lru_cache(maxsize=2)
    def prepared(run: Run) -> Program:
        return program(run, chosen.folder)

    print("| source | figure | published | program order | list-scheduled | ratio | |")
    print("|---|---|---:|---:|---:|---:|---|")
    missing = 0
    for row in ROWS:
        if chosen.word not in f"{row.source} {row.what}":
            continue
        try:
            print(_line(row, *_model(row, prepared)), flush=True)
        except SourceMissing:
            missing += 1
    print()
    for name, text in SOURCES.items():
        print(f"- **{name}**: {text}")
    if missing:
        print(f"\n{missing} rows left out: FOLDER has no such checkout", file=sys.stderr)
    return 0


def _model(row: Row, prepared: Callable[[Run], Program]) -> tuple[float, float | None]:
    """Return the model's figures in the row's unit; the second for whole programs only."""
    figures = [_figures(row, run, prepared) for run in (row.run, *row.over)]
    in_order = [figure for figure, _ in figures]
    listed = [figure for _, figure in figures]
    whole = isinstance(row.measure, Total)
    return _of(row, in_order), _of(row, listed) if whole else None


def _of(row: Row, figures: list[float]) -> float:
    first, *others = figures
    return first / min(others) if others else first / UNITS[row.unit]


def _figures(row: Row, run: Run, prepared: Callable[[Run], Program]) -> tuple[float, float]:
    machine = MACHINES[run.target].replaced(dict(run.numbers))
    launch = machine["launch"] if row.launch else 0.0
    figure = measure(row.measure, prepared(run), machine) + launch
    if not isinstance(row.measure, Total):
        return figure, figure
    return figure, list_scheduled_total(prepared(run), machine) + launch


def _line(row: Row, model: float, listed: float | None) -> str:
    beside = "" if listed is None else f"{listed:,.4g} {row.unit}"
    return (
        f"| {row.source} | {row.what} | {row.published:,.4g} {row.unit} "
        f"| {model:,.4g} {row.unit} | {beside} | {model / row.published:.3f} "
        f"| {_verdict(row, model, listed)} |"
    )


def _verdict(row: Row, model: float, listed: float | None) -> str:
    if _is_good(row, model):
        return "ok"
    if listed is not None:
        if _is_good(row, listed):
            return "list-scheduled ok"
        if min(listed, model) <= row.published <= max(listed, model):
            return "between"
    return f"miss: {row.why}" if row.why else "miss"


def _is_good(row: Row, figure: float) -> bool:
    if row.between is not None:
        return row.between[0] <= figure <= row.between[1]
    return abs(figure / row.published - 1) <= row.within


if __name__ == "__main__":
    sys.exit(main())
