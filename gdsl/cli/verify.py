"""`gdsl verify`: do the simulated kernel and the interpreter agree?"""

from __future__ import annotations

import argparse
import json

from gdsl.cli import arguments, console
from gdsl.options import TARGETS
from gdsl.verification.precisions import PRECISIONS
from gdsl.verification.report import to_text
from gdsl.verification.run import ALL_REGIMES, Request, verify

DESCRIPTION = """\
Run the emitted NKI in the simulator and compare it with the interpreter in float64, in every regime
that applies. Without -t and --lnc: on trn2 and trn3, on one core and on two.

  gdsl verify gdn_tkg --shape qwen3_next_80b
  gdsl verify gdn_cte --regimes strong-then-weak,split -t trn2 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    arguments.add_file(parser)
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
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (default: 0)")
    parser.add_argument("--json", action="store_true", help="as JSON")
    arguments.add_output(parser, "the report")


def run(args: argparse.Namespace) -> int:
    """Verify and print the report."""
    names = arguments.choose(args.regimes, ALL_REGIMES, "regime", lambda: ALL_REGIMES)
    chosen = args.precision and arguments.choose(args.precision, PRECISIONS, "precision", None)
    request = Request(
        arguments.define(args.file),
        shape=args.shape,
        targets=(arguments.target(args),) if args.target else TARGETS,
        lnc=(args.lnc,) if args.lnc else (1, 2),
        regimes=names,
        precisions=chosen,
        seed=args.seed,
        settings=arguments.settings(args),
        file=args.file,
    )
    progress = console.Progress()
    try:
        report = verify(request, progress.show)
    finally:
        progress.clear()
    text = json.dumps(report.to_json(), indent=2) + "\n" if args.json else to_text(report)
    arguments.write_text(args, text)
    return 0 if report.ok else 1
