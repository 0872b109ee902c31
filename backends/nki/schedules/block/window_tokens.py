"""Several tokens through the windows of a field of a team of entries of the batch.

The old window and the tokens of a channel are one line of columns. It is put together with (entry,
head) on partitions, where the window after token t is its columns t + 1, t + 2, ..., and turned
column by column to channels on partitions, where a tap is one instruction for all tokens. Two
functions of the emitted module do it, `fetch_tokens` ahead of `slide_tokens`: the transfers are in
`window_tokens_moved`, the filter is in `window_tokens_filtered`, what both see on chip is here.
"""

from __future__ import annotations

from attrs import frozen

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import F32, U8, Element, Pattern, Space, Tile, View, dtype_of
from backends.nki.program.numbers import ZERO, Name, Number
from backends.nki.schedules.block.row_chunks import CHUNK, ROWS, fetched
from backends.nki.schedules.block.window_places import COLUMNS, WIDE

TEAM, TOKENS = Name("team"), Name("tokens")
"""The first entry of the team, and tokens of each."""
PARAMETERS = frozenset({"token", "window", "windows_sb", "tokens_sb", "ends_sb", "places_sb"})
"""Names that no local of these functions may take."""


@frozen
class TokensStep:
    """What differs between kernels; each combination is one function of the module."""

    before: int
    """Column of the line that tap 0 of token 0 weighs."""
    rounded: Element | None
    """What tokens are rounded to; None where they come in that dtype."""
    element: Element
    """Of the window."""
    line: Element
    """Of the window and the tokens side by side."""
    optional: bool
    """Whether the window may be left out."""
    indexed: int | None
    """The dimension of the window tensor that a number on the device is for: the slot of a pool, or
    how many tokens were kept."""
    slots: bool
    """Whether that is a pool: no transfer for a number outside."""
    lengths: bool
    """Whether sequences may end early."""
    shows: bool
    """Whether the window after each token is stored."""
    stored: bool
    """Whether the window after the last token is stored."""


@frozen
class TokenRows:
    """Up to 128 (entry, head) on partitions while a function of a form is written."""

    form: TokensStep
    block: Block

    @property
    def run(self) -> Number:
        """Elements of the window of a head."""
        return WIDE * COLUMNS

    @property
    def windows(self) -> View:
        """The old windows of all rows, as they were fetched."""
        return fetched("windows_sb", self.form.element)

    @property
    def tokens(self) -> View:
        """The tokens of all rows, as they were fetched."""
        return fetched("tokens_sb", element_of("token"))

    @property
    def ends(self) -> View:
        """Where the sequence of each row ends."""
        return fetched("ends_sb", element_of("lengths"))

    def mine(self, view: View, width: Number) -> View:
        """Return what was fetched for the rows at hand, `width` elements each."""
        return part(view, (ZERO, ROWS), (CHUNK * width, width))

    def alive(self, steps: tuple[tuple[Number, Number], ...], token: Number) -> Pattern:
        """Return which tokens lie before the end: [rows, *steps] from a token on."""
        marks = Tile("alive_sb", (ROWS, TOKENS), U8, Space.SBUF)
        return Pattern(marks, ((TOKENS, ROWS), *steps), token)


def element_of(parameter: str) -> Element:
    """Return the element type of a parameter."""
    return dtype_of(parameter, F32.bytes)
