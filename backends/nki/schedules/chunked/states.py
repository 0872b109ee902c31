"""The carried states on their way between HBM and SBUF, once per team of lanes."""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.nodes import F32, Function, View
from backends.nki.program.numbers import ZERO, Literal, Name
from backends.nki.program.structures import EMPTY, Length, Record
from backends.nki.schedules.chunked.records import KEYS, TEAM, VALUES, like
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield `load_states` and `store_states`."""
    yield _load(schedule)
    yield _store(schedule)


def _load(schedule: Schedule) -> Function:
    scan = schedule.scan
    stage = Stage(
        "load_states",
        ("constants", "tensors", "sizes", "team"),
        "The carried states of a team: f32, and a copy in the operands' dtype.",
        scan.state.span,
    )
    block = stage.block
    (identity,) = stage.tiles("constants", "identity")
    stage.numbers("sizes", "keys", "values", "fresh")
    shape = (KEYS, Length(TEAM) * VALUES)
    high, low = block.tile("high", shape, F32), block.tile("low", shape, like(identity))
    zeros, given = block.inner(), block.inner()
    zeros.do("memset", dst=high, value=Literal(0.0), engine=GPSIMD)
    zeros.do("memset", dst=low, value=Literal(0.0), engine=GPSIMD)
    _transfer(stage.inside(given), schedule, "load_rows", high, scan.state.argument)
    given.do("tensor_copy", dst=low, src=high, engine=GPSIMD)
    block.decide(Name("fresh"), zeros, given)
    block.let_named("states", Record((("high", Name("high")), ("low", Name("low")))))
    return stage.done("states")


def _store(schedule: Schedule) -> Function:
    scan = schedule.scan
    tensor = schedule.contract.outputs[scan.state_out.name]
    stage = Stage(
        "store_states",
        ("states", "tensors", "sizes", "team"),
        "The states after the last token.",
        scan.state_out.span,
    )
    (high,) = stage.tiles("states", "high")
    stage.numbers("sizes", "keys", "values")
    _transfer(stage, schedule, "store_rows", high, tensor.name)
    return stage.done()


def _transfer(stage: Stage, schedule: Schedule, function: str, chip: View, name: str) -> None:
    """All states of the team at once: keys on partitions, one lane after the other."""
    scan, block = schedule.scan, stage.block
    (tensor,) = schedule.tensors(stage, name)
    steps = schedule.strides(stage, scan.state, scan.key_axis, scan.value_axis)
    offsets = block.let_named("offsets", EMPTY)
    with block.each(("lane",), TEAM) as body:
        body.append("offsets", schedule.where.offset(scan.state.argument, ZERO))
    hbm = View(tensor, tensor.shape)
    ends = (chip, hbm) if function == "load_rows" else (hbm, chip)
    block.call(function, *ends, offsets, *steps, KEYS, VALUES)
