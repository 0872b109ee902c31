"""`gdsl compile`: the NKI source of a kernel, or any level on the way to it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from gdsl import registry
from gdsl.cli import arguments, console
from gdsl.emitter import EmitOptions
from gdsl.errors import UsageError
from gdsl.pipeline import STAGES, Compilation

DESCRIPTION = """\
Write the NKI source of a kernel. The file needs nothing of gdsl.

  gdsl compile gdn_tkg -t trn2 -o gdn_tkg.py
  gdsl compile my_kernel.gdn --emit canonical
  gdsl compile gdn_tkg kda_tkg gdn_cte --adapter nki_library -o drop_in.py"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help=f"{arguments.FILE_HELP}; several with --adapter"
    )
    arguments.add_target(parser)
    arguments.add_output(parser, "the text")
    arguments.add_set(parser)
    arguments.add_fit(parser)
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
    parser.add_argument(
        "--adapter",
        metavar="NAME",
        help="write a drop-in module with another library's calls, for example nki_library",
    )


def run(args: argparse.Namespace) -> int:
    """Write the asked level, or the module of an adapter. Raises UsageError."""
    if args.nki_version is not None:
        arguments.choose(args.nki_version, registry.emitter().versions, "NKI release", None)
    options = EmitOptions(arguments.target(args), args.nki_version, origin=not args.no_origin)
    compilations = [
        arguments.define(file).compilation(options, arguments.settings(args)) for file in args.files
    ]
    for compilation in compilations:
        arguments.fits(args, compilation)
    text = _text(args, compilations, options)
    for compilation in compilations:
        console.print_findings(compilation.warnings)
    arguments.write_text(args, text)
    return 0


def _text(
    args: argparse.Namespace, compilations: Sequence[Compilation], options: EmitOptions
) -> str:
    if args.adapter is not None:
        if args.emit != "nki":
            raise UsageError(f"an adapter is NKI text; leave out `--emit {args.emit}`")
        plans = [compilation.plan for compilation in compilations]
        return registry.emitter().adapt(args.adapter, plans, options)[0].text
    if len(compilations) > 1:
        raise UsageError("several kernels share a module only with --adapter")
    return STAGES[args.emit](compilations[0])
