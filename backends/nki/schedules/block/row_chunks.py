"""Going through the (entry, head) of a field, 128 at once: what lies on partitions is a *chunk*.

Entries share a chunk where all their heads fit, heads are cut where they do not. What is fetched
for a field lies side by side, a run per row and chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from backends.nki.program.build import Block
from backends.nki.program.nodes import Element, Space, Tile, View
from backends.nki.program.numbers import ONE, ZERO, Extent, Largest, Literal, Name, Number, smallest
from backends.nki.select.constants import PARTITIONS

ENTRIES, HEADS = Name("entries"), Name("heads")
ENTRY, HEAD = Name("entry"), Name("head")
SOME, COUNT, ROWS = Name("some"), Name("count"), Name("rows")
"""Entries of a chunk, heads of each, and both together."""
CHUNK = Name("chunk")


def fetched_shape(entries: Number, heads: Number, run: Number) -> tuple[Number, Number]:
    """Return the shape of all runs of a field on chip."""
    per = Largest(ONE, Literal(PARTITIONS) // heads)
    chunks = (entries + per - 1) // per * ((heads + (PARTITIONS - 1)) // PARTITIONS)
    return Literal(PARTITIONS), chunks * run


def fetched(name: str, element: Element) -> View:
    """Return the runs of a field as a function's parameter."""
    shape = (Literal(PARTITIONS), Extent(name, 1))
    return View(Tile(name, shape, element, Space.SBUF), shape)


@contextmanager
def chunks(block: Block) -> Iterator[Block]:
    """Add the loops; yields the body, in which the names above are bound."""
    per = block.let_named("per", Largest(ONE, Literal(PARTITIONS) // HEADS))
    with block.loop("entry", ZERO, ENTRIES, per, exact=True) as (outer, entry):
        outer.let_named("some", smallest(per, ENTRIES - entry))
        with outer.loop("head", ZERO, HEADS, PARTITIONS, exact=True) as (body, head):
            body.let_named("count", smallest(PARTITIONS, HEADS - head))
            body.let_named("rows", SOME * COUNT)
            beside = (HEADS + (PARTITIONS - 1)) // PARTITIONS
            body.let_named("chunk", entry // per * beside + head // PARTITIONS)
            yield body
