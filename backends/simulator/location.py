"""Which kernel source line is executing: a registry of kernel texts and a walk over the stack."""

from __future__ import annotations

import re
import sys
from types import CodeType, FrameType, TracebackType

from attrs import frozen

from gdsl.source import Source, Span

_ORIGIN = re.compile(r"#\s*(?P<file>[\w./-]+\.gdn):(?P<line>\d+)\b")
_DEFINITION = re.compile(r"\s*(def|class)\b")

_SOURCES: dict[str, Source] = {}
_KERNEL_CODE: dict[CodeType, bool] = {}


@frozen
class Location:
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


def is_kernel_code(code: CodeType) -> bool:
    """Whether a code object belongs to a registered kernel text."""
    known = _KERNEL_CODE.get(code)
    if known is None:
        known = _KERNEL_CODE[code] = code.co_filename in _SOURCES
    return known


def here() -> Location:
    """Return the innermost kernel line on the stack, or `NOWHERE`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_kernel_code(frame.f_code):
            return Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return NOWHERE


def of_traceback(trace: TracebackType | None) -> Location:
    """Return the innermost kernel line of an exception's traceback, or `NOWHERE`."""
    found = NOWHERE
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_kernel_code(code):
            found = Location(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return found
