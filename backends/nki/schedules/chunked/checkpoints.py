"""The states after every so many tokens, for kernels that return them (`every N -> P`).

N is a multiple of the chunk, so that a checkpoint is the carried state between two chunks. A row
that ends before one has zeros there.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import F32, U8, Function, Pattern, View
from backends.nki.program.numbers import NONE, ONE, ZERO, Literal, Name, binary
from backends.nki.program.structures import EMPTY, Item
from backends.nki.schedules.chunked.alive import length_of, lengths_in
from backends.nki.schedules.chunked.operators import GREATER_EQUAL
from backends.nki.schedules.chunked.records import CHUNK, KEYS, LANES, TEAM, VALUES, slot_of
from backends.nki.schedules.chunked.scan import Valid
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD
from gdsl.ir.kernel import Output

END, POSITION = Name("end"), Name("position")
PARAMETERS = ("group", "states", "tensors", "sizes", "team", "step")


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield `store_checkpoint` for a kernel that returns checkpoints."""
    if schedule.scan.checkpoints is not None:
        yield _store(schedule, schedule.scan.checkpoints)


def _store(schedule: Schedule, output: Output) -> Function:
    scan = schedule.scan
    doc = "The states after a chunk, where it ends at a checkpoint."
    stage = Stage("store_checkpoint", PARAMETERS, doc, output.span)
    block = stage.block
    stage.numbers("group", "lanes", "position", "chunk", "keys", "values")
    (high,) = stage.tiles("states", "high")
    tensor = schedule.contract.outputs[output.name]
    lengths = "" if scan.valid is None else lengths_in(schedule, scan.valid)
    block.take("tensors", tensor.name, *((lengths,) if lengths else ()))
    (every, total) = stage.numbers("sizes", "every", "total")
    strides = schedule.strides(stage, output, scan.key_axis, scan.value_axis)
    end = block.let_named("end", (Name("chunk") + Name("step") + 1) * CHUNK)
    there = binary("and", compare("<=", end, total), compare("==", end % every, 0))
    with block.when(there) as body:
        index = body.let_named("index", end // every - 1)
        body.let_named("offsets", EMPTY)
        with body.loop("place", POSITION, POSITION + LANES) as (inner, place):
            inner.let_named("lane", Item(TEAM, place))
            inner.append("offsets", schedule.where.offset(output.name, index))
        columns = part(high, None, (POSITION * VALUES, LANES * VALUES))
        hbm, row = View(tensor, tensor.shape), (*strides, KEYS, VALUES)
        if scan.valid is None:
            body.call("store_rows", hbm, columns, Name("offsets"), *row)
        else:
            whole, ended = body.inner(), body.inner()
            whole.call("store_rows", hbm, columns, Name("offsets"), *row)
            shown = _shown(ended, schedule, scan.valid, high)
            ended.call("store_rows", hbm, shown, Name("offsets"), *row)
            if scan.valid.slots is not None:
                body.extend(ended)
            else:
                body.decide(compare("==", Name(lengths), NONE), whole, ended)
    return stage.done()


def _shown(block: Block, schedule: Schedule, valid: Valid, high: View) -> View:
    """The states of rows that have as many tokens, zeros for the others."""
    shown = block.tile("shown", (KEYS, LANES * VALUES), F32)
    block.do("memset", dst=shown, value=Literal(0.0), engine=GPSIMD)
    with block.loop("place", ZERO, LANES) as (body, place):
        body.let_named("lane", Item(TEAM, POSITION + place))
        length = length_of(body, schedule, valid, KEYS)
        reached = body.tile("reached", (KEYS, ONE), U8)
        body.do("tensor_scalar", dst=reached, data=length, op0=GREATER_EQUAL, operand0=END)
        body.do(
            "tensor_copy_predicated",
            dst=slot_of(shown, place, VALUES),
            src=slot_of(high, POSITION + place, VALUES),
            predicate=Pattern(reached.tile, ((ONE, KEYS), (ZERO, VALUES)), ZERO),
        )
    return shown
