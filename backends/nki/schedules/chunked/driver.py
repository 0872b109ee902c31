"""Which group of chunks takes which step when: the software pipeline, as trace-time control flow.

Nothing here computes: batches of groups go through the inverse step by step, and between the steps
stand the carried states of the batch before and the scores of the batch after, so that the wait of
one group for an engine is filled with the work of another.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import Function, Rebind, Unpack
from backends.nki.program.numbers import (
    Largest,
    Literal,
    Name,
    Number,
    binary,
    smallest,
)
from backends.nki.program.structures import EMPTY, Item, Length, Record, Text, tupled
from backends.nki.schedules.chunked import epilogue
from backends.nki.schedules.chunked.records import CHUNK
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.schedules.chunked.steps import choose_action

GROUP, TEAM, CHUNKS = Name("group"), Name("team"), Name("chunks")
WIDTH = Name("LANES")
FEW_LANES = 4
"""Groups in flight of less than LANES lanes: their carried states are the longest chain."""
RECORDS = (Name("tensors"), Name("sizes"))


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the plan of a team's groups, its work in turn, and `run_team`."""
    yield _plan_groups()
    yield _prepare_in_turn()
    yield _other_work(schedule)
    yield _do_work(schedule)
    yield _run_team()


def _plan_groups() -> Function:
    doc = (
        "Groups of a team: (first chunk of its gates, position in the team, lanes, first chunk, "
        "chunks of each lane).\n\n"
        "SLOTS chunks each, of different lanes or, where there are few, of one."
    )
    stage = Stage("plan_groups", ("lanes", "chunks"), doc)
    block, lanes = stage.block, Name("lanes")
    block.let_named("items", EMPTY)
    wide = block.let_named("wide", smallest(lanes, WIDTH))
    steps = block.let_named("steps", Name("SLOTS") // wide)
    block_chunks = block.let_named("block_chunks", Name("GATE_COLUMNS") // lanes)
    with block.loop("first", 0, CHUNKS, block_chunks) as (body, first):
        last = body.let_named("last", smallest(first + block_chunks, CHUNKS))
        with (
            body.loop("chunk", first, last, steps) as (each, chunk),
            each.loop("position", 0, lanes, wide) as (inner, position),
        ):
            count = smallest(wide, lanes - position)
            item = tupled(first, position, count, chunk, smallest(steps, last - chunk))
            inner.append("items", item)
    return stage.done("items")


def _prepare_in_turn() -> Function:
    doc = "(group, stage) for all groups, each group one stage behind the one before."
    stage = Stage("prepare_in_turn", ("groups",), doc)
    block, groups, stages = stage.block, Name("groups"), Name("STAGES")
    block.let_named("order", EMPTY)
    with block.loop("time", 0, Length(groups) + stages - 1) as (body, time):
        first, last = Largest(Literal(0), time - stages + 1), smallest(Length(groups), time + 1)
        with body.loop("position", first, last) as (inner, position):
            inner.append("order", tupled(Item(groups, position), time - position))
    return stage.done("order")


def _carried(schedule: Schedule) -> dict[str, tuple[str, tuple[Number, ...]]]:
    """What carries the states through one chunk of every lane: calls by the name of the action."""
    arguments = (GROUP, Name("states"), Name("step"))
    calls: dict[str, tuple[str, tuple[Number, ...]]] = {
        "writes": ("solve_writes", arguments),
        "state": ("carry_state", arguments),
    }
    if schedule.scan.checkpoints is not None:
        every = (GROUP, Name("states"), *RECORDS, TEAM, Name("step"))
        calls["checkpoint"] = ("store_checkpoint", every)
    rest = {"rest": ("read_state", arguments)} if schedule.scan.channels else {}
    if schedule.around.output_computed:
        return {**rest, **calls}
    output = ("store_output", (GROUP, *RECORDS, TEAM, Name("step")))
    return {**rest, **calls, "output": output}


def _finished(schedule: Schedule) -> dict[str, tuple[str, tuple[Number, ...]]]:
    """What is made of the outputs of one chunk of every lane, if they are computed."""
    if not schedule.around.output_computed:
        return {}
    cuts, part = epilogue.cuts(schedule), Name("step")
    calls: dict[str, tuple[str, tuple[Number, ...]]] = {
        name: (name, (Name("constants"), GROUP, *RECORDS, part)) for name in cuts
    }
    kept = ("keep_output", (GROUP, part))
    return {"keep": kept} | calls | {"output": ("store_outputs", (GROUP, *RECORDS, TEAM, part))}


def _other_work(schedule: Schedule) -> Function:
    doc = "(group, action, step) for the batch that is inverted and the one that was just loaded."
    stage = Stage("other_work", ("inverted", "loaded"), doc)
    block, carried = stage.block, _carried(schedule)
    block.let_named("work", EMPTY)
    finished = _finished(schedule)
    if finished:
        _finish_in_turn(block, tuple(carried), tuple(finished))
    else:
        with (
            block.each(("group",), Name("inverted")) as body,
            body.loop("step", 0, Item(GROUP, Text("steps"))) as (inner, step),
        ):
            for action in carried:
                inner.append("work", tupled(GROUP, Text(action), step))
    block.call("prepare_in_turn", Name("loaded"), result="order")
    return _interleaved(stage)


def _interleaved(stage: Stage) -> Function:
    """Spread what is prepared evenly among the rest of the work."""
    block, work, order = stage.block, Name("work"), Name("order")
    every = block.let_named("every", Length(work) + Length(order))
    block.let_named("mixed", EMPTY)
    with block.loop("place", 0, every) as (body, place):
        before = body.let_named("before", place * Length(order) // every)
        here = compare(">", (place + 1) * Length(order) // every, before)
        prepared, other = body.inner(), body.inner()
        taken = prepared.let_named("taken", Item(order, before))
        group, step = (Item(taken, Literal(i)) for i in range(2))
        prepared.append("mixed", tupled(group, Text("scores"), step))
        other.append("mixed", Item(work, place - before))
        body.decide(here, prepared, other)
    return stage.done("mixed")


def _finish_in_turn(block: Block, carried: tuple[str, ...], finished: tuple[str, ...]) -> None:
    """Chunks one after the other, the outputs of each one step behind those of the next.

    What is known of the outputs of a chunk is a record of its own, since a group may have several.
    """
    block.let_named("parts", EMPTY)
    with (
        block.each(("group",), Name("inverted")) as body,
        body.loop("step", 0, Item(GROUP, Text("steps"))) as (inner, step),
    ):
        inner.append("parts", tupled(GROUP, Record((("step", step),))))
    parts = Name("parts")
    *before, after = carried
    turns = dict.fromkeys(before, 0)
    turns |= {action: behind for behind, action in enumerate(finished[1:], 1)}
    turns |= {after: 0, finished[0]: 0}
    with block.loop("time", 0, Length(parts) + len(finished) - 1) as (body, time):
        for action, behind in turns.items():
            place = time - behind
            there = binary("and", compare(">=", place, 0), compare("<", place, Length(parts)))
            with body.when(there) as inner:
                inner.let_named("part", Item(parts, place))
                group, part = (Item(Name("part"), Literal(i)) for i in range(2))
                given = Item(part, Text("step")) if action in carried else part
                inner.append("work", tupled(group, Text(action), given))


def _do_work(schedule: Schedule) -> Function:
    doc = "One piece of `other_work`."
    parameters = ("constants", "tensors", "sizes", "states", "team", "work")
    stage = Stage("do_work", parameters, doc)
    block = stage.block
    block.statements.append(Unpack(("group", "action", "step"), "work"))
    scores = ("prepare", (Name("constants"), GROUP, Name("step")))
    choose_action(block, {"scores": scores, **_carried(schedule), **_finished(schedule)})
    return stage.done()


def _run_team() -> Function:
    doc = (
        "All chunks of a team of lanes.\n\n"
        "Batches of groups are pipelined: while the inverses of one batch are merged step by "
        "step, the\ncarried states go through the batch before it and the scores of the next one "
        "are made."
    )
    stage = Stage("run_team", ("constants", "tensors", "sizes", "states", "team"), doc)
    block = stage.block
    total, in_flight = stage.numbers("sizes", "total", "groups_in_flight")
    steps, levels = stage.numbers("constants", "steps", "levels")
    lanes = block.let_named("lanes", Length(TEAM))
    chunks = block.let_named("chunks", (total + CHUNK - 1) // CHUNK)
    block.call("plan_groups", lanes, chunks, result="items")
    items = Name("items")
    with block.when(compare("<", lanes, WIDTH)) as body:
        body.comment(
            "The carried states of few lanes are the longest chain: begin with them\nearly."
        )
        body.let_named("groups_in_flight", smallest(in_flight, FEW_LANES))
    block.let_named("gates", Record((("first_chunk", Literal(-1)),)))
    block.let_named("previous", EMPTY)
    block.let_named("current", EMPTY)
    batches = block.let_named("batches", (Length(items) + in_flight - 1) // in_flight)
    with block.loop("batch", 0, batches + 2) as (body, batch):
        body.let_named("following", EMPTY)
        last = smallest((batch + 1) * in_flight, Length(items))
        with body.loop("index", batch * in_flight, last) as (inner, index):
            _load(inner, index)
        with body.when(compare("==", Length(levels), 0)) as inner:
            inner.call("make_masks", Name("constants"))
        body.call("other_work", Name("previous"), Name("following"), result="work")
        current = Name("current")
        turns = body.let_named("turns", Length(steps) * Largest(Literal(1), Length(current)))
        with body.loop("turn", 0, turns) as (inner, turn):
            with inner.when(compare(">", Length(current), 0)) as some:
                group = Item(current, turn % Length(current))
                step = Item(steps, turn // Length(current))
                some.call("invert", Name("constants"), group, step)
            share = Length(Name("work"))
            first = (share * turn + turns - 1) // turns
            after = (share * (turn + 1) + turns - 1) // turns
            with inner.loop("piece", first, after) as (work, piece):
                given = (Name("constants"), *RECORDS, Name("states"), TEAM)
                work.call("do_work", *given, Item(Name("work"), piece))
        body.statements.append(Rebind(("previous", "current"), ("current", "following")))
    return stage.done()


def _load(block: Block, index: Number) -> None:
    """Load the group of an item, and the gates of its block of chunks when they change."""
    block.let_named("item", Item(Name("items"), index))
    parts = ("first", "position", "count", "chunk", "steps_of_lane")
    block.statements.append(Unpack(parts, "item"))
    first, given = Name("first"), (*RECORDS, TEAM)
    with block.when(compare("!=", Item(Name("gates"), Text("first_chunk")), first)) as body:
        count = smallest(Name("GATE_COLUMNS") // Name("lanes"), CHUNKS - first)
        body.call("make_gates", Name("constants"), *given, first, count, result="gates")
    arguments = [Name(name) for name in parts[1:]]
    block.call("load_group", Name("gates"), *given, *arguments, result="group")
    block.append("following", GROUP)
