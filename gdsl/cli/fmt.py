"""`gdsl fmt`: a `.gdn` file in the one canonical layout."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from gdsl.cli import console
from gdsl.errors import UsageError
from gdsl.files import write_atomically
from gdsl.library import locate
from gdsl.source import Source

DESCRIPTION = """\
Lay out `.gdn` files in the one canonical way, in place. Comments survive.

  gdsl fmt my_kernel.gdn
  gdsl fmt --check kernels/*.gdn
  gdsl fmt - < my_kernel.gdn"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="paths, or - for standard input")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a file would change"
    )
    parser.add_argument("--diff", action="store_true", help="write nothing; show what would change")


def run(args: argparse.Namespace) -> int:
    """Format every file."""
    changed = False
    for file in args.files:
        source = _source(file)
        changed |= _format(file, source, args)
    return 1 if changed and (args.check or args.diff) else 0


def _source(file: str) -> Source:
    if file != "-" and not Path(file).exists():
        raise UsageError(f"there is no file `{file}`; `gdsl fmt` takes paths, or -")
    return locate(file if file == "-" or file.endswith(".gdn") else f"./{file}").source


def _format(file: str, source: Source, args: argparse.Namespace) -> bool:
    """Format one text; return whether its layout was another."""
    from gdsl.syntax.format import format_source

    text = format_source(source)
    changed = text != source.text
    if args.diff:
        before, after = source.text.splitlines(True), text.splitlines(True)
        sys.stdout.writelines(difflib.unified_diff(before, after, file, file))
    elif args.check:
        if changed:
            console.say(f"would change {file}")
    elif file == "-":
        sys.stdout.write(text)
    elif changed:
        write_atomically(Path(file), text.encode())
        console.say(f"changed {file}")
    return changed
