"""Functions of what a chunked kernel computes after its rule (see `around`), and its transfers."""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import compare
from backends.nki.program.mentions import used
from backends.nki.program.nodes import Function, Pattern, View
from backends.nki.program.numbers import NONE, ZERO, Name, smallest
from backends.nki.program.structures import EMPTY, Item
from backends.nki.schedules.chunked.around import vanishes
from backends.nki.schedules.chunked.cut import function_of
from backends.nki.schedules.chunked.prologue import fields_of
from backends.nki.schedules.chunked.records import CHUNK, COLUMNS, LANES, VALUES
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.terms import Term
from gdsl.ir.kernel import Output

STEP, POSITION = Name("step"), Name("position")
PARAMETERS = ("constants", "group", "tensors", "sizes", "part")


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the cuts of a chunk's epilogue and what stores its outputs."""
    around = schedule.around
    if not around.output_computed:
        return
    results = {view.tile.name for _, view in around.results}
    yield _keep()
    for place, statements in enumerate(around.epilogue):
        rest = [s for later in around.epilogue[place + 1 :] for s in later]
        yield function_of(
            f"after_rule_{place}",
            PARAMETERS,
            "Part of what becomes of the outputs of one chunk.",
            statements,
            fields_of(schedule),
            {"part": used(rest) | results},
        )
    yield _store(schedule)


def _keep() -> Function:
    doc = "Note the output of a chunk: the next one's may be there before this is used."
    stage = Stage("keep_output", ("group", "part"), doc)
    (output,) = stage.numbers("group", "output")
    stage.block.put("part", output=output)
    return stage.done()


def cuts(schedule: Schedule) -> tuple[str, ...]:
    """Return the names of the functions that compute the outputs of a chunk, in order."""
    return tuple(f"after_rule_{place}" for place in range(len(schedule.around.epilogue)))


def _store(schedule: Schedule) -> Function:
    scan, around = schedule.scan, schedule.around
    stage = Stage(
        "store_outputs",
        ("group", "tensors", "sizes", "team", "part"),
        "The outputs of one chunk on their way out.",
        around.results[0][0].span,
    )
    block = stage.block
    stage.numbers("group", "lanes", "position", "chunk", "values")
    (total,) = stage.numbers("sizes", "total")
    stage.numbers("part", "step")
    token = block.let_named("token", (Name("chunk") + STEP) * CHUNK)
    tokens = block.let_named("tokens", smallest(CHUNK, total - token))
    for output, view in around.results:
        stage.numbers("part", view.tile.name)
        (tensor,) = schedule.tensors(stage, schedule.contract.outputs[output.name].name)
        strides = schedule.strides(stage, output, scan.axis, scan.value_axis)
        zero = vanishes(_term(schedule, output), scan.formulas.result)
        if scan.valid is not None and not (zero and not scan.formulas.query.computed):
            _only_alive(stage, view)
        with block.when(compare(">", tokens, 0)) as body:
            offsets = body.let_named(f"{output.name}_offsets", EMPTY)
            with body.loop("place", POSITION, POSITION + LANES) as (inner, place):
                inner.let_named("lane", Item(Name("team"), place))
                inner.append(str(offsets), schedule.where.offset(output.name, token))
            hbm = View(tensor, tensor.shape)
            body.call("store_rows", hbm, view, offsets, *strides, tokens, VALUES)
    return stage.done()


def _term(schedule: Schedule, output: Output) -> Term:
    return next(term for found, term in schedule.scan.formulas.outputs if found == output)


def _only_alive(stage: Stage, view: View) -> None:
    """Zeros for dead tokens, whose output is not zero by itself."""
    block = stage.block
    stage.numbers("group", "gates", "steps", "column")
    stage.numbers("gates", "chunks", "columns")
    (alive,) = stage.tiles("gates", "alive")
    with block.when(compare("!=", Name("alive"), NONE)) as body:
        steps = ((COLUMNS, CHUNK), (Name("chunks"), LANES), (ZERO, VALUES))
        predicate = Pattern(alive.tile, steps, Name("column") + STEP)
        body.call("only_alive", view, predicate, result=view.tile.name)
