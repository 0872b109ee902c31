"""`gdsl trace`: the estimated timeline, for Perfetto."""

from __future__ import annotations

import argparse
import json

from gdsl import registry
from gdsl.cli import arguments, console, estimating

DESCRIPTION = """\
Write the estimated timeline of every engine and DMA ring as Chrome trace JSON; open the file at
https://ui.perfetto.dev.

  gdsl trace gdn_tkg -t trn2 --shape qwen3_next_80b -o trace.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    estimating.add_arguments(parser)
    arguments.add_output(parser, "the trace")


def run(args: argparse.Namespace) -> int:
    """Estimate and write the timeline."""
    report = estimating.estimated(args).report
    arguments.write_text(args, json.dumps(registry.profiler().chrome_trace(report)) + "\n")
    order = report.estimate.program_order
    console.say(f"{report.kernel} on {report.target}: estimated {order:.2f} us in program order")
    return 0
