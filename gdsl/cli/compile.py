"""`gdsl compile`: the NKI source of a kernel, or any level on the way to it."""

from __future__ import annotations

import argparse

from gdsl.cli import arguments
from gdsl.emitter import EmitOptions
from gdsl.pipeline import STAGES, Compilation

DESCRIPTION = """\
Write the NKI source of a kernel. The file needs nothing of gdsl.

  gdsl compile gdn_tkg -t trn2 -o gdn_tkg.py
  gdsl compile my_kernel.gdn --emit canonical"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    arguments.add_file(parser)
    arguments.add_target(parser)
    arguments.add_output(parser, "the text")
    arguments.add_set(parser)
    parser.add_argument(
        "--emit",
        choices=tuple(STAGES),
        default="nki",
        help="the level to write (default: nki)",
    )
    parser.add_argument(
        "--nki-version",
        metavar="0.3..0.7",
        help="an NKI release to write for (default: what all of 0.3 to 0.7 accept)",
    )
    parser.add_argument(
        "--no-origin", action="store_true", help="leave out the comments that name .gdn lines"
    )


def run(args: argparse.Namespace) -> int:
    """Write the asked level."""
    options = EmitOptions(arguments.target(args), args.nki_version, origin=not args.no_origin)
    compilation = Compilation(arguments.define(args.file), options, arguments.settings(args))
    arguments.write_text(args, STAGES[args.emit](compilation))
    return 0
