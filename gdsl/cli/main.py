"""`gdsl COMMAND ...`: finds the command, runs it, turns every failure into an exit code.

0: good. 1: the program has findings, or the witnesses disagree. 2: usage, a missing backend, or our
bug. The product goes to stdout, everything else to stderr.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from gdsl.cli import console
from gdsl.cli.parser import Parser, check_files
from gdsl.errors import BackendUnavailable, GdslError, UsageError
from gdsl.suggest import did_you_mean
from gdsl.version import __version__

COMMANDS: dict[str, str] = {
    "check": "parse, check and plan; say what is wrong",
    "compile": "write the NKI source of a kernel",
    "run": "run a kernel on arrays",
    "verify": "compare the simulated kernel with the interpreter in every regime",
    "cost": "estimate the time of a kernel and say what bounds it",
    "trace": "write the estimated timeline for Perfetto",
    "simulate": "run any NKI kernel on numpy arrays",
    "lint": "check an NKI file against the NKI releases",
    "fmt": "lay out a `.gdn` file in the one canonical way",
    "diff": "find the first place where two recorded runs differ",
    "explain": "explain a diagnostic code",
    "kernels": "list the kernels that ship",
    "doctor": "say what is installed and what can run",
}
"""Command -> its line in `gdsl --help`; the module of the same name implements it."""

GOOD, FINDINGS, FAILURE = 0, 1, 2
OURS = ("gdsl", "backends", "kernels_dsl")
"""Top-level packages that come together: a module that lacks in one is our bug."""


class Command(Protocol):
    """What a command's module holds."""

    DESCRIPTION: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it and return the exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except GdslError as error:
        console.print_error(error)
        return FAILURE if isinstance(error, UsageError | BackendUnavailable) else FINDINGS
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    except KeyboardInterrupt:
        console.say("interrupted")
        return 130
    except MemoryError as error:
        console.say(f"error: not enough memory here: {str(error).lower() or 'allocation failed'}")
        console.say("give smaller sizes; `gdsl cost` and `gdsl trace` need no memory for the data")
        return FAILURE
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package in OURS:
            return _internal_error(error, arguments)
        console.say(f"error: the package `{package}` is not installed for {sys.executable}")
        console.say("gdsl needs it: type `pip install gdsl`, or `pip install -e .` in a clone")
        return FAILURE
    except Exception as error:
        if _interrupted(error):
            console.say("interrupted")
            return 130
        return _internal_error(error, arguments)


def _open_streams() -> None:
    """A shell may have closed ours (`>&-`); what goes there is lost, as asked."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, io.StringIO())


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: a package being imported reports it as its own."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _internal_error(error: Exception, arguments: Sequence[str]) -> int:
    from gdsl.cli.internal import report

    report(error, arguments)
    return FAILURE


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help", ""):
        print(_overview(), end="")
        return GOOD if first else FAILURE
    if first in ("-V", "--version"):
        print(f"gdsl {__version__}")
        return GOOD
    if first not in COMMANDS:
        console.say(f"gdsl: there is no command `{first}`{did_you_mean(first, COMMANDS)}")
        console.say("type `gdsl --help` for the list")
        return FAILURE
    command = cast(Command, import_module(f"gdsl.cli.{first}"))
    parser = Parser(prog=f"gdsl {first}", description=command.DESCRIPTION)
    command.add_arguments(parser)
    args = parser.parse_args(arguments[1:])
    check_files(args)
    return command.run(args)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [
        "gdsl: declare a delta-rule recurrence, get NKI kernels and the evidence that they agree",
        "",
        "usage: gdsl COMMAND ...        gdsl COMMAND --help        gdsl --version",
        "",
        *(f"  {name:<{width}}  {line}" for name, line in COMMANDS.items()),
        "",
    ]
    return "\n".join(lines)
