"""`gdsl verify`: do the simulated kernel and the interpreter agree?"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence

from gdsl.cli import arguments, console
from gdsl.errors import UsageError
from gdsl.options import TARGETS
from gdsl.verification.precisions import PRECISIONS
from gdsl.verification.report import VerifyReport, to_text
from gdsl.verification.request import ALL_REGIMES, Request
from gdsl.verification.run import verify

DESCRIPTION = """\
Run the emitted NKI in the simulator and compare it with the interpreter in float64, in every regime
that applies. Without -t and --lnc: on trn2 and trn3, on one core and on two. Without --shape: the
first named shape, a prompt with few heads and tokens (its regimes bring the lengths they need), a
whole layer with few heads and hidden channels.
Chunked kernels run with each inverse that is safe, unless `--set inverse=...` names one.

  gdsl verify gdn_tkg --shape qwen3_next_80b
  gdsl verify gdn_cte gdn_cte_wide_beta -j 4
  gdsl verify gdn_cte --regimes strong-then-weak,split -t trn2 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("files", metavar="FILE", nargs="+", help=arguments.FILE_HELP)
    parser.add_argument("-t", "--target", metavar="|".join(TARGETS), help="one machine only")
    arguments.add_lnc(parser, "one number of cores only")
    arguments.add_shape(parser)
    arguments.add_set(parser)
    parser.add_argument(
        "--regimes",
        metavar="all|a,b",
        default="all",
        help=f"which kinds of inputs: {', '.join(ALL_REGIMES)}",
    )
    parser.add_argument(
        "--precision",
        metavar="a,b",
        help=f"of {', '.join(PRECISIONS)} (default: all that apply)",
    )
    arguments.add_seed(parser, "the inputs")
    parser.add_argument(
        "-j", "--jobs", type=int, metavar="N", help="processes (default: one for each core)"
    )
    parser.add_argument(
        "--json", action="store_true", help="as JSON: an object, a list for several kernels"
    )
    arguments.add_output(parser, "the report")


def run(args: argparse.Namespace) -> int:
    """Verify and print the report."""
    names = arguments.choose(args.regimes, ALL_REGIMES, "regime", lambda: ALL_REGIMES)
    chosen = args.precision and arguments.choose(args.precision, PRECISIONS, "precision", None)
    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"`--jobs {args.jobs}`: expected 1 or more processes")
    jobs = args.jobs or _cores()
    reports = []
    for file in args.files:
        request = Request(
            arguments.define(file),
            shape=args.shape,
            targets=(arguments.target(args),) if args.target else TARGETS,
            lnc=(args.lnc,) if args.lnc else (1, 2),
            regimes=names,
            precisions=chosen,
            seed=args.seed,
            settings=arguments.settings(args),
            file=file,
        )
        progress = console.Progress()
        try:
            reports.append(verify(request, progress.show, jobs))
        finally:
            progress.clear()
    arguments.write_text(args, _as_json(reports) if args.json else "".join(map(to_text, reports)))
    return 0 if all(report.ok for report in reports) else 1


def _as_json(reports: Sequence[VerifyReport]) -> str:
    documents = [report.to_json() for report in reports]
    return json.dumps(documents if len(documents) > 1 else documents[0], indent=2) + "\n"


def _cores() -> int:
    """Cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
