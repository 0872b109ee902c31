"""Arguments that several commands share, declared once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gdsl.errors import UsageError
from gdsl.files import write_atomically
from gdsl.library import locate
from gdsl.options import TARGET, TARGETS, default_target
from gdsl.pipeline import Compilation, Definition, KernelFile
from gdsl.shapes import resolve_sizes
from gdsl.suggest import did_you_mean

FILE_HELP = "a library kernel's name, a path, path:KERNEL, or - for standard input"


def add_file(parser: argparse.ArgumentParser) -> None:
    """Declare FILE."""
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)


def add_target(parser: argparse.ArgumentParser, help: str = "the machine") -> None:
    """Declare -t; the value is None when it was not typed."""
    parser.add_argument(
        "-t",
        "--target",
        metavar="|".join(TARGETS),
        help=f"{help} (default: ${TARGET.name}, or {TARGETS[0]})",
    )


def add_shape(parser: argparse.ArgumentParser) -> None:
    """Declare --shape."""
    parser.add_argument(
        "--shape",
        metavar="NAME|A=1,B=2",
        help="a named shape of the file, or sizes of its axes (default: the first named shape)",
    )


def add_set(
    parser: argparse.ArgumentParser, what: str = "a schedule key, for example chunk=64"
) -> None:
    """Declare --set, which may be repeated."""
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help=f"set {what}; may be repeated",
    )


def add_lnc(parser: argparse.ArgumentParser, help: str) -> None:
    """Declare --lnc."""
    parser.add_argument("--lnc", type=int, choices=(1, 2), help=help)


def add_fit(parser: argparse.ArgumentParser) -> None:
    """Declare --shape and --lnc of a command that only asks whether such sizes fit."""
    parser.add_argument(
        "--shape",
        metavar="NAME|A=1,B=2",
        help="sizes to check against the limits and the memory of the machine",
    )
    add_lnc(parser, "one number of cores only, with --shape")


def fits(args: argparse.Namespace, compilation: Compilation) -> list[str]:
    """Check the sizes of --shape, if any, and say what they need.

    Raises CompileError when they do not fit, UsageError.
    """
    from gdsl.capacity import require_fit

    if args.shape is None:
        if args.lnc is not None:
            raise UsageError("`--lnc` belongs to the sizes that must fit; add `--shape`")
        return []
    definition = compilation.definition
    sizes = resolve_sizes(definition.kernel, definition.shapes, args.shape)
    lines = []
    for lnc in (args.lnc,) if args.lnc else (1, 2):
        need = require_fit(compilation, sizes, lnc)
        lines.append(
            f"  fits on LNC {lnc}: {need.sbuf_bytes_per_partition:,} bytes of SBUF per partition, "
            f"{need.psum_banks} PSUM banks"
        )
    return lines


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare --seed."""
    parser.add_argument("--seed", type=_seed, default=0, help=f"of {what} (default: 0)")


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"`{text}` is no seed; expected 0, 1, 2, ...")
    return int(text)


def add_output(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare -o."""
    parser.add_argument(
        "-o", "--output", metavar="OUT", help=f"where to write {what} (default: standard output)"
    )


def define(file: str) -> Definition:
    """Return what a FILE argument means."""
    located = locate(file)
    return Definition(KernelFile(located.source, located.folder), located.kernel)


def target(args: argparse.Namespace) -> str:
    """Return the target that was typed, or the default. Raises UsageError."""
    name: str = args.target or default_target()
    if name not in TARGETS:
        origin = "" if args.target else f" (from ${TARGET.name})"
        raise UsageError(
            f"there is no target `{name}`{origin}{did_you_mean(name, TARGETS)}; "
            f"targets: {', '.join(TARGETS)}"
        )
    return name


def settings(args: argparse.Namespace) -> dict[str, str]:
    """Return the schedule keys of --set. Raises UsageError."""
    found: dict[str, str] = {}
    for item in args.set:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not (key and equals and value):
            raise UsageError(f"`--set {item}`: expected KEY=VALUE, for example `--set chunk=64`")
        if found.get(key, value) != value:
            raise UsageError(f"`--set {key}` is given twice, as {found[key]} and as {value}")
        found[key] = value
    return found


def choose(
    text: str, known: Sequence[str], what: str, everything: Callable[[], Sequence[str]] | None
) -> tuple[str, ...]:
    """Return the names of a comma-separated list, `all` for everything. Raises UsageError."""
    if text == "all" and everything is not None:
        return tuple(everything())
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in known:
            raise UsageError(
                f"there is no {what} `{name}`{did_you_mean(name, known)}; known: {', '.join(known)}"
            )
    if not names:
        raise UsageError(f"no {what} is named; known: {', '.join(known)}")
    return names


def write_text(args: argparse.Namespace, text: str) -> None:
    """Write the product to -o, or to standard output."""
    if args.output in (None, "-"):
        sys.stdout.write(text)
    else:
        write_atomically(Path(args.output), text.encode())
