"""The records of the emitted kernel and their fields: what a stage finds there and what it leaves.

`constants` is made once per kernel, `states` once per team of lanes, `gates` once per block of
chunks, a `group` for every four chunks. Slot lane * steps + step of a group's tiles is one chunk of
one lane. Tiles have tokens of the chunk on partitions unless their name ends in `_T`.
"""

from __future__ import annotations

from backends.nki.program.build import part
from backends.nki.program.nodes import F32, U8, Element, Pattern, Space, Tile, View
from backends.nki.program.numbers import ONE, ZERO, Name, Number, Numeric, number

CHUNK = Name("CHUNK")
PARTITIONS = Name("PARTITIONS")
BANK = 512
"""fp32 columns of a PSUM bank."""
QUADRANT = 32
"""Partitions that an operand can begin at multiples of."""
SUMMED = 16
"""Tokens whose log decays are summed before the exp that carries a state on, half of the rows that
a matmul can be cut to. A smaller sum is rounded less."""
LANES, STEPS, SLOTS = Name("lanes"), Name("steps"), Name("slots")
KEYS, VALUES, COLUMNS = Name("keys"), Name("values"), Name("columns")
TEAM = Name("team")
"""The lanes whose states are on chip together, as a list of their numbers."""

OPERAND = Element("query.dtype", 4)
"""The dtype of the matmul operands, that of the kernel's query: at most fp32."""

SQUARE = (CHUNK, CHUNK)
PER_KEY = (CHUNK, SLOTS * KEYS)
MATRICES = (CHUNK, SLOTS * CHUNK)
BLOCK = Name("BLOCK_ROWS")
NARROW = (CHUNK, SLOTS * BLOCK)
"""The diagonal blocks of a matrix per slot, side by side."""
PAIR = 2 * CHUNK
"""Columns of a slot's two score matrices."""
BOTH = (CHUNK, SLOTS * PAIR)
TURNED = (KEYS, SLOTS * CHUNK)

_Row = tuple[tuple[Number, ...], Element, Space]


def _rows(
    element: Element, shape: tuple[Number, ...], *names: str, space: Space = Space.SBUF
) -> dict[str, _Row]:
    return dict.fromkeys(names, (shape, element, space))


TILES: dict[str, dict[str, _Row]] = {
    "constants": {
        # 0/1 operands of sums: after[m, j] = m > j, upto[m, i] = m <= i.
        **_rows(F32, SQUARE, "after", "upto", "identity_f32"),
        # before[m, i] = m < i, for a state that is read before it decays.
        **_rows(F32, SQUARE, "before"),
        **_rows(F32, (CHUNK, PARTITIONS), "ones"),
        # 0 for i >= j and a large negative number elsewhere.
        **_rows(F32, SQUARE, "masked"),
        **_rows(OPERAND, SQUARE, "identity"),
        # -1 above the diagonal of the blocks of LEAF rows.
        **_rows(OPERAND, SQUARE, "leaves"),
        # 1 on the diagonal blocks; -1 where blocks of two rows have A^T; the identity's blocks.
        **_rows(OPERAND, SQUARE, "blocks", "twos"),
        **_rows(OPERAND, (CHUNK, BLOCK), "units"),
        **_rows(U8, SQUARE, "diagonal"),
    },
    "states": {
        # The carried states of a team, and their copy in the operands' dtype.
        **_rows(F32, (KEYS, LANES * VALUES), "high"),
        **_rows(OPERAND, (KEYS, LANES * VALUES), "low"),
    },
    "gates": {
        # One column per chunk of every lane: log decays and betas; exp(G), exp(G_last - G) and
        # exp(G_last); beta exp(G_last - G); which tokens are live.
        **_rows(F32, (CHUNK, 2 * COLUMNS), "log_and_beta"),
        **_rows(F32, (CHUNK, 2 * COLUMNS), "decays"),
        **_rows(F32, (PARTITIONS, COLUMNS), "last"),
        **_rows(F32, (CHUNK, COLUMNS), "left", "betas"),
        # exp(G) without the token's own decay.
        **_rows(F32, (CHUNK, COLUMNS), "decays_before"),
        **_rows(U8, (CHUNK, COLUMNS), "alive"),
    },
    "group": {
        **_rows(OPERAND, (CHUNK, SLOTS * VALUES), "v"),
        # k^T and q^T of a slot side by side.
        **_rows(OPERAND, (KEYS, SLOTS * PAIR), "kq_T"),
        # k^T where the first half of `kq_T` is another read vector.
        **_rows(OPERAND, (KEYS, SLOTS * PAIR), "keys_T"),
        # The vectors as they came, and the logarithm of a decay per channel.
        **_rows(OPERAND, PER_KEY, "q_sb", "k_sb", "p_sb"),
        **_rows(F32, PER_KEY, "g"),
        # q exp(G), k exp(G), beta k exp(G_last - G); exp(G_last) per channel.
        **_rows(OPERAND, PER_KEY, "q_decayed", "k_decayed", "k_left"),
        **_rows(F32, (KEYS, SLOTS), "last_factor"),
        # Where q and k have a factor per token: beta with that of the key; that of the query.
        **_rows(F32, (CHUNK, SLOTS), "scaled_betas", "q_factor"),
        # (q exp(G))^T, and W^T = -(X (k exp(G)))^T.
        **_rows(OPERAND, TURNED, "q_T", "W_T"),
        # (k exp(G))^T, and what a chunk has left to write, for a decay per channel.
        **_rows(OPERAND, TURNED, "k_T"),
        **_rows(OPERAND, (CHUNK, LANES * VALUES), "rest"),
        # Log decays up to each column; exp of the sums between two tokens.
        **_rows(F32, MATRICES, "g_upto", "decay"),
        # The same side by side: before each column's own token, and up to it.
        **_rows(F32, BOTH, "g_before_upto", "decay_pair"),
        # k_j . k_i and k_j . q_i, then A^T and P^T: columns of a slot side by side.
        **_rows(F32, BOTH, "products", space=Space.PSUM),
        **_rows(F32, BOTH, "raw_scores"),
        **_rows(OPERAND, BOTH, "scores"),
        # k and q as rows of sub-blocks of a decay per channel, and their factors.
        **_rows(OPERAND, (KEYS, SLOTS * PAIR), "rows"),
        **_rows(OPERAND, TURNED, "row_factor"),
        # The inverse so far and its transpose; the operands of its next steps.
        **_rows(OPERAND, MATRICES, "A_T", "X_T"),
        **_rows(OPERAND, NARROW, "X", "M", "corner"),
        # The same of leaves that are doubled.
        **_rows(OPERAND, MATRICES, "Y", "Y_T", "N_T", "power", "power_T", "factor"),
        # What is written, and the output of a chunk before it is scaled.
        **_rows(OPERAND, (CHUNK, LANES * VALUES), "w"),
        **_rows(F32, (CHUNK, LANES * VALUES), "output", space=Space.PSUM),
        # What is added to the states.
        **_rows(F32, (KEYS, LANES * VALUES), "update", space=Space.PSUM),
    },
}
"""Shape, element type and space of the tiles in each record, by field."""


def tile_of(record: str, field: str) -> View:
    """Return a tile of a record as a view of all of it, called like its field."""
    shape, element, space = TILES[record][field]
    return View(Tile(field, shape, element, space), shape)


def like(view: View) -> Element:
    """Return the element type of another tile."""
    tile = view.tile
    return Element(f"{tile.name}.dtype", tile.element.bytes, tile.name)


def slot_of(view: View, slot: Numeric, width: Numeric) -> View:
    """Return the columns of one slot, `width` of them."""
    return part(view, None, (number(slot) * number(width), width))


def each_slot(constant: View) -> Pattern:
    """Return a [CHUNK, CHUNK] constant, seen once per slot."""
    steps = ((CHUNK, CHUNK), (ZERO, SLOTS), (ONE, CHUNK))
    return Pattern(constant.tile, steps, ZERO)
