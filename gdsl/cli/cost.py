"""`gdsl cost`: estimated time, what bounds it, and where it goes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from gdsl import registry
from gdsl.cli import arguments, estimating
from gdsl.errors import UsageError
from gdsl.files import write_atomically

DESCRIPTION = """\
Estimate the time of a kernel on a machine. Estimated, not measured: the model's assumptions and its
errors against published timings are in the README.

  gdsl cost gdn_tkg -t trn2 --shape qwen3_next_80b --lnc 2
  gdsl cost kernel.py:add --arg x=bf16[128,512] --arg y=bf16[128,512] --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    estimating.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--compare", metavar="OLD.json", help="beside an earlier --json report")
    parser.add_argument(
        "--sweep", action="store_true", help="re-run over the assumed constants; print the range"
    )
    parser.add_argument("--html", metavar="FILE", help="also write a self-contained page")
    parser.add_argument(
        "--roofline", metavar="FILE.svg", help="also write the roofline (needs `gdsl[plot]`)"
    )
    arguments.add_output(parser, "the report")


def run(args: argparse.Namespace) -> int:
    """Estimate and print the report."""
    old = _read(args.compare) if args.compare else None
    estimated = estimating.estimated(args, sweep=args.sweep)
    profiler = registry.profiler()
    report = estimated.report
    document = profiler.to_json(report)
    if args.html:
        page = profiler.html(report, estimated.sources)
        write_atomically(Path(args.html), page.encode())
    if args.roofline:
        write_atomically(Path(args.roofline), profiler.roofline_svg(report).encode())
    if args.json:
        text = json.dumps(document, indent=2) + "\n"
    elif old is not None:
        text = profiler.compare(old, document)
    else:
        text = profiler.to_text(report, estimated.sources)
    arguments.write_text(args, text if text.endswith("\n") else text + "\n")
    return 0


def _read(path: str) -> dict[str, object]:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no JSON"
        raise UsageError(f"cannot read `{path}`: {reason.lower()}") from error
    if not isinstance(document, dict) or "estimated_us" not in document:
        raise UsageError(f"`{path}` is no report of `gdsl cost --json`")
    return document
