"""From loaded vectors to A^T and P^T of a group for a decay without key axis.

exp of a segment sum stands outside the sum over channels, so that one [CHUNK, CHUNK] factor per
slot multiplies k_j . k_i and k_j . q_i. Its exponents are one matmul with a 0/1 operand, masked
before the exp.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import part
from backends.nki.program.nodes import F32, Function, Pattern, Space, View
from backends.nki.program.numbers import ONE, ZERO, Name, Number, number
from backends.nki.schedules.chunked.constants import select
from backends.nki.schedules.chunked.gates import beta_of, per_slot
from backends.nki.schedules.chunked.operators import EXP, GREATER_EQUAL, MULTIPLY
from backends.nki.schedules.chunked.prepare import Step
from backends.nki.schedules.chunked.records import (
    BOTH,
    CHUNK,
    KEYS,
    MATRICES,
    PAIR,
    PER_KEY,
    SLOTS,
    TURNED,
    each_slot,
    like,
    slot_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD, SCALAR, TENSOR


def steps(schedule: Schedule) -> tuple[Step, ...]:
    """Return the steps from loaded vectors to scores."""
    constants, group = Name("constants"), Name("group")
    return (
        Step("turn_queries", (group,)),
        Step("sum_segments", (constants, group)),
        Step("multiply_keys", (group,)),
        Step("make_scores", (group,)),
    )


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the steps of preparing scores."""
    yield _scale_vectors(schedule)
    yield _turn_queries(schedule)
    yield _sum_segments(schedule)
    yield _multiply_keys(schedule)
    yield _make_scores(schedule)


def _scale_vectors(schedule: Schedule) -> Function:
    doc = "q and k with their decays, on the engine that has nothing else to do."
    stage = Stage("scale_vectors", ("group",), doc, schedule.scan.log.span)
    block = stage.block
    stage.numbers("group", "gates", "lanes", "steps", "slots", "column", "keys")
    stage.numbers("gates", "columns", "chunks")
    decays, log_and_beta = stage.tiles("gates", "decays", "log_and_beta")
    q_sb, k_sb = stage.tiles("group", "q_sb", "k_sb")
    scaled = [("q_decayed", q_sb, decays)]
    if schedule.around.key_scaled:
        block.comment("q exp(G); g masked to the tokens up to each column.")
    else:
        (left,) = stage.tiles("gates", "left")
        scaled += [("k_decayed", k_sb, decays), ("k_left", k_sb, left)]
        block.comment(
            "q exp(G), k exp(G), beta k exp(G_last - G); g masked to the tokens up to each column."
        )
    for name, src, column in scaled:
        dst = block.tile(name, PER_KEY, like(q_sb))
        block.do(
            "tensor_tensor",
            dst=dst,
            data1=src,
            data2=per_slot(column, ZERO, KEYS),
            op=MULTIPLY,
            engine=GPSIMD,
        )
        block.put("group", **{name: dst})
    g_upto = block.tile("g_upto", MATRICES, F32)
    upto = ((0, SLOTS), (1, CHUNK))
    select(block, g_upto, per_slot(log_and_beta, ZERO, CHUNK), upto, -1, 0, GREATER_EQUAL)
    block.put("group", g_upto=g_upto)
    return stage.done()


def _turn_queries(schedule: Schedule) -> Function:
    doc = "(q exp(G))^T: the stationary that reads the carried state for the output."
    stage = Stage("turn_queries", ("group",), doc, schedule.scan.query.span)
    block = stage.block
    stage.numbers("group", "keys")
    (q_decayed,) = stage.of_group("q_decayed")
    turned = block.tile("turned", TURNED, like(q_decayed), Space.PSUM)
    with block.loop("slot", 0, SLOTS) as (body, slot):
        dst, data = slot_of(turned, slot, CHUNK), slot_of(q_decayed, slot, KEYS)
        body.do("nc_transpose", dst=dst, data=data, engine=TENSOR)
    q_T = block.tile("q_T", TURNED, like(q_decayed))
    block.do("tensor_copy", dst=q_T, src=turned, engine=SCALAR)
    block.put("group", q_T=q_T)
    return stage.done()


def _sum_segments(schedule: Schedule) -> Function:
    doc = "decay[j, i] = exp(g_(j+1) + ... + g_i) for i >= j, 0 elsewhere: masked before the exp."
    stage = Stage("sum_segments", ("constants", "group"), doc, schedule.scan.log.span)
    block = stage.block
    (g_upto,) = stage.of_group("g_upto")
    after, identity_f32, masked = stage.tiles("constants", "after", "identity_f32", "masked")
    segments = block.tile("segments", MATRICES, F32, Space.PSUM)
    for stationary, moving, accumulate in (
        (after, g_upto, False),
        (identity_f32, each_slot(masked), True),
    ):
        block.do(
            "nc_matmul",
            dst=segments,
            stationary=stationary,
            moving=moving,
            is_stationary_onezero=True,
            accumulate=accumulate,
        )
    decay = block.tile("decay", MATRICES, F32)
    block.do("activation", dst=decay, op=EXP, data=segments)
    block.put("group", decay=decay)
    return stage.done()


def _multiply_keys(schedule: Schedule) -> Function:
    doc = "k_j . k_i and k_j . q_i of every slot, side by side."
    stage = Stage("multiply_keys", ("group",), doc, schedule.scan.solve_span)
    block = stage.block
    (kq_T,) = stage.of_group("kq_T")
    products = block.tile("products", BOTH, F32, Space.PSUM)
    with block.loop("slot", 0, SLOTS) as (body, slot):
        body.do(
            "nc_matmul",
            dst=slot_of(products, slot, PAIR),
            stationary=part(kq_T, None, (slot * PAIR, CHUNK)),
            moving=slot_of(kq_T, slot, PAIR),
            accumulate=False,
        )
    block.put("group", products=products)
    return stage.done()


def _make_scores(schedule: Schedule) -> Function:
    doc = "A^T and P^T: beta_j (k_j . k_i) decay and beta_j (k_j . q_i) decay, j on partitions."
    stage = Stage("make_scores", ("group",), doc, schedule.scan.solve_span)
    block = stage.block
    kq_T, products, decay = stage.of_group("kq_T", "products", "decay")
    beta = beta_of(schedule, stage)
    scores = block.tile("scores", BOTH, like(kq_T))
    with block.loop("slot", 0, SLOTS) as (body, slot):
        body.do(
            "scalar_tensor_tensor",
            dst=slot_of(scores, slot, PAIR),
            data=slot_of(products, slot, PAIR),
            op0=MULTIPLY,
            operand0=beta(body, slot),
            op1=MULTIPLY,
            operand1=_twice(decay, slot),
        )
    block.put("group", scores=scores)
    return stage.done()


def _twice(decay: View, slot: Number) -> Pattern:
    """A slot's factor for its k and its q."""
    steps = ((SLOTS * CHUNK, CHUNK), (ZERO, number(2)), (ONE, CHUNK))
    return Pattern(decay.tile, steps, slot * CHUNK)
