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
    ZERO,
    Largest,
    Literal,
    Name,
    Number,
    binary,
    smallest,
)
from backends.nki.program.structures import EMPTY, Item, Length, Record, Text, Values, tupled
from backends.nki.schedules.chunked import epilogue
from backends.nki.schedules.chunked.records import CHUNK
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.sharding import ABREAST
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.schedules.chunked.steps import choose_action

GROUP, TEAM, CHUNKS = Name("group"), Name("team"), Name("chunks")
MOST_LANES = Name("LANES")
FEW_LANES = 4
"""Groups in flight of less than LANES lanes: their carried states are the longest chain."""
RECORDS = (Name("tensors"), Name("sizes"))
STEP = Name("step")
DECAY = "decay"
"""The action that is of one lane; its step is (step, lane)."""

Call = tuple[str, tuple[Number, ...]]


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the plan of a team's groups, its work in turn, and `run_team`."""
    yield _plan_groups(schedule)
    yield _prepare_in_turn()
    yield _other_work(schedule)
    yield _do_work(schedule)
    yield _run_team(schedule)


def _width(schedule: Schedule) -> Name:
    """Most lanes side by side in an instruction."""
    return ABREAST if schedule.around.output_computed else MOST_LANES


def _plan_groups(schedule: Schedule) -> Function:
    doc = (
        "Groups of a team: (first chunk of its gates, position in the team, lanes, first chunk, "
        "chunks of each lane).\n\n"
        "SLOTS chunks each, of different lanes or, where there are few, of one."
    )
    width = _width(schedule)
    stage = Stage("plan_groups", ("lanes", "chunks", *_given(width)), doc)
    block, lanes = stage.block, Name("lanes")
    block.let_named("items", EMPTY)
    wide = block.let_named("wide", smallest(lanes, width))
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
    doc = (
        "(group, step) for all groups, wave after wave; within a wave each group is one part "
        "behind the one before."
    )
    stage = Stage("prepare_in_turn", ("groups",), doc)
    block, groups, wave = stage.block, Name("groups"), Name("wave")
    block.let_named("order", EMPTY)
    with (
        block.each(("wave",), Name("WAVES")) as of_wave,
        of_wave.loop("time", 0, Length(groups) + Length(wave) - 1) as (of_time, time),
        of_time.loop("behind", 0, Length(wave)) as (body, behind),
    ):
        place = body.let_named("place", time - Length(wave) + 1 + behind)
        there = binary("and", compare(">=", place, 0), compare("<", place, Length(groups)))
        with body.when(there) as inner, inner.each(("stage",), Item(wave, time - place)) as each:
            each.append("order", tupled(Item(groups, place), Name("stage")))
    return stage.done("order")


def _carried(schedule: Schedule) -> dict[str, Call]:
    """What carries the states through one chunk of every lane: calls by the name of the action."""
    arguments = (GROUP, Name("states"), STEP)
    of_lane = (GROUP, Name("states"), Item(STEP, Literal(0)), Item(STEP, Literal(1)))
    calls: dict[str, Call] = {}
    if schedule.solves:
        calls |= {"rest": ("read_state", arguments)} if schedule.scan.channels else {}
        calls["writes"] = ("solve_writes", arguments)
    calls["state"] = ("carry_state", arguments)
    calls[DECAY] = ("decay_lane", of_lane)
    if schedule.scan.checkpoints is not None:
        every = (GROUP, Name("states"), *RECORDS, TEAM, STEP)
        calls["checkpoint"] = ("store_checkpoint", every)
    if not schedule.around.output_computed:
        calls["output"] = ("store_output", (GROUP, *RECORDS, TEAM, STEP))
    return calls


def _finished(schedule: Schedule) -> dict[str, Call]:
    """What is made of the outputs of one chunk of every lane, if they are computed."""
    if not schedule.around.output_computed:
        return {}
    calls: dict[str, Call] = {"keep": ("keep_output", (GROUP, STEP))}
    for name in epilogue.cuts(schedule):
        calls[name] = (name, (Name("constants"), GROUP, *RECORDS, STEP))
    return {**calls, "output": ("store_outputs", (GROUP, *RECORDS, TEAM, STEP))}


def _other_work(schedule: Schedule) -> Function:
    doc = "(group, action, step) for the batch that is inverted and the one that was just loaded."
    stage = Stage("other_work", ("inverted", "loaded"), doc)
    block, carried, finished = stage.block, tuple(_carried(schedule)), tuple(_finished(schedule))
    block.let_named("work", EMPTY)
    if finished:
        _finish_in_turn(block, carried, finished)
    else:
        _carry_side_by_side(block, carried)
    block.call("prepare_in_turn", Name("loaded"), result="order")
    with block.each(("group", "stage"), Name("order")) as body:
        body.append("work", tupled(GROUP, Text("scores"), Name("stage")))
    return stage.done("work")


def _carry_side_by_side(block: Block, carried: tuple[str, ...]) -> None:
    """Two groups of different lanes take each action one after the other."""
    block.comment("Chunks of different lanes, two by two: while one waits, the other goes on.")
    block.let_named("rounds", EMPTY)
    block.let_named("last", EMPTY)
    last, step = Name("last"), Name("step")
    with (
        block.each(("group",), Name("inverted")) as body,
        body.loop("step", 0, Item(GROUP, Text("steps")), exact=True) as (inner, _),
    ):
        other = Item(Item(Item(last, Literal(0)), Literal(0)), Text("position"))
        differs = compare("!=", other, Item(GROUP, Text("position")))
        pair, alone = inner.inner(), inner.inner()
        pair.append("last", tupled(GROUP, step))
        alone.let_named("last", Values((tupled(GROUP, step),), grows=True))
        alone.append("rounds", last)
        inner.decide(binary("and", compare("==", Length(last), 1), differs), pair, alone)
    states = tuple(action for action in carried if action in ("state", DECAY, "checkpoint"))
    with block.each(("some",), Name("rounds")) as body:
        for action in carried:
            together = states if action == "state" else (action,)
            if action in states[1:]:
                continue
            with body.each(("group", "step"), Name("some")) as inner:
                for taken in together:
                    _append(inner, taken, step)


def _append(block: Block, action: str, step: Number) -> None:
    """Add an action of the group at hand to the work, lane by lane if it is of one lane."""
    if action != DECAY:
        block.append("work", tupled(GROUP, Text(action), step))
        return
    with block.loop("lane", 0, Item(GROUP, Text("lanes")), exact=True) as (body, lane):
        body.append("work", tupled(GROUP, Text(action), tupled(step, lane)))


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
    keep, *later = finished
    first = carried.index("state")
    turns = dict.fromkeys(carried[:first], 0)
    turns |= {action: behind for behind, action in enumerate(later, 1)}
    turns |= dict.fromkeys((*carried[first:], keep), 0)
    with block.loop("time", 0, Length(parts) + len(later)) as (body, time):
        for action, behind in turns.items():
            place = time - behind
            there = binary("and", compare(">=", place, 0), compare("<", place, Length(parts)))
            with body.when(there) as inner:
                inner.let_named("taken", Item(parts, place))
                inner.statements.append(Unpack(("group", "part"), "taken"))
                part = Name("part")
                _append(inner, action, Item(part, Text("step")) if action in carried else part)


def _do_work(schedule: Schedule) -> Function:
    doc = "One piece of `other_work`."
    parameters = ("constants", "tensors", "sizes", "states", "team", "work")
    stage = Stage("do_work", parameters, doc)
    block = stage.block
    block.statements.append(Unpack(("group", "action", "step"), "work"))
    scores = ("prepare", (Name("constants"), GROUP, STEP))
    choose_action(block, {"scores": scores, **_carried(schedule), **_finished(schedule)})
    return stage.done()


def _given(width: Name) -> tuple[str, ...]:
    """The width as an argument, where it is no constant of the module."""
    return (str(width),) if width == ABREAST else ()


def _run_team(schedule: Schedule) -> Function:
    doc = (
        "All chunks of a team of lanes.\n\n"
        "Batches of groups are pipelined: while the inverses of one batch are merged step by "
        "step, the\ncarried states go through the batch before it and the scores of the next one "
        "are made."
        if schedule.solves
        else "All chunks of a team of lanes.\n\n"
        "Batches of groups are pipelined: the carried states go through one while the scores of "
        "the next\none are made."
    )
    stage = Stage("run_team", ("constants", "tensors", "sizes", "states", "team"), doc)
    block = stage.block
    width = _width(schedule)
    total, in_flight = stage.numbers("sizes", "total", "groups_in_flight", *_given(width))[:2]
    if schedule.solves:
        stage.numbers("constants", "steps", "levels")
    lanes = block.let_named("lanes", Length(TEAM))
    chunks = block.let_named("chunks", (total + CHUNK - 1) // CHUNK)
    more = (Name(name) for name in _given(width))
    block.call("plan_groups", lanes, chunks, *more, result="items")
    items = Name("items")
    with block.when(compare("<", lanes, width)) as body:
        body.comment(
            "The carried states of few lanes are the longest chain: begin with them\nearly."
        )
        body.let_named("groups_in_flight", smallest(in_flight, FEW_LANES))
    if schedule.solves:
        with block.when(compare("==", Length(Name("levels")), 0)) as body:
            body.call("make_masks", Name("constants"))
    block.let_named("gates", Record((("first_chunk", Literal(-1)),)))
    block.let_named("previous", EMPTY)
    if schedule.solves:
        block.let_named("current", EMPTY)
    batches = block.let_named("batches", (Length(items) + in_flight - 1) // in_flight)
    with block.loop("batch", 0, batches + (2 if schedule.solves else 1)) as (body, batch):
        body.let_named("following", EMPTY)
        last = smallest((batch + 1) * in_flight, Length(items))
        with body.loop("index", batch * in_flight, last) as (inner, index):
            _load(inner, index)
        body.call("other_work", Name("previous"), Name("following"), result="work")
        if schedule.solves:
            _invert_in_turn(body)
            body.statements.append(Rebind(("previous", "current"), ("current", "following")))
        else:
            _work(body, ZERO, Length(Name("work")))
            body.statements.append(Rebind(("previous",), ("following",)))
    return stage.done()


def _invert_in_turn(block: Block) -> None:
    """The steps of the inverses of a batch, with a share of the other work before each."""
    steps, current = Name("steps"), Name("current")
    turns = block.let_named("turns", Length(steps) * Largest(Literal(1), Length(current)))
    with block.loop("turn", 0, turns) as (inner, turn):
        with inner.when(compare(">", Length(current), 0)) as some:
            group = Item(current, turn % Length(current))
            step = Item(steps, turn // Length(current))
            some.call("invert", Name("constants"), group, step)
        share = Length(Name("work"))
        first = (share * turn + turns - 1) // turns
        after = (share * (turn + 1) + turns - 1) // turns
        _work(inner, first, after)


def _work(block: Block, first: Number, after: Number) -> None:
    with block.loop("piece", first, after) as (body, piece):
        given = (Name("constants"), *RECORDS, Name("states"), TEAM)
        body.call("do_work", *given, Item(Name("work"), piece))


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
