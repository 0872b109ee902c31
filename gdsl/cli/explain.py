"""`gdsl explain`: the long text of a diagnostic's or a simulator fault's code."""

from __future__ import annotations

import argparse

from gdsl import registry
from gdsl.diagnostics.codes import CODES
from gdsl.diagnostics.explain import explain
from gdsl.errors import UsageError
from gdsl.suggest import did_you_mean

DESCRIPTION = """\
Explain a diagnostic code: a program that fails, why, and the repair. Without a code, list them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("code", metavar="CODE", nargs="?", help="for example E0302")


def run(args: argparse.Namespace) -> int:
    """Print the page, or the list."""
    codes = {**CODES, **registry.simulator().fault_codes()}
    if args.code is None:
        for code, title in codes.items():
            print(f"{code}  {title}")
        return 0
    code = args.code.upper()
    page = explain(code) if code in CODES else registry.simulator().explain(code)
    if page is None:
        raise UsageError(
            f"there is no code `{args.code}`{did_you_mean(code, codes)}; `gdsl explain` lists them"
        )
    print(page.rstrip())
    return 0
