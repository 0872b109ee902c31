"""Where windows and tokens of a field lie in HBM, as parameters of the functions that filter.

A function is written once for all fields of a kernel and takes these numbers from its caller.
"""

from __future__ import annotations

from attrs import frozen

from backends.nki.program.nodes import F32, Pattern, Space, Tile, Token
from backends.nki.program.numbers import ONE, Name, Number
from backends.nki.schedules.block.row_chunks import COUNT, ENTRY, HEAD, SOME

COLUMNS, TAPS, WIDE = Name("columns"), Name("taps"), Name("wide")
"""Columns of a window, taps of the filter, channels of a head."""
SKIP = Token("nisa.oob_mode.skip")


@frozen
class Place:
    """A tensor with entries and heads: where its first element is, and two strides."""

    tile: Tile
    first: Number
    step: Number
    """Elements from head to head."""
    apart: Number
    """Elements from entry to entry."""

    def runs(self, run: Number) -> Pattern:
        """Return `run` elements of each entry and head of a chunk: [some, count, run]."""
        steps = ((self.apart, SOME), (self.step, COUNT), (ONE, run))
        return Pattern(self.tile, steps, self.first + ENTRY * self.apart + HEAD * self.step)


def _place(tensor: str, prefix: str) -> Place:
    first, step, apart = (Name(f"{prefix}{name}") for name in ("first", "step", "apart"))
    return Place(Tile(tensor, (), F32, Space.ARGUMENT), first, step, apart)


WINDOW = _place("window", "")
NEW = _place("new_window", "new_")
SHOWN = _place("shown_windows", "shown_")
"""The windows after each token."""
TOKEN = _place("token", "token_")
