"""The carried states on their way between HBM and SBUF, once per team of lanes."""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import compare, part
from backends.nki.program.nodes import F32, Function, View
from backends.nki.program.numbers import ONE, ZERO, Literal, Name
from backends.nki.program.structures import EMPTY, Item, Length, Record
from backends.nki.schedules.chunked.addresses import LANE
from backends.nki.schedules.chunked.records import KEYS, TEAM, VALUES, like
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD
from backends.nki.select.state_moves import Index


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
    pooled = scan.state.slots is not None
    stage.numbers("sizes", "keys", "values", *(() if pooled else ("fresh",)))
    shape = (KEYS, Length(TEAM) * VALUES)
    high, low = block.tile("high", shape, F32), block.tile("low", shape, like(identity))
    zeros, given = block.inner(), block.inner()
    zeros.do("memset", dst=high, value=Literal(0.0), engine=GPSIMD)
    zeros.do("memset", dst=low, value=Literal(0.0), engine=GPSIMD)
    if (index := schedule.entries.read) is None:
        _transfer(stage.inside(given), schedule, "load_rows", high, scan.state.argument)
    else:
        given.comment("A row without an entry to read starts from zeros.")
        given.do("memset", dst=high, value=Literal(0.0), engine=GPSIMD)
        _row_by_row(stage.inside(given), schedule, "load_entry", high, scan.state.argument, index)
    given.do("tensor_copy", dst=low, src=high, engine=GPSIMD)
    if pooled:
        block.extend(given)
    else:
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
    if (index := schedule.entries.write) is None:
        _transfer(stage, schedule, "store_rows", high, tensor.name)
    else:
        _row_by_row(stage, schedule, "store_entry", high, tensor.name, index)
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


def _row_by_row(
    stage: Stage, schedule: Schedule, function: str, chip: View, name: str, index: Index
) -> None:
    """The states of the team, those of one row of the batch at a time, in the entry of the row."""
    scan, block, state = schedule.scan, stage.block, schedule.scan.state
    (tensor,) = schedule.tensors(stage, name)
    block.take("tensors", index.numbers.tile.name)
    steps = schedule.strides(stage, state, scan.key_axis, scan.value_axis)
    first, last = (Item(TEAM, place) for place in (ZERO, Length(TEAM) - 1))
    row_of, within = schedule.where.row_of, schedule.where.offset(state.argument, ZERO)
    if state.slots is None:
        within = within - row_of(LANE) * schedule.strides(stage, state, scan.mapped[0])[0]
    begin = block.let_named("begin", ZERO)
    with block.loop("row", row_of(first), row_of(last) + 1) as (body, row):
        offsets = body.let_named("offsets", EMPTY)
        mine = compare("==", row_of(LANE), row)
        with body.each(("lane",), TEAM) as lanes, lanes.when(mine) as own:
            own.append("offsets", within)
        count = body.let_named("count", Length(offsets))
        columns = part(chip, None, (begin * VALUES, count * VALUES))
        number = part(index.numbers, None, (row, ONE))
        hbm = View(tensor, tensor.shape)
        ends = (columns, hbm) if function == "load_entry" else (hbm, columns)
        body.call(function, *ends, offsets, number, *steps, KEYS, VALUES)
        body.let_named("begin", begin + count)
