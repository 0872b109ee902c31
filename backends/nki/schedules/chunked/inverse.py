"""X = (I + A)^-1 of the diagonal blocks of every slot, kept as X and X^T.

A merge of blocks of `width` rows fills the block below the diagonal, X_21 = -X_22 A_21 X_11. Up to
BLOCK_ROWS rows (later blocks are partition ranges, see `blocks`) all blocks of a slot are merged at
once: X and M lie side by side in BLOCK_ROWS columns, as moving operands and results of stationaries
that are zero outside the diagonal blocks, so that an evacuation is as short as the blocks are
narrow. A mask picks what a merge fills when -A X leaves PSUM.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block
from backends.nki.program.nodes import F32, Function, Pattern, Space, View
from backends.nki.program.numbers import ONE, ZERO, Name
from backends.nki.program.structures import Item
from backends.nki.schedules.chunked.operators import MULTIPLY
from backends.nki.schedules.chunked.records import (
    BLOCK,
    CHUNK,
    MATRICES,
    NARROW,
    PAIR,
    SLOTS,
    like,
    slot_of,
    tile_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.slots import multiply_slots, with_constant
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import SCALAR, TENSOR, VECTOR
from gdsl.source import Span


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the steps of inverting I + A on the diagonal blocks of a group."""
    yield _find_blocks(schedule)
    for write in (
        _find_pairs,
        _start_inverse,
        _merge_read,
        _merge_write,
        _widen_inverse,
    ):
        yield write(schedule.scan.solve_span)


def upper(scores: View) -> Pattern:
    """Return the A^T half of the scores of every slot."""
    steps = ((SLOTS * PAIR, CHUNK), (PAIR, SLOTS), (ONE, CHUNK))
    return Pattern(scores.tile, steps, ZERO)


def mask_scores(block: Block, name: str, scores: View, mask: View) -> View:
    """Add the product of A^T and a mask; returns its tile, called `name`."""
    masked = block.tile(name, MATRICES, like(scores))
    with_constant(block, masked, upper(scores), mask, MULTIPLY)
    return masked


def _narrow(constant: View) -> Pattern:
    """A [CHUNK, BLOCK] constant, seen once per slot."""
    steps = ((BLOCK, CHUNK), (ZERO, SLOTS), (ONE, BLOCK))
    return Pattern(constant.tile, steps, ZERO)


def _find_blocks(schedule: Schedule) -> Function:
    doc = "A^T on the diagonal blocks: the stationary of every merge up to BLOCK_ROWS rows."
    stage = Stage("find_blocks", ("constants", "group"), doc, schedule.scan.solve_span)
    block = stage.block
    (scores,) = stage.of_group("scores")
    (blocks,) = stage.tiles("constants", "blocks")
    block.put("group", A_T=mask_scores(block, "A_T", scores, blocks))
    return stage.done()


def _find_pairs(origin: Span | None) -> Function:
    doc = (
        "X^T = (I + A^T)^-1 on 2x2 blocks is I - A^T, left without the identity, which TensorE\n"
        "adds where it is multiplied."
    )
    stage = Stage("find_pairs", ("constants", "group"), doc, origin)
    block = stage.block
    (scores,) = stage.of_group("scores")
    (twos,) = stage.tiles("constants", "twos")
    block.put("group", X_T=mask_scores(block, "X_T", scores, twos))
    return stage.done()


def _start_inverse(origin: Span | None) -> Function:
    doc = "X = (I + A)^-1 on 2x2 blocks is I - A."
    stage = Stage("start_inverse", ("constants", "group"), doc, origin)
    block = stage.block
    (X_T,) = stage.of_group("X_T")
    identity, units = stage.tiles("constants", "identity", "units")
    started = block.tile("started", NARROW, F32, Space.PSUM)
    block.do("nc_matmul", dst=started, stationary=identity, moving=_narrow(units), accumulate=False)
    multiply_slots(block, started, X_T, units, columns=BLOCK, same_moving=True, accumulate=True)
    X = block.tile("X", NARROW, like(X_T))
    block.do("tensor_copy", dst=X, src=started, engine=SCALAR)
    block.put("group", X=X)
    block.call("find_blocks", Name("constants"), Name("group"))
    return stage.done()


def _merge_read(origin: Span | None) -> Function:
    doc = "M = -A X in the blocks that this merge fills."
    stage = Stage("merge_read", ("constants", "group", "level"), doc, origin)
    block = stage.block
    A_T, X = stage.of_group("A_T", "X")
    (levels,) = stage.numbers("constants", "levels")
    mask = stage.named("mask", Item(levels, Name("level")), tile_of("constants", "units"))
    product = block.tile("product", NARROW, F32, Space.PSUM)
    multiply_slots(block, product, A_T, X, columns=BLOCK)
    M = block.tile("M", NARROW, like(X))
    block.do("tensor_tensor", dst=M, data1=product, data2=_narrow(mask), op=MULTIPLY, engine=VECTOR)
    block.put("group", M=M)
    return stage.done()


def _merge_write(origin: Span | None) -> Function:
    doc = (
        "X <- X + X M: blocks of twice the width are inverted. X^T may be without the identity\n"
        "(`bare`)."
    )
    stage = Stage("merge_write", ("constants", "group", "bare"), doc, origin)
    block = stage.block
    X, X_T, M = stage.of_group("X", "X_T", "M")
    (identity,) = stage.tiles("constants", "identity")
    merged = block.tile("merged", NARROW, F32, Space.PSUM)
    block.do("nc_matmul", dst=merged, stationary=identity, moving=X, accumulate=False)
    with block.when(Name("bare")) as body:
        body.do("nc_matmul", dst=merged, stationary=identity, moving=M, accumulate=True)
    multiply_slots(block, merged, X_T, M, columns=BLOCK, accumulate=True)
    new = block.tile("new", NARROW, like(X))
    block.do("tensor_copy", dst=new, src=merged, engine=SCALAR)
    block.put("group", X=new)
    return stage.done()


def _widen_inverse(origin: Span | None) -> Function:
    doc = "X^T from X: the transpose has every block in all columns of a slot, a mask keeps one."
    stage = Stage("widen_inverse", ("constants", "group"), doc, origin)
    block = stage.block
    (X,) = stage.of_group("X")
    (blocks,) = stage.tiles("constants", "blocks")
    turned = block.tile("turned", MATRICES, like(X), Space.PSUM)
    with block.loop("slot", 0, SLOTS) as (body, slot):
        repeated = ((SLOTS * BLOCK, CHUNK), (ZERO, CHUNK // BLOCK), (ONE, BLOCK))
        body.do(
            "nc_transpose",
            dst=slot_of(turned, slot, CHUNK),
            data=Pattern(X.tile, repeated, slot * BLOCK),
            engine=TENSOR,
        )
    X_T = block.tile("X_T", MATRICES, like(X))
    with_constant(block, X_T, turned, blocks, MULTIPLY)
    block.put("group", X_T=X_T)
    return stage.done()
