"""A command's parser: argparse with our exit codes, and what it lets pass in silence refused."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from gdsl.cli import console
from gdsl.errors import UsageError

USAGE = 2
READ = ("file", "files", "left", "right", "inputs")
"""Arguments that name what a command reads."""
WRITTEN = ("output", "html", "roofline", "trace")
"""Options that name a file to write."""


class Parser(argparse.ArgumentParser):
    """Abbreviations are off; an option with one value has one value."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.register("action", None, _Once)
        self.register("action", "store", _Once)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line and exit."""
        console.say(f"{self.prog}: {message}")
        console.say(f"type `{self.prog} --help` for the options")
        raise SystemExit(USAGE)


class _Once(argparse.Action):
    """Store a value; a second one that is another is an error, never the winner."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        given: dict[str, Any] = namespace.__dict__.setdefault("given", {})
        if option_string is not None and given.setdefault(self.dest, values) != values:
            first = given[self.dest]
            parser.error(f"{option_string} is given twice, as {first} and as {values}")
        setattr(namespace, self.dest, values)


def check_files(args: argparse.Namespace) -> None:
    """Raise UsageError where what will be written cannot be, before any work is done for it.

    A file that the command reads is never written over.
    """
    read = [name for option in READ for name in _names(getattr(args, option, None))]
    for option in WRITTEN:
        name = getattr(args, option, None)
        if not isinstance(name, str) or name == "-":
            continue
        path = Path(os.path.realpath(name))
        if path.is_dir():
            raise UsageError(f"cannot write `{name}`: is a directory")
        if not path.parent.is_dir():
            raise UsageError(f"cannot write `{name}`: there is no folder `{path.parent}`")
        for other in read:
            if path.exists() and _is_file(other, path):
                raise UsageError(f"`{name}` is what this command reads; write to another file")


def _names(value: str | Sequence[str] | None) -> Sequence[str]:
    return (value,) if isinstance(value, str) else value or ()


def _is_file(name: str, path: Path) -> bool:
    """Whether FILE (a path, or path:KERNEL) is that file."""
    paths = (Path(name), Path(name.rpartition(":")[0] or name))
    return any(p.exists() and p.samefile(path) for p in paths)
