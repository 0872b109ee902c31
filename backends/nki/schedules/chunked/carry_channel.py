"""The writes of a chunk for a decay per channel: the carried state is read before the solve.

A factor per token and channel has channels on partitions to read the state with. Folding it into
W = X (k exp(G)) would need it a second time with tokens on partitions.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.nodes import F32, Function, Pattern, Space
from backends.nki.program.numbers import ONE, Name
from backends.nki.schedules.chunked.operators import SUBTRACT
from backends.nki.schedules.chunked.records import (
    CHUNK,
    LANES,
    SLOTS,
    STEPS,
    VALUES,
    like,
    slot_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import VECTOR

STEP, POSITION = Name("step"), Name("position")


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield `read_state` and `solve_writes`."""
    yield _read_state(schedule)
    yield _solve_writes(schedule)


def _read_state(schedule: Schedule) -> Function:
    doc = "v - (k exp(G)) S for one chunk of every lane of the group."
    stage = Stage("read_state", ("group", "states", "step"), doc, schedule.scan.solve_span)
    block = stage.block
    stage.numbers("group", "lanes", "steps", "slots", "position", "keys", "values")
    v, k_T = stage.tiles("group", "v", "k_T")
    (low,) = stage.tiles("states", "low")
    found = block.tile("found", (CHUNK, LANES * VALUES), F32, Space.PSUM)
    with block.loop("lane", 0, LANES) as (body, lane):
        body.do(
            "nc_matmul",
            dst=slot_of(found, lane, VALUES),
            stationary=slot_of(k_T, body.let("slot", lane * STEPS + STEP), CHUNK),
            moving=slot_of(low, POSITION + lane, VALUES),
            accumulate=False,
        )
    rest = block.tile("rest", (CHUNK, LANES * VALUES), like(v))
    of_step = ((SLOTS * VALUES, CHUNK), (STEPS * VALUES, LANES), (ONE, VALUES))
    block.do(
        "tensor_tensor",
        dst=rest,
        data1=Pattern(v.tile, of_step, STEP * VALUES),
        data2=found,
        op=SUBTRACT,
        engine=VECTOR,
    )
    block.put("group", rest=rest)
    return stage.done()


def _solve_writes(schedule: Schedule) -> Function:
    doc = "w = X (v - (k exp(G)) S)."
    stage = Stage("solve_writes", ("group", "states", "step"), doc, schedule.scan.solve_span)
    block = stage.block
    stage.numbers("group", "lanes", "steps", "values")
    rest, X_T = stage.tiles("group", "rest", "X_T")
    writes = block.tile("writes", (CHUNK, LANES * VALUES), F32, Space.PSUM)
    with block.loop("lane", 0, LANES) as (body, lane):
        body.do(
            "nc_matmul",
            dst=slot_of(writes, lane, VALUES),
            stationary=slot_of(X_T, body.let("slot", lane * STEPS + STEP), CHUNK),
            moving=slot_of(rest, lane, VALUES),
            accumulate=False,
        )
    w = block.tile("w", (CHUNK, LANES * VALUES), like(rest))
    block.do("tensor_copy", dst=w, src=writes, engine=VECTOR)
    block.put("group", w=w)
    return stage.done()
