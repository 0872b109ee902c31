"""`gdsl diff`: the first place where two recorded runs differ."""

from __future__ import annotations

import argparse

from gdsl.arrays import load_npz
from gdsl.cli import console
from gdsl.debug.record import first_difference

DESCRIPTION = """\
Compare two .npz files of `gdsl run --trace` (or any two with the same names) and print the first
value that differs, in the order they were computed: name, token, head.

  gdsl run k.gdn --inputs in.npz --trace a.npz
  gdsl run k.gdn --inputs in.npz --trace b.npz --precision float64
  gdsl diff a.npz b.npz --rtol 1e-5"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("left", metavar="A.npz")
    parser.add_argument("right", metavar="B.npz")
    parser.add_argument(
        "--rtol",
        type=float,
        default=0.0,
        help="how far two values may lie apart, in units of the entry's largest (default: 0)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the first difference; exit 1 when there is one."""
    left, right = load_npz(args.left), load_npz(args.right)
    found = first_difference(left, right, args.rtol)
    for file, here, there in ((args.left, left, right), (args.right, right, left)):
        if alone := [name for name in here if name not in there]:
            console.say(f"not compared, only in {file}: {', '.join(alone)}")
    if found is None:
        print("no difference")
        return 0
    place = ", ".join(f"{axis} {index}" for axis, index in found.at.items())
    print(f"{found.name}: first difference at {place or 'its one value'}")
    print(f"  {args.left}: {found.left:.9g}")
    print(f"  {args.right}: {found.right:.9g}")
    print(f"  {found.count} of {found.size} values of `{found.name}` differ")
    return 1
