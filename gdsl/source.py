"""Source texts and spans: where in a text something stands."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from attrs import define, field, frozen


@define(frozen=True, slots=False, eq=False)
class Source:
    """A named text. `name` is what the user typed: a path, `<stdin>` or a library kernel's file."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")]

    def line_column(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column of a character offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """Return the text of a 1-based line without its newline."""
        lines = self.text.split("\n")
        return lines[line - 1] if 0 < line <= len(lines) else ""


@frozen
class Span:
    """Characters [start, end) of a source."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        """1-based line of the first character."""
        return self.source.line_column(self.start)[0]

    @property
    def column(self) -> int:
        """1-based column of the first character."""
        return self.source.line_column(self.start)[1]

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.source.text[self.start : self.end]
