"""What is said to the user: stderr talk, diagnostics, progress, colour."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TextIO

from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import GdslError
from gdsl.options import FORCE_COLOR, NO_COLOR

_QUIET_SECONDS = 1.0
"""A progress line appears only when the work has taken this long."""
_REFRESH_SECONDS = 0.1
_LOG_SECONDS = 30.0


def say(text: str) -> None:
    """Print a line of talk to stderr."""
    print(text, file=sys.stderr)


def use_color(stream: TextIO) -> bool:
    """Whether to colour what goes to a stream: NO_COLOR, FORCE_COLOR, else only a terminal."""
    if NO_COLOR.value:
        return False
    return bool(FORCE_COLOR.value) or stream.isatty()


def print_error(error: GdslError) -> None:
    """Print an exception: its diagnostics with their source windows, or its one line."""
    if error.diagnostics:
        print_findings(error.diagnostics)
    else:
        say(f"error: {error}")


def print_findings(findings: Sequence[Diagnostic], *, as_json: bool = False) -> None:
    """Print diagnostics with their source windows, or each as a line of JSON to stdout."""
    if as_json:
        from gdsl.diagnostics.machine import to_json_lines

        print(to_json_lines(findings), end="")
    elif findings:
        from gdsl.diagnostics.text import render

        say(render(findings, color=use_color(sys.stderr)).rstrip("\n"))


class Progress:
    """What, how much, how long it will take: one line on a terminal's stderr that is rewritten.

    Where stderr is no terminal, a line of its own every half minute.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._started = time.monotonic()
        self._shown = self._started + _QUIET_SECONDS - _REFRESH_SECONDS
        self._width = 0

    def show(self, done: int, total: int, what: str) -> None:
        """Say that `done` of `total` are done and `what` is next, unless that was just said."""
        now = time.monotonic()
        terminal = self._stream.isatty()
        if now - self._shown < (_REFRESH_SECONDS if terminal else _LOG_SECONDS):
            return
        self._shown = now
        elapsed = now - self._started
        left = f", about {elapsed / done * (total - done):.0f} s left" if done else ""
        line = f"[{done}/{total}] {what}{left}"
        if terminal:
            self._write(line)
        else:
            print(line, file=self._stream, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._width:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _write(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)
