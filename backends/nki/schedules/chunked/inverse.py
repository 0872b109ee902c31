"""X = (I + A)^-1 of every slot by merging neighbouring blocks, kept as X and X^T.

A merge of blocks of `width` rows fills the block below the diagonal, X_21 = -X_22 A_21 X_11. Up to
MASKED_MERGES a mask picks A_21 of all blocks at once; later blocks are partition ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import F32, Function, Pattern, Space, View
from backends.nki.program.numbers import ONE, ZERO, Choice, Literal, Name, Number, number
from backends.nki.program.structures import Item, tupled
from backends.nki.schedules.chunked.operators import ADD, COPY, MULTIPLY
from backends.nki.schedules.chunked.records import (
    CHUNK,
    MATRICES,
    PAIR,
    SLOTS,
    TURNED,
    each_slot,
    like,
    slot_of,
    tile_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.slots import multiply_slots, turn_slots
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import SCALAR, VECTOR
from gdsl.source import Span


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the steps of inverting I + A of a group."""
    turn_keys = () if schedule.scan.channels else (_turn_keys,)
    for write in (
        _mask_merge,
        _start_inverse,
        _turn_inverse,
        _merge_read,
        _merge_write,
        _block_read,
        _block_write,
        *turn_keys,
    ):
        yield write(schedule.scan.solve_span)


def upper(scores: View) -> Pattern:
    """Return the A^T half of the scores of every slot."""
    steps = ((SLOTS * PAIR, CHUNK), (PAIR, SLOTS), (ONE, CHUNK))
    return Pattern(scores.tile, steps, ZERO)


def mask_scores(block: Block, name: str, scores: View, mask: View) -> View:
    """Add the product of A^T and a mask of -1 and 0; returns its tile, called `name`."""
    masked = block.tile(name, MATRICES, like(scores))
    block.do(
        "tensor_tensor",
        dst=masked,
        data1=upper(scores),
        data2=each_slot(mask),
        op=MULTIPLY,
        engine=VECTOR,
    )
    return masked


def _mask_merge(origin: Span | None) -> Function:
    doc = "R = -A^T where the merge of this level reads it."
    stage = Stage("mask_merge", ("constants", "group", "level"), doc, origin)
    block = stage.block
    (scores,) = stage.of_group("scores")
    (levels,) = stage.numbers("constants", "levels")
    mask = stage.named("mask", Item(levels, Name("level")), tile_of("constants", "leaves"))
    block.put("group", R=mask_scores(block, "R", scores, mask))
    return stage.done()


def _start_inverse(origin: Span | None) -> Function:
    doc = "X = (I + A)^-1 on 2x2 blocks is I - A; kept as X and X^T."
    stage = Stage("start_inverse", ("constants", "group"), doc, origin)
    block = stage.block
    (R,) = stage.of_group("R")
    (identity,) = stage.tiles("constants", "identity")
    X_T = block.tile("X_T", MATRICES, like(R))
    block.do(
        "tensor_tensor",
        dst=X_T,
        data1=R,
        data2=each_slot(identity),
        op=ADD,
        engine=VECTOR,
    )
    block.put("group", X_T=X_T)
    return stage.done()


def _turn_inverse(origin: Span | None) -> Function:
    stage = Stage("turn_inverse", ("group",), "X from X^T.", origin)
    block = stage.block
    (X_T,) = stage.of_group("X_T")
    block.put("group", X=turn_slots(block, "X", X_T, CHUNK, MATRICES))
    return stage.done()


def _merge_read(origin: Span | None) -> Function:
    doc = "M = -A X in the blocks that this merge fills."
    stage = Stage("merge_read", ("group",), doc, origin)
    block = stage.block
    R, X = stage.of_group("R", "X")
    product = block.tile("product", MATRICES, F32, Space.PSUM)
    multiply_slots(block, product, R, X)
    M = block.tile("M", MATRICES, like(X))
    block.do("tensor_copy", dst=M, src=product, engine=SCALAR)
    block.put("group", M=M)
    return stage.done()


def _merge_write(origin: Span | None) -> Function:
    doc = "X <- X + X M and the same transposed: blocks of twice the width are inverted."
    stage = Stage("merge_write", ("constants", "group"), doc, origin)
    block = stage.block
    X, X_T, M = stage.of_group("X", "X_T", "M")
    (identity,) = stage.tiles("constants", "identity")
    change_T = block.tile("change_T", MATRICES, F32, Space.PSUM)
    merged = block.tile("merged", MATRICES, F32, Space.PSUM)
    multiply_slots(block, change_T, M, X_T)
    block.do("nc_matmul", dst=merged, stationary=identity, moving=X, accumulate=False)
    multiply_slots(block, merged, X_T, M, accumulate=True)
    new, new_T = block.tile("new", MATRICES, like(X)), block.tile("new_T", MATRICES, like(X))
    block.do("tensor_copy", dst=new, src=merged, engine=SCALAR)
    block.do("tensor_tensor", dst=new_T, data1=change_T, data2=X_T, op=ADD, engine=VECTOR)
    block.put("group", X=new, X_T=new_T)
    return stage.done()


def _block_read(origin: Span | None) -> Function:
    doc = "M = -A X for the last merges, whose blocks are partition ranges: no masks."
    stage = Stage("block_read", ("group", "width"), doc, origin)
    block, width = stage.block, Name("width")
    scores, X = stage.of_group("scores", "X")
    M = block.tile("M", (CHUNK, SLOTS * width), like(X))
    with _pairs(block, width) as (body, low, high):
        product = body.tile("product", (width, SLOTS * width), F32, Space.PSUM)
        with body.loop("slot", 0, SLOTS) as (inner, slot):
            inner.do(
                "nc_matmul",
                dst=slot_of(product, slot, width),
                stationary=part(scores, (low, width), (slot * PAIR + high, width)),
                moving=part(X, (low, width), (slot * CHUNK + low, width)),
                tile_position=tupled(low, 0),
                tile_size=tupled(width, width),
                accumulate=False,
            )
        target = part(M, (high, width), None)
        body.do("activation", dst=target, op=COPY, data=product, scale=Literal(-1.0))
    block.put("group", M=M)
    return stage.done()


def _block_write(origin: Span | None) -> Function:
    doc = "Fill the off-diagonal blocks of X^T, and of X while a merge is still to come."
    stage = Stage("block_write", ("group", "width"), doc, origin)
    block, width = stage.block, Name("width")
    X, X_T, M = stage.of_group("X", "X_T", "M")
    with _pairs(block, width) as (body, low, high):
        last = compare("==", 2 * width, CHUNK)
        products = body.let("products", Choice(last, ONE, number(2)))
        filled = body.tile("filled", (width, products * SLOTS * width), F32, Space.PSUM)

        def fill(inner: Block, slot: Number, turned: bool) -> None:
            """One off-diagonal block of X^T (turned) or X."""
            rows, place = (high, width), slot if turned else SLOTS + slot
            x = part(X_T, rows, (slot * CHUNK + high, width))
            m = part(M, rows, (slot * width, width))
            inner.do(
                "nc_matmul",
                dst=slot_of(filled, place, width),
                stationary=m if turned else x,
                moving=x if turned else m,
                tile_position=tupled(high, 0),
                tile_size=tupled(width, width),
                accumulate=False,
            )

        with body.loop("slot", 0, SLOTS) as (inner, slot):
            fill(inner, slot, turned=True)
        first = part(filled, None, (0, SLOTS * width))
        body.do("tensor_copy", dst=_blocks(X_T, low, high, width), src=first, engine=VECTOR)
        with body.when(compare("==", products, 2)) as more:
            with more.loop("slot", 0, SLOTS) as (inner, slot):
                fill(inner, slot, turned=False)
            second = part(filled, None, (SLOTS * width, SLOTS * width))
            more.do("tensor_copy", dst=_blocks(X, high, low, width), src=second, engine=SCALAR)
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
    with block.loop("slot", 0, SLOTS) as (body, slot):
        body.do(
            "nc_matmul",
            dst=slot_of(product, slot, CHUNK),
            stationary=slot_of(k_decayed, slot, keys),
            moving=slot_of(X_T, slot, CHUNK),
            accumulate=False,
        )
    W_T = block.tile("W_T", TURNED, like(X_T))
    block.do("activation", dst=W_T, op=COPY, data=product, scale=Literal(-1.0))
    block.put("group", W_T=W_T)
    return stage.done()
