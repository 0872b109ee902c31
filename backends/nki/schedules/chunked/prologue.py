"""Functions of what a chunked kernel computes before its rule (see `around`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backends.nki.program.build import compare
from backends.nki.program.mentions import defined, used
from backends.nki.program.nodes import Function, Statement
from backends.nki.program.numbers import NONE, ONE, ZERO, Literal, Name, number
from backends.nki.schedules.chunked.constants import select
from backends.nki.schedules.chunked.cut import Fields, function_of
from backends.nki.schedules.chunked.gates import per_slot
from backends.nki.schedules.chunked.operators import GREATER_EQUAL
from backends.nki.schedules.chunked.prepare import Step
from backends.nki.schedules.chunked.records import (
    CHUNK,
    KEYS,
    LANES,
    PER_KEY,
    STEPS,
    TILES,
    like,
    tile_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage

_NUMBERS = ("gates", "sizes", "lanes", "steps", "slots", "position", "chunk", "column")
_WIDTHS = ("keys", "values")


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield what is shared by all tokens, and the cuts of a group's prologue."""
    around = schedule.around
    if around.shared:
        names, fields = defined(around.shared), dict(fields_of(schedule))
        del fields["group"]
        yield function_of(
            "share_values",
            ("gates", "tensors", "sizes", "team", "lanes"),
            "What is the same for all tokens of a lane, one lane after the other.",
            around.shared,
            fields,
            {"gates": names},
        )
    if around.log_computed:
        yield _live_decays(schedule)
    cuts = around.before
    later = [s for cut in around.epilogue for s in cut]
    for place, statements in enumerate(cuts):
        rest = [s for cut in cuts[place + 1 :] for s in cut]
        wanted = used([*rest, *later]) | TILES["group"].keys()
        yield function_of(
            f"before_rule_{place}",
            ("constants", "group"),
            "Part of what the rule needs and is no input.",
            statements,
            fields_of(schedule),
            {"group": wanted},
        )


def tables(schedule: Schedule) -> tuple[Step, ...]:
    """Return the steps of `prepare` that groups take together."""
    return _steps(0, len(schedule.around.tables))


def early(schedule: Schedule) -> tuple[Step, ...]:
    """Return the steps of `prepare` that scores wait for."""
    first = len(schedule.around.tables)
    return _steps(first, first + len(schedule.around.prologue))


def late(schedule: Schedule) -> tuple[Step, ...]:
    """Return the steps of `prepare` that only the rest of the rule waits for."""
    last = len(schedule.around.before)
    return _steps(last - len(schedule.around.late), last)


def _steps(first: int, last: int) -> tuple[Step, ...]:
    arguments = (Name("constants"), Name("group"))
    return tuple(Step(f"before_rule_{place}", arguments) for place in range(first, last))


def fields_of(schedule: Schedule) -> Fields:
    """Return what each record holds, in the order in which records are found."""
    around, kernel = schedule.around, schedule.scan.kernel
    made: list[Statement] = [s for cut in around.before for s in cut]
    group = {*TILES["group"], *_NUMBERS, *_WIDTHS, "q_sb", "k_sb", "v_sb", *defined(made)}
    group |= {loaded.name for loaded in around.extra}
    axes = [axis.name for axis in kernel.axes]
    return {
        "part": set(defined(_all(around.epilogue))) | {"step", "output"},
        "group": group,
        "gates": {*TILES["gates"], *defined(around.shared), "chunks", "columns"},
        "constants": set(TILES["constants"]),
        "tensors": {
            *schedule.contract.tensors,
            *(tile.name for tile in schedule.contract.outputs.values()),
        },
        "sizes": {*axes, *(param.name for param in kernel.params), "total", *_WIDTHS},
    }


def _all(cuts: Sequence[Sequence[Statement]]) -> list[Statement]:
    return [statement for cut in cuts for statement in cut]


def _live_decays(schedule: Schedule) -> Function:
    doc = "Log decays with 0 for tokens that are none: past the end, or dead."
    stage = Stage("live_decays", ("group", "sizes", "g"), doc, schedule.scan.log.span)
    block = stage.block
    stage.numbers("group", "gates", "lanes", "steps", "slots", "chunk", "column", "keys")
    (total,) = stage.numbers("sizes", "total")
    first = Name("chunk") * CHUNK
    g = stage.given("g", tile_of("group", "g"))
    with block.when(compare(">", first + STEPS * CHUNK, total)) as body:
        live = body.tile("live", PER_KEY, like(g))
        pattern = ((ZERO, LANES), (number(-1) * CHUNK, STEPS), (ZERO, KEYS))
        select(body, live, g, pattern, Literal(-1), total - first - ONE, GREATER_EQUAL)
        body.let_named("g", Name(live.tile.name))
    if schedule.scan.valid is not None:
        stage.numbers("gates", "chunks", "columns")
        (alive,) = stage.tiles("gates", "alive")
        with block.when(compare("!=", Name("alive"), NONE)) as body:
            body.call("only_alive", g, per_slot(alive, ZERO, KEYS), result="g")
    return stage.done("g")
