"""Which kernel source line is executing: a registry of kernel texts and a walk over the stack."""

from __future__ import annotations

import re
import sys
from types import CodeType, FrameType, TracebackType
from typing import NamedTuple

from gdsl.source import Source, Span

_ORIGIN = re.compile(r"#\s*(?P<file>[\w./-]+\.gdn):(?P<line>\d+)\b")
_DEFINITION = re.compile(r"\s*(def|class)\b")

_SOURCES: dict[str, Source] = {}
"""Kernel texts by the file name their code was compiled under."""
_LOCATIONS: dict[tuple[int, int], tuple[CodeType, Location]] = {}
"""Locations by code object (kept alive by the value) and instruction."""


class Location(NamedTuple):
    """A line of a kernel text."""

    file: str
    line: int
    function: str

    @property
    def span(self) -> Span | None:
        """The line's characters without indentation, or None when the text is not known."""
        source = _SOURCES.get(self.file)
        if source is None:
            return None
        start = sum(len(text) + 1 for text in source.text.split("\n")[: self.line - 1])
        text = source.line_text(self.line)
        indent = len(text) - len(text.lstrip())
        return Span(source, start + indent, start + len(text.rstrip()))

    @property
    def origin(self) -> str | None:
        """`FILE.gdn:LINE` from the nearest origin comment at or above this line, same function."""
        source = _SOURCES.get(self.file)
        if source is None:
            return None
        lines = source.text.split("\n")
        for text in reversed(lines[: self.line]):
            if found := _ORIGIN.search(text):
                return f"{found['file']}:{found['line']}"
            if _DEFINITION.match(text):
                return None
        return None


NOWHERE = Location("", 0, "")


def register(source: Source) -> None:
    """Make frames whose code was compiled under `source.name` count as kernel code."""
    _SOURCES[source.name] = source


def here(skip: int = 1) -> Location:
    """Return the innermost kernel line on the stack, or `NOWHERE`.

    `skip` is a number of innermost frames known to be the simulator's own.
    """
    frame: FrameType | None = sys._getframe(skip)
    while frame is not None:
        place = at_frame(frame)
        if place is not None:
            return place
        frame = frame.f_back
    return NOWHERE


def at_frame(frame: FrameType) -> Location | None:
    """Return the line that a frame executes, None when it is not kernel code."""
    code = frame.f_code
    key = (id(code), frame.f_lasti)
    known = _LOCATIONS.get(key)
    # Finding a line number walks the line table of the function, so it is done once.
    if known is None or known[0] is not code:
        if code.co_filename not in _SOURCES:
            return None
        place = Location(code.co_filename, frame.f_lineno, code.co_name)
        known = _LOCATIONS[key] = (code, place)
    return known[1]


def of_traceback(trace: TracebackType | None) -> Location:
    """Return the innermost kernel line of an exception's traceback, or `NOWHERE`."""
    found = NOWHERE
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename in _SOURCES:
            found = Location(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return found
