"""`gdsl lint`: would an NKI release accept this file?"""

from __future__ import annotations

import argparse
from pathlib import Path

from gdsl import registry
from gdsl.cli import console
from gdsl.diagnostics.diagnostic import Severity
from gdsl.errors import UsageError

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
        for finding in registry.simulator().lint(_readable(file), args.nki_version)
    ]
    console.print_findings(findings, as_json=args.json)
    return 1 if any(finding.severity is Severity.ERROR for finding in findings) else 0


def _readable(file: str) -> Path:
    """Return the path of a text. Raises UsageError."""
    path = Path(file)
    try:
        path.read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read `{file}`: {reason}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"`{file}` is not UTF-8: byte {error.start} does not fit") from error
    return path
