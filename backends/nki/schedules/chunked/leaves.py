"""Leaves of LEAF rows by doubling (neumann): X = (I + N)(I + N^2)(I + N^4)... with N = -A there.

A leaf is corrected before any merge, X <- X + X (I - X + N X), as often as the dtype needs. X in
all columns of a slot is called Y here; merges have its blocks side by side.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.nodes import F32, Function, Space
from backends.nki.program.numbers import Name
from backends.nki.schedules.chunked.inverse import mask_scores
from backends.nki.schedules.chunked.operators import ADD, SUBTRACT
from backends.nki.schedules.chunked.records import (
    BLOCK,
    CHUNK,
    MATRICES,
    NARROW,
    SLOTS,
    like,
    tile_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.slots import multiply_slots, turn_slots, with_constant
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import SCALAR, VECTOR
from gdsl.source import Span


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the steps of a doubling leaf, if the plan may have one."""
    if not schedule.doubled_leaf:
        return
    for write in (
        _mask_leaves,
        _turn_leaves,
        _square_power,
        _times,
        _add_factor,
        _find_residual,
        _narrow_leaves,
    ):
        yield write(schedule.scan.solve_span)


def _mask_leaves(origin: Span | None) -> Function:
    doc = "N^T = -A^T on the diagonal blocks of LEAF rows, and X^T = I + N^T."
    stage = Stage("mask_leaves", ("constants", "group"), doc, origin)
    block = stage.block
    (scores,) = stage.of_group("scores")
    (leaves,) = stage.tiles("constants", "leaves")
    N_T = mask_scores(block, "N_T", scores, leaves)
    (identity,) = stage.tiles("constants", "identity")
    X_T = block.tile("X_T", MATRICES, like(N_T))
    with_constant(block, X_T, N_T, identity, ADD)
    block.put("group", N_T=N_T, X_T=X_T)
    return stage.done()


def _turn_leaves(origin: Span | None) -> Function:
    doc = "N and X = I + N from their transposes; N is the first power."
    stage = Stage("turn_leaves", ("constants", "group"), doc, origin)
    block = stage.block
    X_T, N_T = stage.of_group("X_T", "N_T")
    (identity,) = stage.tiles("constants", "identity")
    Y = turn_slots(block, "Y", X_T, CHUNK, MATRICES)
    N = block.tile("N", MATRICES, like(Y))
    with_constant(block, N, Y, identity, SUBTRACT)
    block.put("group", Y=Y, power=N, power_T=N_T)
    return stage.done()


def _square_power(origin: Span | None) -> Function:
    doc = "The next power of N, and its transpose if there is more to square."
    stage = Stage("square_power", ("group", "more"), doc, origin)
    block = stage.block
    power, power_T = stage.of_group("power", "power_T")
    block.call("times", SLOTS, power_T, power, result="squared")
    block.put("group", power=Name("squared"), factor=Name("squared"))
    with block.when(Name("more")) as body:
        body.call("times", SLOTS, power, power_T, result="squared_T")
        body.put("group", power_T=Name("squared_T"))
    return stage.done()


def _times(origin: Span | None) -> Function:
    doc = "left @ right per slot, rounded to an operand; `left_T` is the transposed left factor."
    stage = Stage("times", ("slots", "left_T", "right"), doc, origin)
    block = stage.block
    matrices = tile_of("group", "power")
    left_T, right = stage.given("left_T", matrices), stage.given("right", matrices)
    product = block.tile("product", MATRICES, F32, Space.PSUM)
    multiply_slots(block, product, left_T, right)
    rounded = block.tile("rounded", MATRICES, like(right))
    block.do("tensor_copy", dst=rounded, src=product, engine=SCALAR)
    return stage.done("rounded")


def _add_factor(origin: Span | None) -> Function:
    doc = "X <- X + X F, and the same transposed."
    stage = Stage("add_factor", ("constants", "group"), doc, origin)
    block = stage.block
    Y, X_T, F = stage.of_group("Y", "X_T", "factor")
    (identity,) = stage.tiles("constants", "identity")
    change_T = block.tile("change_T", MATRICES, F32, Space.PSUM)
    changed = block.tile("changed", MATRICES, F32, Space.PSUM)
    multiply_slots(block, change_T, F, X_T)
    block.do("nc_matmul", dst=changed, stationary=identity, moving=Y, accumulate=False)
    multiply_slots(block, changed, X_T, F, accumulate=True)
    new, new_T = block.tile("new", MATRICES, like(Y)), block.tile("new_T", MATRICES, like(Y))
    block.do("tensor_copy", dst=new, src=changed, engine=SCALAR)
    block.do("tensor_tensor", dst=new_T, data1=change_T, data2=X_T, op=ADD, engine=VECTOR)
    block.put("group", Y=new, X_T=new_T)
    return stage.done()


def _find_residual(origin: Span | None) -> Function:
    doc = "F = I - X + N X: what a leaf's inverse is still wrong by."
    stage = Stage("find_residual", ("constants", "group"), doc, origin)
    block = stage.block
    Y, N_T = stage.of_group("Y", "N_T")
    (identity,) = stage.tiles("constants", "identity_f32")
    product = block.tile("product", MATRICES, F32, Space.PSUM)
    multiply_slots(block, product, N_T, Y)
    rest, residual = block.tile("rest", MATRICES, F32), block.tile("residual", MATRICES, like(Y))
    block.do("tensor_tensor", dst=rest, data1=product, data2=Y, op=SUBTRACT, engine=VECTOR)
    with_constant(block, residual, rest, identity, ADD)
    block.put("group", factor=residual)
    return stage.done()


def _narrow_leaves(origin: Span | None) -> Function:
    doc = "The leaves of X side by side, as merges have them."
    stage = Stage("narrow_leaves", ("constants", "group"), doc, origin)
    block = stage.block
    (X_T,) = stage.of_group("X_T")
    (units,) = stage.tiles("constants", "units")
    product = block.tile("product", NARROW, F32, Space.PSUM)
    multiply_slots(block, product, X_T, units, columns=BLOCK, same_moving=True)
    X = block.tile("X", NARROW, like(X_T))
    block.do("tensor_copy", dst=X, src=product, engine=SCALAR)
    block.put("group", X=X)
    block.call("find_blocks", Name("constants"), Name("group"))
    return stage.done()
