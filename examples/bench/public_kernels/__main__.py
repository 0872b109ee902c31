"""Run public NKI kernels, unmodified, in the simulator and compare them with their references.

    python -m examples.bench.public_kernels FOLDER [-k WORDS] [--all] [--cases N] [--json OUT]

FOLDER holds checkouts of public repositories, none of which are part of this project:
`nki-library` runs through its own tests (their inputs, shapes, tolerances and references; the
device behind them is replaced by the simulator), other sources through `cases.py`.
Prints one row per test: outcome, error over tolerance, instructions, seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import attrs

from backends.simulator.options import make_options
from examples.bench.public_kernels.case import run_cases
from examples.bench.public_kernels.cases import CASES
from examples.bench.public_kernels.library import run_library
from examples.bench.public_kernels.report import Row, summary, table
from examples.bench.public_kernels.settings import Settings


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path, help="directory with checkouts of public kernels")
    parser.add_argument("-k", dest="expression", default="", help="pytest expression of names")
    parser.add_argument("--all", action="store_true", help="also tests not marked fast")
    parser.add_argument("--cases", type=int, default=3, help="parameter sets per test function")
    parser.add_argument("--seconds", type=int, default=60, help="time limit of one kernel run")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=WORD", help="a choice of the simulator"
    )
    parser.add_argument("--json", type=Path, help="also write the rows here")
    return parser.parse_args()


def main() -> int:
    """Run everything found in the folder; exit 0 when nothing disagreed with its reference."""
    chosen = _arguments()
    settings = Settings(
        expression=chosen.expression,
        everything=chosen.all,
        cases=chosen.cases,
        seconds=chosen.seconds,
        options=make_options(dict(word.split("=", 1) for word in chosen.set)),
    )
    rows: list[Row] = []
    for checkout in sorted(chosen.folder.glob("*/test/utils/unit_test_framework.py")):
        rows += run_library(checkout.parents[2], settings)
    rows += run_cases(CASES, chosen.folder, settings)
    print(table(rows))
    print(summary(rows))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([attrs.asdict(row) for row in rows], indent=1) + "\n")
    return int(any(row.outcome == "differs" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
