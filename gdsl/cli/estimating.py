"""What `gdsl cost` and `gdsl trace` share: from their arguments to an estimate."""

from __future__ import annotations

import argparse

from gdsl.cli import arguments, nki_arguments
from gdsl.errors import UsageError
from gdsl.estimate import Estimated, estimate, estimate_nki
from gdsl.ir.dtypes import Dtype
from gdsl.nki_source import is_nki
from gdsl.shapes import resolve_sizes

_DTYPES = {dtype.value: dtype for dtype in (Dtype.BF16, Dtype.F32, Dtype.F16)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what says which kernel is estimated, and where."""
    parser.add_argument(
        "file", metavar="KERNEL", help=f"{arguments.FILE_HELP}; or an NKI kernel, FILE.py:KERNEL"
    )
    arguments.add_target(parser)
    arguments.add_shape(parser)
    arguments.add_lnc(parser, "number of cores (default: 1)")
    arguments.add_set(parser)
    parser.add_argument(
        "--dtype",
        choices=tuple(_DTYPES),
        default="bf16",
        help="of inputs whose dtype the caller chooses (default: bf16)",
    )
    parser.add_argument(
        "--without",
        metavar="NAME",
        action="append",
        default=[],
        help="leave out an optional argument, as `valid_len` (default: all are given)",
    )
    nki_arguments.add(parser)


def estimated(args: argparse.Namespace, *, sweep: bool = False) -> Estimated:
    """Return the estimate. Raises UsageError for arguments of the other kind of kernel."""
    target, lnc = arguments.target(args), args.lnc or 1
    if is_nki(args.file):
        if args.shape or args.set or args.without:
            raise UsageError(
                "an NKI kernel has no --shape, --set and --without; give --arg or --inputs"
            )
        given = nki_arguments.arguments(args, data=False)
        return estimate_nki(args.file, given, target=target, lnc=lnc, sweep=sweep)
    if args.arg or args.inputs:
        raise UsageError("--arg and --inputs belong to FILE.py:KERNEL; give --shape")
    definition = arguments.define(args.file)
    return estimate(
        definition,
        resolve_sizes(definition.kernel, definition.shapes, args.shape),
        target=target,
        lnc=lnc,
        settings=arguments.settings(args),
        prefer=_DTYPES[args.dtype],
        without=args.without,
        sweep=sweep,
    )
