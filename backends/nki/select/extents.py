"""What a term takes in each of the two layouts of a tile of rows.

ROWS: one row per partition, the wide axis free; KEYS: the key axis on partitions, rows free. In
either a term is a *number* (known when traced), a *column* (one value per partition, which an
instruction takes as a scalar operand) or a *tile*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from attrs import define, field

from backends.nki.program.numbers import ONE, Number
from backends.nki.select.key_tiles import KeyTiles
from backends.nki.select.layouts import Layout, Placed, Source
from backends.nki.select.terms import Leaf, Term, children


@define
class Extents:
    """Sizes of the terms of one tile of rows, what they are made from, how often each is used."""

    sizes: dict[str, Number]
    """Sizes of the wide axes."""
    key_axis: str
    rows: Number
    """Rows in the tile (at most 128)."""
    sources: Mapping[Leaf, Source | Placed]
    uses: Counter[Term] = field(factory=Counter, kw_only=True)
    tiles: int = field(default=1, kw_only=True)
    """Tiles on which keys lie."""

    @property
    def keys(self) -> KeyTiles:
        """How keys lie on partitions."""
        return KeyTiles(self.sizes[self.key_axis], self.tiles)

    def count_uses(self, roots: Iterable[Term]) -> None:
        """Note how often each term is needed, so that shared ones are computed once."""
        pending = list(roots)
        while pending:
            term = pending.pop()
            self.uses[term] += 1
            if self.uses[term] == 1:
                pending += children(term)

    def key_major(self, term: Term) -> bool:
        """Whether a term along the key axis comes from tensors that have it before the rows."""
        if isinstance(term, Leaf):
            return term.wide == self.key_axis and self.sources[term].key_major
        wide = [child for child in children(term) if child.wide == self.key_axis]
        return bool(wide) and all(self.key_major(child) for child in wide)

    def is_tile(self, term: Term, layout: Layout) -> bool:
        """Whether a term has a value per partition and free index, not just per partition.

        On several tiles of keys a vector along them has more than one column.
        """
        if layout is Layout.ROWS:
            return term.wide is not None
        return term.rows or (self.tiles > 1 and term.wide is not None)

    def width(self, term: Term, layout: Layout) -> Number:
        """Elements per partition."""
        if not self.is_tile(term, layout):
            return ONE
        if layout is Layout.KEYS:
            return self.tiles * self.rows
        return self.sizes[str(term.wide)]

    def partitions(self, layout: Layout) -> Number:
        """Partitions of a tile."""
        return self.rows if layout is Layout.ROWS else self.keys.partitions
