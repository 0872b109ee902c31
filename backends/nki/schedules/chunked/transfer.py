"""Transfers between HBM and tiles in which each lane or chunk has a slot of its own.

`offsets` is a list of where the slots begin in the tensor. They travel together where two distances
describe them all: of heads within rows of the batch, of value heads that read one key head twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import (
    F32,
    I32,
    Function,
    Operand,
    Pattern,
    Space,
    Tile,
    Unpack,
    View,
)
from backends.nki.program.numbers import (
    NONE,
    ONE,
    ZERO,
    Choice,
    Extent,
    Name,
    Number,
    binary,
    smallest,
)
from backends.nki.program.structures import Call, Item, Length, tupled
from backends.nki.schedules.chunked.records import CHUNK, PAIR
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.state_moves import SKIP

TENSOR = Tile("tensor", (), F32, Space.ARGUMENT)
OFFSETS = Name("offsets")
MANY, NEAR, FAR = Name("many"), Name("near"), Name("far")
"""Neighbours at one distance, that distance, and that from the first of them to the next first."""
STEP, INNER, TOKENS, WIDTH = Name("step"), Name("inner"), Name("tokens"), Name("width")
"""Elements between tokens, between the elements of a row; tokens of a slot; elements of a row."""

NUMBER = View(Tile("number", (ONE, ONE), I32, Space.SBUF), (ONE, ONE))
"""Which entry of the tensor is meant, known when the kernel runs."""

Steps = tuple[tuple[Number, Number], ...]
"""An access pattern: (step, count) of each dimension."""


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the transfers; one of rows as they are, or turned, there and back; one of gates."""
    yield _spacings()
    yield _rows(
        "load_rows",
        "dst",
        "Rows of `width` elements, token by token, one slot per offset; one transfer where two\n"
        "distances describe where they begin.",
    )
    yield _turned()
    yield _rows("store_rows", "src", "The way back of `load_rows`.")
    yield from _entries(schedule)
    yield _gate()
    if any(leaf.wide is None for leaf in schedule.scan.formulas.gates.inputs):
        yield _per_lane()


def offset(position: Number) -> Number:
    """Return where a slot begins."""
    return Item(OFFSETS, position)


def _whole(name: str) -> View:
    """A parameter of any size."""
    shape = (Extent(name, 0), Extent(name, 1))
    return View(Tile(name, shape, F32, Space.SBUF), shape)


def _spacings() -> Function:
    stage = Stage(
        "spacings_of",
        ("offsets",),
        "How many neighbours are evenly spaced, their distance, and that from the first of them\n"
        "to the first of the next as many; None when that does not describe all offsets, or one\n"
        "leads back.",
    )
    block, count = stage.block, Length(OFFSETS)
    several = compare(">", count, 1)
    near = block.let_named("near", Choice(several, offset(ONE) - offset(ZERO), ZERO))
    many = block.let_named("many", count)
    with block.loop("position", 1, count) as (body, position):
        apart = compare("!=", offset(position) - offset(position - 1), near)
        with body.when(binary("and", compare("<", position, many), apart)) as first:
            first.let_named("many", position)
    inside = compare("<", many, count)
    far = block.let_named("far", Choice(inside, offset(many) - offset(ZERO), ZERO))
    block.let_named("spacings", tupled(many, near, far))
    with block.loop("position", 0, count) as (body, position):
        place = offset(ZERO) + position // many * far + position % many * near
        with body.when(compare("!=", offset(position), place)) as elsewhere:
            elsewhere.let_named("spacings", NONE)
    back = compare("<", smallest(near, far), 0)
    with block.when(binary("or", compare("!=", count % many, 0), back)) as rest:
        rest.let_named("spacings", NONE)
    return stage.done("spacings")


@contextmanager
def _together(block: Block, only: Number | None = None) -> Iterator[tuple[Block, Block, Number]]:
    """One block for offsets that two distances describe, and one for each slot of others.

    `only`: what else has to hold for slots to travel together.
    """
    slots = block.let_named("slots", Length(OFFSETS))
    block.let_named("spacings", Call("spacings_of", (OFFSETS,)))
    together, apart = block.inner(), block.inner()
    together.statements.append(Unpack(("many", "near", "far"), "spacings"))
    with apart.loop("slot", 0, slots) as (each, slot):
        yield together, each, slot
    spaced = compare("!=", Name("spacings"), NONE)
    block.decide(spaced if only is None else binary("and", only, spaced), together, apart)


def _spaced(near: Number, far: Number, slots: Number) -> Steps:
    """All slots of a tensor as two dimensions of a pattern."""
    return (far, slots // MANY), (near, MANY)


def _rows(name: str, tile: str, doc: str, indexed_dim: int | None = None) -> Function:
    """Rows to a tile called `dst`, or from one called `src`.

    `indexed_dim`: those of the entry `number` along this dimension, where there is one.
    """
    parameters = (tile, "tensor") if tile == "dst" else ("tensor", tile)
    number = () if indexed_dim is None else ("number",)
    row = ("step", "inner", "tokens", "width")
    stage = Stage(name, (*parameters, "offsets", *number, *row), doc)
    chip = _whole(tile)

    def transfer(block: Block, held: View, steps: Steps, first: Number) -> None:
        options: dict[str, Operand] = {}
        rows = Pattern(TENSOR, steps, first)
        if indexed_dim is not None:
            rows, options = Pattern(TENSOR, steps, first, NUMBER, indexed_dim), {"oob_mode": SKIP}
        dst, src = (held, rows) if tile == "dst" else (rows, held)
        block.do("dma_copy", dst=dst, src=src, **options)

    with _together(stage.block) as (together, each, slot):
        steps = ((STEP, TOKENS), *_spaced(NEAR, FAR, Name("slots")), (INNER, WIDTH))
        every = part(chip, (ZERO, TOKENS), (ZERO, Name("slots") * WIDTH))
        transfer(together, every, steps, offset(ZERO))
        one = part(chip, (ZERO, TOKENS), (slot * WIDTH, WIDTH))
        transfer(each, one, ((STEP, TOKENS), (INNER, WIDTH)), offset(slot))
    return stage.done()


def _entries(schedule: Schedule) -> Iterator[Function]:
    """Yield the transfers of what lies in an entry that is known when the kernel runs."""
    read, write = schedule.entries.read, schedule.entries.write
    if read is not None:
        yield _rows(
            "load_entry",
            "dst",
            "`load_rows` from entry `number` of the tensor; nothing where there is no such entry.",
            read.dim,
        )
    if write is not None:
        yield _rows("store_entry", "src", "The way back of `load_entry`.", write.dim)


def _turned() -> Function:
    stage = Stage(
        "load_turned",
        ("dst", "first", "tensor", "offsets", "step", "inner", "tokens", "width"),
        "The same rows transposed, tokens along the free axis: slot s at column\n"
        "`first` + s * 2 * CHUNK.",
    )
    dst, first, row = _whole("dst"), Name("first"), (INNER, WIDTH)
    columns = stage.block.let_named("columns", Extent("dst", 1))
    with _together(stage.block) as (together, each, slot):
        slots = Name("slots")
        placed = _spaced(PAIR, MANY * PAIR, slots)
        together.do(
            "dma_transpose",
            dst=Pattern(dst.tile, ((columns, WIDTH), *placed, (ONE, TOKENS)), first),
            src=Pattern(TENSOR, ((STEP, TOKENS), *_spaced(NEAR, FAR, slots), row), offset(ZERO)),
        )
        column = each.let_named("column", first + slot * PAIR)
        each.do(
            "dma_transpose",
            dst=part(dst, None, (column, TOKENS)),
            src=Pattern(TENSOR, ((STEP, TOKENS), row), offset(slot)),
        )
    return stage.done()


def _gate() -> Function:
    stage = Stage(
        "load_gate",
        ("dst", "tensor", "offsets", "step", "chunks", "tokens"),
        "One value per token: row slot * chunks + chunk holds the tokens of a chunk.",
    )
    block, dst, chunks, rest = stage.block, _whole("dst"), Name("chunks"), Name("rest")
    whole = block.let_named("whole", TOKENS // CHUNK)
    chunk, token = CHUNK * STEP, (STEP, CHUNK)
    with _together(block, compare("==", whole, chunks)) as (together, each, slot):
        steps = (*_spaced(NEAR, FAR, Name("slots")), (chunk, chunks), token)
        together.do("dma_copy", dst=dst, src=Pattern(TENSOR, steps, offset(ZERO)))
        row = each.let_named("row", slot * chunks)
        with each.when(compare(">", whole, 0)) as full:
            rows = Pattern(TENSOR, ((chunk, whole), token), offset(slot))
            full.do("dma_copy", dst=part(dst, (row, whole), None), src=rows)
        with each.when(compare(">", TOKENS, whole * CHUNK)) as tail:
            tail.let_named("rest", TOKENS - whole * CHUNK)
            rows = Pattern(TENSOR, ((ONE, ONE), (STEP, rest)), offset(slot) + whole * chunk)
            last = part(dst, (row + whole, ONE), (ZERO, rest))
            tail.do("dma_copy", dst=last, src=rows)
    return stage.done()


def _per_lane() -> Function:
    stage = Stage(
        "load_per_lane",
        ("dst", "tensor", "offsets", "chunks"),
        "One value per lane, on the partition of each of its chunks.",
    )
    block, dst, chunks = stage.block, _whole("dst"), Name("chunks")
    with _together(block) as (together, each, slot):
        steps = (*_spaced(NEAR, FAR, Name("slots")), (ZERO, chunks), (ONE, ONE))
        together.do("dma_copy", dst=dst, src=Pattern(TENSOR, steps, offset(ZERO)))
        rows = part(dst, (slot * chunks, chunks), None)
        each.do(
            "dma_copy", dst=rows, src=Pattern(TENSOR, ((ZERO, chunks), (ONE, ONE)), offset(slot))
        )
    return stage.done()
