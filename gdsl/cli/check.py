"""`gdsl check`: everything that can be said about a text without running it."""

from __future__ import annotations

import argparse

from gdsl.cli import arguments, console
from gdsl.diagnostics.diagnostic import Diagnostic, Severity
from gdsl.emitter import EmitOptions
from gdsl.errors import CompileError
from gdsl.library import locate
from gdsl.pipeline import Definition, KernelFile

DESCRIPTION = """\
Parse, check and plan; with -t also map to the target, with --shape also see whether these sizes
are within its limits and its memory. Prints what is wrong, or the algorithm that was chosen for
each kernel and why.

  gdsl check my_kernel.gdn
  gdsl check gdn_cte --shape B=1,Hk=16,G=2,T=8192,K=128,V=128 -t trn2
  gdsl check gdn_tkg gdn_cte -t trn3 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("files", metavar="FILE", nargs="+", help=arguments.FILE_HELP)
    arguments.add_target(parser, "also check the limits of this machine")
    arguments.add_set(parser)
    arguments.add_fit(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object per finding")


def run(args: argparse.Namespace) -> int:
    """Print the findings of every file."""
    target = arguments.target(args) if args.target or args.shape else None
    failed = False
    texts: dict[str, KernelFile] = {}
    for file in args.files:
        located = locate(file)
        # Several names of one file: the text is elaborated, and warned of, once.
        first = located.source.name not in texts
        fresh = KernelFile(located.source, located.folder)
        text = texts.setdefault(located.source.name, fresh)
        findings: list[Diagnostic] = []
        try:
            findings += text.elaborated[1] if first else ()
            names = [located.kernel] if located.kernel else [k.name for k in text.module.kernels]
            if not (names or args.json):
                print(f"{file}: good, it holds no kernel")
            for name in names:
                said, lines = check(Definition(text, name), target, args)
                findings += said
                for line in () if args.json else lines:
                    print(line)
        except CompileError as error:
            findings += error.diagnostics
        console.print_findings(findings, as_json=args.json)
        failed |= any(finding.severity is Severity.ERROR for finding in findings)
    return 1 if failed else 0


def check(
    definition: Definition, target: str | None, args: argparse.Namespace
) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """Return the findings on one kernel behind the front end, and what to say without errors."""
    settings = arguments.settings(args)
    compilation = definition.compilation(EmitOptions(target or "trn2"), settings)
    name = definition.kernel.name
    try:
        plan = compilation.plan
        lines = [f"{name}: good, {plan.form} form", *(f"  {why}" for why in plan.why)]
        if target:
            program = compilation.program
            lines.append(f"  {target}: {len(program.text.splitlines())} lines of NKI")
        lines += arguments.fits(args, compilation)
    except CompileError as error:
        return error.diagnostics, ()
    return compilation.warnings, tuple(lines)
