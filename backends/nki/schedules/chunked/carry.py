"""From inverse and scores to writes, outputs and the carried state, one chunk of every lane."""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import compare, part
from backends.nki.program.nodes import F32, Function, Space, View, dtype_of
from backends.nki.program.numbers import Choice, Name, Query, smallest
from backends.nki.program.structures import EMPTY, Item
from backends.nki.schedules.chunked.addresses import LANE
from backends.nki.schedules.chunked.gates import beta_of
from backends.nki.schedules.chunked.operators import ADD, COPY, MULTIPLY
from backends.nki.schedules.chunked.records import (
    CHUNK,
    KEYS,
    LANES,
    PAIR,
    STEPS,
    VALUES,
    like,
    slot_of,
    tile_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.shared_keys import keys_are_shared
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD

STEP, POSITION = Name("step"), Name("position")
OF_LANES = (CHUNK, LANES * VALUES)


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the steps of a chunk after its inverse."""
    if schedule.solves and not schedule.scan.channels:
        yield _solve_writes(schedule)
    yield _carry_state(schedule)
    yield _decay_states(schedule)
    yield _decay_and_add(schedule)
    if not schedule.around.output_computed:
        yield _store_output(schedule)


def _solve_writes(schedule: Schedule) -> Function:
    doc = "w = X v - W S for one chunk of every lane of the group" + (
        ", times beta where keys are shared." if schedule.shares else "."
    )
    stage = Stage("solve_writes", ("group", "states", "step"), doc, schedule.scan.solve_span)
    block = stage.block
    stage.numbers("group", "lanes", "steps", "position", "values")
    v, X_T, W_T = stage.tiles("group", "v", "X_T", "W_T")
    (low,) = stage.tiles("states", "low")
    writes = block.tile("writes", OF_LANES, F32, Space.PSUM)
    with block.loop("lane", 0, LANES) as (body, lane):
        slot = body.let_named("slot", lane * STEPS + STEP)
        for stationary, moving, accumulate in (
            (X_T, slot_of(v, slot, VALUES), False),
            (W_T, slot_of(low, POSITION + lane, VALUES), True),
        ):
            body.do(
                "nc_matmul",
                dst=slot_of(writes, lane, VALUES),
                stationary=slot_of(stationary, slot, CHUNK),
                moving=moving,
                accumulate=accumulate,
            )
    w = block.tile("w", OF_LANES, like(v))
    block.comment(
        "One lane waits for this on its way to the next chunk, and VectorE answers sooner than\n"
        "ScalarE."
    )
    alone = compare("==", LANES, 1)
    engine = Choice(alone, Query("nisa.engine.vector"), Query("nisa.engine.scalar"))
    copied = block.inner() if schedule.shares else block
    copied.do("tensor_copy", dst=w, src=writes, engine=engine)
    if schedule.shares:
        scaled = block.inner()
        beta = beta_of(schedule, stage.inside(scaled))
        with scaled.loop("lane", 0, LANES) as (body, lane):
            body.do(
                "tensor_scalar",
                dst=slot_of(w, lane, VALUES),
                data=slot_of(writes, lane, VALUES),
                op0=MULTIPLY,
                operand0=beta(body, body.let_named("slot", lane * STEPS + STEP)),
                engine=engine,
            )
        block.decide(keys_are_shared(), scaled, copied)
    block.put("group", w=w)
    return stage.done()


def _carry_state(schedule: Schedule) -> Function:
    doc = (
        f"o = (q exp(G)) S + P w, and ({schedule.left})^T w, which is added to the state."
        if schedule.solves
        else "o = (q exp(G)) S + P v, and (k exp(G_last - G))^T v, which is added to the state."
    )
    stage = Stage("carry_state", ("group", "states", "step"), doc, schedule.scan.run.span)
    block = stage.block
    stage.numbers("group", "lanes", "steps", "position", "keys", "values")
    name = "w" if schedule.solves else "v"
    k_left, q_T, scores, writes = stage.tiles("group", "k_left", "q_T", "scores", name)
    (low,) = stage.tiles("states", "low")
    update = block.tile("update", (KEYS, LANES * VALUES), F32, Space.PSUM)
    output = block.tile("output", OF_LANES, F32, Space.PSUM)
    with block.loop("lane", 0, LANES) as (body, lane):
        slot = body.let_named("slot", lane * STEPS + STEP)
        written = slot_of(writes, lane if schedule.solves else slot, VALUES)
        body.do(
            "nc_matmul",
            dst=slot_of(update, lane, VALUES),
            stationary=slot_of(k_left, slot, KEYS),
            moving=written,
            accumulate=False,
        )
    with block.loop("lane", 0, LANES) as (body, lane):
        slot = body.let_named("slot", lane * STEPS + STEP)
        written = slot_of(writes, lane if schedule.solves else slot, VALUES)
        for stationary, moving, accumulate in (
            (slot_of(q_T, slot, CHUNK), slot_of(low, POSITION + lane, VALUES), False),
            (
                part(scores, None, (slot * PAIR + CHUNK, CHUNK)),
                written,
                True,
            ),
        ):
            body.do(
                "nc_matmul",
                dst=slot_of(output, lane, VALUES),
                stationary=stationary,
                moving=moving,
                accumulate=accumulate,
            )
    block.put("group", update=update, output=output)
    return stage.done()


def _decay_states(schedule: Schedule) -> Function:
    doc = (
        "S <- exp(G_last) S + update for every lane, and the operands' copy.\n\n"
        "A single lane waits for that copy, so that it is computed first and by itself."
    )
    stage = Stage("decay_states", ("group", "states", "step"), doc, schedule.scan.run.span)
    block = stage.block
    stage.numbers("group", "lanes", "position", "values")
    (update,) = stage.tiles("group", "update")
    high, low = stage.tiles("states", "high", "low")
    with block.loop("lane", 0, LANES, exact=True) as (body, lane):
        given = (Name("group"), high, update, lane, STEP)
        with body.when(compare("==", LANES, 1)) as alone:
            alone.call("decay_and_add", low, *given)
        body.call("decay_and_add", high, *given)
    with block.when(compare(">", LANES, 1)) as body:
        span = (POSITION * VALUES, LANES * VALUES)
        dst, src = part(low, None, span), part(high, None, span)
        body.do("tensor_copy", dst=dst, src=src, engine=GPSIMD)
    return stage.done()


def _decay_and_add(schedule: Schedule) -> Function:
    doc = "dst = exp(G_last) S + update for one lane."
    parameters = ("dst", "group", "high", "update", "lane", "step")
    stage = Stage("decay_and_add", parameters, doc, schedule.scan.run.span)
    block = stage.block
    stage.numbers("group", "position", "values")
    high = tile_of("states", "high")
    dst, update = stage.given("dst", high), stage.given("update", high)
    state = block.let("state", POSITION + LANE)
    block.do(
        "scalar_tensor_tensor",
        dst=slot_of(dst, state, VALUES),
        data=slot_of(high, state, VALUES),
        op0=MULTIPLY,
        operand0=_last_decay(schedule, stage),
        op1=ADD,
        operand1=slot_of(update, LANE, VALUES),
    )
    return stage.done()


def _last_decay(schedule: Schedule, stage: Stage) -> View:
    """exp(G_last) of a lane's chunk on the partitions of its state."""
    block = stage.block
    if schedule.scan.channels:
        stage.numbers("group", "steps")
        (last_factor,) = stage.tiles("group", "last_factor")
        return part(last_factor, None, (block.let("slot", LANE * STEPS + STEP), 1))
    _, column, keys = stage.numbers("group", "gates", "column", "keys")
    (chunks,) = stage.numbers("gates", "chunks")
    (last,) = stage.tiles("gates", "last")
    place = block.let("place", column + LANE * chunks + STEP)
    return part(last, (0, keys), (place, 1))


def _store_output(schedule: Schedule) -> Function:
    scan, out = schedule.scan, schedule.scan.out
    parameters = ("group", "tensors", "sizes", "team", "step")
    stage = Stage("store_output", parameters, "The outputs of one chunk.", out.span)
    block = stage.block
    stage.numbers("group", "lanes", "position", "chunk", "values")
    (output,) = stage.tiles("group", "output")
    (tensor,) = schedule.tensors(stage, out.name)
    total, factor = stage.numbers("sizes", "total", "factor")
    strides = schedule.strides(stage, out, scan.axis, scan.value_axis)
    token = block.let_named("token", (Name("chunk") + STEP) * CHUNK)
    tokens = block.let_named("tokens", smallest(CHUNK, total - token))
    with block.when(compare(">", tokens, 0)) as body:
        o_sb = body.tile("o_sb", OF_LANES, dtype_of(tensor.name, tensor.element.bytes))
        body.do("activation", dst=o_sb, op=COPY, data=output, scale=factor)
        body.let_named("offsets", EMPTY)
        with body.loop("place", POSITION, POSITION + LANES) as (inner, place):
            inner.let_named("lane", Item(Name("team"), place))
            inner.append("offsets", schedule.where.offset(out.name, token))
        row = (*strides, tokens, VALUES)
        body.call("store_rows", Name(out.name), o_sb, Name("offsets"), *row)
    return stage.done()
