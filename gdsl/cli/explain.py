"""`gdsl explain`: the long text of a diagnostic code."""

from __future__ import annotations

import argparse

from gdsl.diagnostics.codes import CODES
from gdsl.errors import UsageError
from gdsl.suggest import did_you_mean

DESCRIPTION = """\
Explain a diagnostic code: a program that fails, why, and the repair. Without a code, list them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("code", metavar="CODE", nargs="?", help="for example E0302")


def run(args: argparse.Namespace) -> int:
    """Print the page, or the list."""
    from gdsl.diagnostics.explain import explain

    if args.code is None:
        for code, title in CODES.items():
            print(f"{code}  {title}")
        return 0
    page = explain(args.code.upper())
    if page is None:
        raise UsageError(
            f"there is no code `{args.code}`{did_you_mean(args.code.upper(), CODES)}; "
            "`gdsl explain` lists them"
        )
    print(page.rstrip())
    return 0
