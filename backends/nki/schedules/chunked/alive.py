"""Tokens that count and tokens that are padding, for kernels with a length per row.

Dead tokens may hold anything: they are replaced by zeros, never multiplied. Rows that were selected
on chip are turned by a transfer from there, since one from HBM would bring the dead ones along.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import (
    F32,
    I32,
    U8,
    Allocate,
    Function,
    Integers,
    Pattern,
    Space,
    Tile,
    View,
)
from backends.nki.program.numbers import NONE, ONE, ZERO, Choice, Extent, Literal, Name, Number
from backends.nki.program.structures import Item, Length, Words
from backends.nki.schedules.chunked.addresses import LANE
from backends.nki.schedules.chunked.gate_terms import CHUNKS, FIRST
from backends.nki.schedules.chunked.operators import LESS
from backends.nki.schedules.chunked.records import CHUNK, TEAM
from backends.nki.schedules.chunked.scan import Valid
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield what selects live tokens, for a kernel that has a length per row."""
    if schedule.scan.valid is None:
        return
    yield _find(schedule, schedule.scan.valid)
    yield _only()


def _find(schedule: Schedule, valid: Valid) -> Function:
    stage = Stage(
        "find_alive",
        ("tensors", "sizes", "team", "first_chunk", "chunks"),
        "1 for the live tokens of each chunk, 0 for dead ones; None when every token is live.\n\n"
        "Columns are lane * chunks + chunk. It is a predicate: dead tokens are replaced, never\n"
        "multiplied.",
        valid.span,
    )
    block = stage.block
    lengths = lengths_in(schedule, valid)
    block.take("tensors", lengths)
    if valid.slots is not None:
        _compare(block, schedule, valid)
        return stage.done("alive")
    block.let_named("alive", NONE)
    with block.when(compare("!=", Name(lengths), NONE)) as given:
        _compare(given, schedule, valid)
    return stage.done("alive")


def _compare(block: Block, schedule: Schedule, valid: Valid) -> None:
    """Add what finds the tokens before the length of each lane."""
    shape = (CHUNK, Length(TEAM) * CHUNKS)
    alive = View(Tile("alive", shape, U8, Space.SBUF), shape)
    block.statements.append(Allocate(alive.tile))
    token = block.tile("token", (CHUNK, CHUNKS), F32)
    block.do(
        "iota",
        dst=token,
        pattern=Integers(((CHUNK, CHUNKS),)),
        offset=FIRST * CHUNK,
        channel_multiplier=ONE,
    )
    with block.loop("place", 0, Length(TEAM)) as (body, place):
        body.let_named("lane", Item(TEAM, place))
        length = length_of(body, schedule, valid, CHUNK)
        body.do(
            "tensor_scalar",
            dst=part(alive, None, (place * CHUNKS, CHUNKS)),
            data=token,
            op0=LESS,
            operand0=length,
        )


def lengths_in(schedule: Schedule, valid: Valid) -> str:
    """Return the name, in the record of tensors, of what `length_of` reads."""
    if valid.slots is not None:
        return schedule.entries.live_tokens.tile.name
    assert valid.length is not None
    return valid.length.name


def length_of(block: Block, schedule: Schedule, valid: Valid, partitions: Number) -> View:
    """Return how many live tokens the lane at hand has, on `partitions` partitions."""
    if valid.slots is not None:
        row = schedule.where.row_of(LANE)
        return part(schedule.entries.live_tokens, (ZERO, partitions), (row, ONE))
    assert valid.length is not None
    length = block.tile("length", (partitions, ONE), I32)
    length_f32 = block.tile("length_f32", (partitions, ONE), F32)
    at = schedule.where.offset(valid.length.name, ZERO)
    tensor = schedule.contract.tensors[valid.length.name]
    source = Pattern(tensor, ((ZERO, partitions), (ONE, ONE)), at)
    block.do("dma_copy", dst=length, src=source)
    block.do("tensor_copy", dst=length_f32, src=length, engine=GPSIMD)
    return length_f32


def words_of(tile: str, width: Number) -> Number:
    """Return a tile as VectorE selects it fastest: four bytes at a time.

    Only if a slot of `width` elements of two bytes is a whole number of words.
    """
    return Choice(compare("==", width % 2, 0), Words(tile), Name(tile))


def _only() -> Function:
    doc = "The values, in place: 0 where the predicate does not hold."
    stage = Stage("only_alive", ("values", "predicate"), doc)
    block, values, predicate = stage.block, _any("values"), _any("predicate")
    block.do(
        "tensor_copy_predicated",
        dst=values,
        src=Literal(0.0),
        predicate=predicate,
        reverse_pred=True,
    )
    return stage.done("values")


def _any(name: str) -> View:
    """A parameter of any size."""
    shape = (Extent(name, 0), Extent(name, 1))
    return View(Tile(name, shape, F32, Space.SBUF), shape)
