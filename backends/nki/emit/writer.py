"""Lines of Python with indentation, wrapped at 120 columns, with origin comments.

An origin comment (`# gdn_tkg.gdn:21: decay = ...`) is written when the `.gdn` line that the next
statement came from is not the one before, and never twice in a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import define, field

from gdsl.source import Span

WIDTH = 120
INDENT = "    "
_CALL = re.compile(r"[\w\])]$")
"""What stands before the parenthesis of a call."""


def split_arguments(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


@define
class Writer:
    """Collects lines. `origins` False leaves the origin comments out."""

    origins: bool = True
    lines: list[str] = field(factory=list)
    _depth: int = 0
    _origin: tuple[str, int] | None = None

    def fits(self, text: str) -> bool:
        """Whether a line is not too wide at the current indentation."""
        return len(INDENT) * self._depth + len(text) <= WIDTH

    def line(self, text: str = "") -> None:
        """Add one line at the current indentation."""
        self.lines.append(f"{INDENT * self._depth}{text}" if text else "")

    def text(self, text: str) -> None:
        """Add several lines, each at the current indentation."""
        for line in text.split("\n"):
            self.line(line.rstrip())

    def blank(self) -> None:
        """Add an empty line, unless there is one or a block has just begun."""
        if self.lines and self.lines[-1] and not self.lines[-1].endswith(":"):
            self.lines.append("")

    def call(self, head: str, arguments: list[str]) -> None:
        """Add `head(arguments)`, one argument per line where it is too wide."""
        flat = f"{head}({', '.join(arguments)})"
        if self.fits(flat):
            self.line(flat)
            return
        self.line(f"{head}(")
        with self.indented():
            for argument in arguments:
                self._item(argument)
        self.line(")")

    def _item(self, text: str) -> None:
        """Add one item of a broken list; what is too wide is broken inside its parentheses."""
        outer = text.find("(")
        fits = len(INDENT) * self._depth + len(text) < WIDTH
        if fits or outer < 0 or _closes(text, outer) != len(text) - 1:
            self.line(f"{text},")
            return
        self.line(text[: outer + 1])
        inside = text[outer + 1 : -1]
        items = split_arguments(inside)
        listed = len(items) > 1 or inside.endswith(",") or _CALL.search(text[:outer])
        with self.indented():
            if listed:
                for item in items:
                    self._item(item)
            else:
                # A comma would make a tuple of what the parentheses hold together.
                self.line(inside)
        self.line("),")

    def names(self, names: Sequence[str], tail: str, head: str = "") -> None:
        """Add `head names tail`, in parentheses where it is too wide: `a, b = pair`."""
        flat = f"{head}{', '.join(names)}{tail}"
        if self.fits(flat):
            self.line(flat)
            return
        self.line(f"{head}(")
        with self.indented():
            for name in names:
                self.line(f"{name},")
        self.line(f"){tail}")

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Indent what is added meanwhile."""
        self._depth += 1
        yield
        self._depth -= 1

    def origin(self, span: Span | None) -> None:
        """Say where the following lines come from, if that is news."""
        if span is None or not self.origins:
            return
        place = (span.source.name.rsplit("/", 1)[-1], span.line)
        if place == self._origin:
            return
        self._origin = place
        source = " ".join(span.source.line_text(span.line).split())
        comment = f"# {place[0]}:{place[1]}: {source}"
        room = WIDTH - len(INDENT) * self._depth
        self.line(comment if len(comment) <= room else f"{comment[: room - 3]}...")

    def forget_origin(self) -> None:
        """The next origin is news again (a new function or phase)."""
        self._origin = None

    def render(self) -> str:
        """The text, ending in one newline."""
        return "\n".join(self.lines).rstrip() + "\n"


def _closes(text: str, opening: int) -> int:
    """Where a parenthesis closes that opens at `opening`; -1 for nowhere."""
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    return -1
