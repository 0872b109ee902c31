"""k and q of a group with the decays of their channels: since the chunk's start, until its end.

What the carried state is read with has channels on partitions, as a stationary operand needs them;
what is added to it has tokens there. A factor is rounded to the operands' dtype, so that VectorE
multiplies 16-bit numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import F32, Function, Pattern, Space, View
from backends.nki.program.numbers import ONE, ZERO, Literal, Name, Number, smallest
from backends.nki.program.structures import Item, Length, Values, tupled
from backends.nki.schedules.chunked.gates import beta_of, multiply_parts
from backends.nki.schedules.chunked.operators import EXP, MULTIPLY
from backends.nki.schedules.chunked.records import (
    BANK,
    CHUNK,
    KEYS,
    PAIR,
    PARTITIONS,
    PER_KEY,
    SLOTS,
    STEPS,
    SUMMED,
    TEAM,
    TURNED,
    like,
    slot_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the loading of log decays and what they make of k and q."""
    if not schedule.around.log_computed:
        yield _load_decays(schedule)
    yield _decay_to_end(schedule)
    yield _decay_over_chunk(schedule)
    yield _decay_from_start(schedule)


def channel_sums(
    block: Block, name: str, g: View, mask: View, width: Number = CHUNK, count: Number = CHUNK
) -> View:
    """Add sums of log decays per channel and token: `mask`[m, c] says whether token c sums token m.

    Only the first `count` tokens of every `width` get one. The result lies on all channels.
    """
    sums = block.tile(name, TURNED, F32, Space.PSUM)
    with block.loop("slot", 0, SLOTS) as (body, slot):
        whole = count == width
        steps = ((width, CHUNK // width), (ONE, count))
        moving = Pattern(mask.tile, ((CHUNK, CHUNK), *steps), ZERO)
        dst = Pattern(sums.tile, ((SLOTS * CHUNK, KEYS), *steps), slot * CHUNK)
        body.do(
            "nc_matmul",
            dst=slot_of(sums, slot, CHUNK) if whole else dst,
            stationary=slot_of(g, slot, KEYS),
            moving=mask if whole else moving,
            is_moving_onezero=True,
            accumulate=False,
        )
    return sums


def half_of(kq_T: View, first: Number) -> Pattern:
    """Return k (`first` 0) or q (`first` CHUNK) of every slot."""
    steps = ((SLOTS * PAIR, KEYS), (PAIR, SLOTS), (ONE, CHUNK))
    return Pattern(kq_T.tile, steps, first)


def _load_decays(schedule: Schedule) -> Function:
    log = schedule.scan.log
    doc = "Bring in the log decays of every channel; their factors are made in `prepare`."
    stage = Stage("load_decays", ("group", "tensors", "sizes", "team"), doc, log.span)
    block = stage.block
    stage.numbers("group", "steps", "slots", "position", "chunk")
    (keys,) = stage.numbers("group", "keys")
    (tensor,) = schedule.tensors(stage, log.name)
    (total,) = stage.numbers("sizes", "total")
    strides = schedule.strides(stage, log, schedule.scan.axis, schedule.scan.key_axis)
    first = Name("chunk")
    g = block.tile("g_sb", PER_KEY, F32)
    with block.when(compare(">", (first + STEPS) * CHUNK, total)) as body:
        body.do("memset", dst=g, value=Literal(0.0), engine=GPSIMD)
    with block.loop("slot", 0, SLOTS) as (body, slot):
        body.let_named("lane", Item(TEAM, Name("position") + slot // STEPS))
        token = body.let_named("token", (first + slot % STEPS) * CHUNK)
        offsets = Values((schedule.where.offset(log.name, token),), grows=True)
        to, tokens = slot_of(g, slot, keys), smallest(CHUNK, total - token)
        source = View(tensor, tensor.shape)
        body.call("load_rows", to, source, offsets, *strides, tokens, keys)
    block.put("group", g=g)
    return stage.done()


def _decay_to_end(schedule: Schedule) -> Function:
    doc = "beta k exp(G_last - G): what is left of the keys at the end of the chunk."
    stage = Stage("decay_to_end", ("constants", "group"), doc, schedule.scan.log.span)
    block = stage.block
    stage.numbers("group", "keys")
    g, k = stage.of_group("g", "k_sb")
    beta = beta_of(schedule, stage, scaled=True)
    (after,) = stage.tiles("constants", "after")
    (masks,) = stage.numbers("constants", "sums")
    with block.when(compare("==", Length(masks), 0)) as body:
        body.comment("Made while the first transfers are under way.")
        body.call("make_references", Name("constants"))
    sums = block.tile("to_end", PER_KEY, F32, Space.PSUM)
    width = block.let_named("width", SLOTS * KEYS)
    with block.loop("first", 0, width, BANK) as (body, first):
        span = (first, body.let_named("share", smallest(BANK, width - first)))
        body.do(
            "nc_matmul",
            dst=part(sums, None, span),
            stationary=after,
            moving=part(g, None, span),
            is_stationary_onezero=True,
            accumulate=False,
        )
    decay = block.tile("decay", PER_KEY, like(k))
    block.do("activation", dst=decay, op=EXP, data=sums)
    k_left = block.tile("k_left", PER_KEY, like(k))
    with block.loop("slot", 0, SLOTS) as (body, slot):
        body.do(
            "scalar_tensor_tensor",
            dst=slot_of(k_left, slot, KEYS),
            data=slot_of(k, slot, KEYS),
            op0=MULTIPLY,
            operand0=beta(body, slot),
            op1=MULTIPLY,
            operand1=slot_of(decay, slot, KEYS),
        )
    block.put("group", k_left=k_left)
    return stage.done()


def _decay_over_chunk(schedule: Schedule) -> Function:
    chunk = schedule.scan.chunk.chunk
    parts, rows, size = chunk // SUMMED, max(1, chunk // (2 * SUMMED)), min(chunk, 2 * SUMMED)
    doc = f"exp(G_last), channels on partitions: a product over {SUMMED} tokens at a time."
    stage = Stage("decay_over_chunk", ("constants", "group"), doc, schedule.scan.log.span)
    block = stage.block
    stage.numbers("group", "keys")
    (g,) = stage.of_group("g")
    sums = [
        block.tile(name, (KEYS, rows * SLOTS), F32, Space.PSUM)
        for name in ("first_sums", "later_sums")[:parts]
    ]
    halves = stage.tiles("constants", "upto", "after")[:parts]
    with block.loop("place", 0, rows * SLOTS) as (body, place):
        low = body.let_named("low", place // SLOTS * size)
        tiling = {"tile_position": tupled(low, 0), "tile_size": tupled(size, PARTITIONS)}
        for dst, picked in zip(sums, halves, strict=True):
            body.do(
                "nc_matmul",
                dst=part(dst, None, (place, 1)),
                stationary=part(g, (low, size), (place % SLOTS * KEYS, KEYS)),
                moving=part(picked, (low, size), (low + SUMMED - 1, 1)),
                is_moving_onezero=True,
                **(tiling if rows > 1 else {}),
                accumulate=False,
            )
    factor = multiply_parts(block, sums, rows, SLOTS, "last_factor")
    block.put("group", last_factor=factor)
    return stage.done()


def _decay_from_start(schedule: Schedule) -> Function:
    made = (*((("k_T", ZERO),) if schedule.solves else ()), ("q_T", CHUNK))
    doc = (
        "(k exp(G))^T and (q exp(G))^T: the stationaries that read the carried state."
        if schedule.solves
        else "(q exp(G))^T: the stationary that reads the carried state."
    )
    stage = Stage("decay_from_start", ("constants", "group"), doc, schedule.scan.log.span)
    block = stage.block
    stage.numbers("group", "keys")
    g, kq_T = stage.of_group("g", "kq_T")
    (upto,) = stage.tiles("constants", "upto")
    sums = channel_sums(block, "sums", g, upto)
    factor = block.tile("factor", TURNED, like(kq_T))
    block.do("activation", dst=factor, op=EXP, data=sums)
    for name, first in made:
        dst = block.tile(name, TURNED, like(kq_T))
        block.do(
            "tensor_tensor",
            dst=_slots(dst),
            data1=half_of(kq_T, first),
            data2=_slots(factor),
            op=MULTIPLY,
            engine=GPSIMD,
        )
        block.put("group", **{name: dst})
    return stage.done()


def _slots(view: View) -> Pattern:
    """A tile slot by slot, as `half_of` shows one."""
    steps = ((SLOTS * CHUNK, KEYS), (CHUNK, SLOTS), (ONE, CHUNK))
    return Pattern(view.tile, steps, ZERO)
