"""The last merges of an inverse, whose blocks are partition ranges, and what the carry needs of it.

X is known on blocks of BLOCK_ROWS rows, side by side in as many columns; X^T has all columns of a
slot and is what the carry multiplies with. Of X itself a later merge needs only its first half.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import F32, Function, Pattern, Space, View
from backends.nki.program.numbers import ONE, ZERO, Literal, Name, Number
from backends.nki.program.structures import tupled
from backends.nki.schedules.chunked.operators import COPY
from backends.nki.schedules.chunked.records import (
    BLOCK,
    CHUNK,
    NARROW,
    PAIR,
    SLOTS,
    TURNED,
    like,
    slot_of,
    tile_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.slots import multiply_slots
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import SCALAR
from gdsl.source import Span


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the merges of blocks of BLOCK_ROWS rows and more, and W^T."""
    yield _block_read(schedule.scan.solve_span)
    yield _block_write(schedule.scan.solve_span)
    if not schedule.scan.channels:
        yield _turn_keys(schedule.scan.solve_span)


def _block_read(origin: Span | None) -> Function:
    doc = (
        "M = -A X for the last merges: rows of the second halves; what the first halves hold is\n"
        "of no use."
    )
    stage = Stage("block_read", ("group", "width"), doc, origin)
    block, width = stage.block, Name("width")
    scores, X = stage.of_group("scores", "X")
    M = block.tile("M", (CHUNK, SLOTS * width), like(X))
    product = block.tile("product", (CHUNK, SLOTS * width), F32, Space.PSUM)
    single, several = block.inner(), block.inner()
    with _pairs(single, width) as (body, low, _), body.loop("slot", 0, SLOTS) as (inner, slot):
        inner.do(
            "nc_matmul",
            dst=part(product, (low, 2 * width), (slot * width, width)),
            stationary=part(scores, (low, width), (slot * PAIR + low, 2 * width)),
            moving=part(X, (low, width), (slot * BLOCK, width)),
            tile_position=tupled(low, low),
            tile_size=tupled(width, 2 * width),
            accumulate=False,
        )
    several.comment("X_11 is a merge itself: its blocks, and what was filled below its diagonal.")
    several.take("group", "corner")
    corner = tile_of("group", "corner")
    with several.loop("slot", 0, SLOTS) as (inner, slot):
        for rows, moving, column, accumulate in (
            (ZERO, X, ZERO, False),
            (BLOCK, corner, ZERO, True),
            (BLOCK, X, BLOCK, False),
        ):
            inner.do(
                "nc_matmul",
                dst=part(product, None, (slot * width + column, BLOCK)),
                stationary=part(scores, (rows, BLOCK), (slot * PAIR, CHUNK)),
                moving=part(moving, (rows, BLOCK), (slot * BLOCK, BLOCK)),
                tile_position=tupled(rows, ZERO),
                tile_size=tupled(BLOCK, CHUNK),
                accumulate=accumulate,
            )
    block.decide(compare("==", width, BLOCK), single, several)
    block.do("activation", dst=M, op=COPY, data=product, scale=Literal(-1.0))
    block.put("group", M=M)
    return stage.done()


def _block_write(origin: Span | None) -> Function:
    doc = "Fill the off-diagonal blocks of X^T, and of X what a merge still to come needs."
    stage = Stage("block_write", ("group", "width"), doc, origin)
    block, width = stage.block, Name("width")
    X_T, M = stage.of_group("X_T", "M")

    def products(block: Block, filled: View, high: Number, turned: bool) -> None:
        """One off-diagonal block of X^T (turned) or X of every slot."""
        with block.loop("slot", 0, SLOTS) as (inner, slot):
            x = part(X_T, (high, width), (slot * CHUNK + high, width))
            m = part(M, (high, width), (slot * width, width))
            inner.do(
                "nc_matmul",
                dst=slot_of(filled, slot, width),
                stationary=m if turned else x,
                moving=x if turned else m,
                tile_position=tupled(high, 0),
                tile_size=tupled(width, width),
                accumulate=False,
            )

    with block.when(compare("<", 2 * width, CHUNK)) as more:
        below = more.tile("below", (width, SLOTS * width), F32, Space.PSUM)
        products(more, below, width, turned=False)
        corner = more.tile("corner", NARROW, like(X_T))
        more.do("tensor_copy", dst=part(corner, (width, width), None), src=below, engine=SCALAR)
        more.put("group", corner=corner)
    with _pairs(block, width) as (body, low, high):
        filled = body.tile("filled", (width, SLOTS * width), F32, Space.PSUM)
        products(body, filled, high, turned=True)
        target = _blocks(X_T, low, high, width)
        body.do("tensor_copy", dst=target, src=filled, engine=SCALAR)
    return stage.done()


@contextmanager
def _pairs(block: Block, width: Number) -> Iterator[tuple[Block, Number, Number]]:
    """Go through pairs of neighbouring blocks; yields where the first and the second begin."""
    with block.loop("pair", 0, CHUNK // (2 * width)) as (body, pair):
        low = body.let("low", pair * 2 * width)
        yield body, low, body.let("high", low + width)


def _blocks(matrices: View, row: Number, column: Number, width: Number) -> Pattern:
    """The [width, width] block at (row, column) of every slot."""
    steps = ((SLOTS * CHUNK, width), (CHUNK, SLOTS), (ONE, width))
    return Pattern(matrices.tile, steps, row * SLOTS * CHUNK + column)


def _turn_keys(origin: Span | None) -> Function:
    doc = "W^T = -(X (k exp(G)))^T: the stationary that reads the carried state for the writes."
    stage = Stage("turn_keys", ("group",), doc, origin)
    block = stage.block
    (keys,) = stage.numbers("group", "keys")
    k_decayed, X_T = stage.of_group("k_decayed", "X_T")
    product = block.tile("product", TURNED, F32, Space.PSUM)
    multiply_slots(block, product, k_decayed, X_T, rows=keys)
    W_T = block.tile("W_T", TURNED, like(X_T))
    block.do("activation", dst=W_T, op=COPY, data=product, scale=Literal(-1.0))
    block.put("group", W_T=W_T)
    return stage.done()
