"""`gdsl lint`: would an NKI release accept this file?"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from gdsl import registry
from gdsl.cli import console
from gdsl.diagnostics.diagnostic import Severity

DESCRIPTION = """\
Check an NKI source file: the Python subset that kernels may use, and what changed between releases.

  gdsl lint gdn_tkg.py
  gdsl lint kernel.py --nki-version 0.7"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("files", metavar="FILE.py", nargs="+")
    parser.add_argument(
        "--nki-version", metavar="0.3..0.7", help="one release (default: all of them)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per finding")


def run(args: argparse.Namespace) -> int:
    """Print the findings."""
    findings = [
        finding
        for file in args.files
        for finding in registry.simulator().lint(Path(file), args.nki_version)
    ]
    if args.json:
        from gdsl.diagnostics.machine import to_json

        for finding in findings:
            print(json.dumps(to_json(finding), ensure_ascii=False))
    elif findings:
        from gdsl.diagnostics.text import render

        console.say(render(findings, color=console.use_color(sys.stderr)).rstrip("\n"))
    return 1 if any(finding.severity is Severity.ERROR for finding in findings) else 0
