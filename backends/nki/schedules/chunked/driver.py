"""Which group of chunks takes which step when: the software pipeline, as trace-time control flow.

Nothing here computes. Every group goes through the same ticks, from its transfers to its outputs,
and each begins `interval` ticks after the one before: at every tick some groups are loaded or
scored, others inverted or carried on, so that the wait of one for an engine is filled with the work
of another, and every engine always has about the same to do.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import Function, Unpack
from backends.nki.program.numbers import (
    ZERO,
    Largest,
    Literal,
    Name,
    Number,
    binary,
    smallest,
)
from backends.nki.program.structures import EMPTY, Item, Length, Record, Slice, Text, Values, tupled
from backends.nki.schedules.chunked import epilogue
from backends.nki.schedules.chunked.records import CHUNK
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.sharding import ABREAST
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.schedules.chunked.steps import choose_action

GROUP, TEAM, CHUNKS = Name("group"), Name("team"), Name("chunks")
MOST_LANES = Name("LANES")
RECORDS = (Name("tensors"), Name("sizes"))
STEP, TICKS = Name("step"), Name("ticks")

Call = tuple[str, tuple[Number, ...]]
Tick = tuple[str, ...]
"""Names of the actions of one tick."""


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the plan of a team's groups, the ticks of a group, and `run_team`."""
    yield _plan_groups(schedule)
    yield _plan_ticks(schedule)
    yield _do_work(schedule)
    yield _run_team(schedule)


def _width(schedule: Schedule) -> Name:
    """Most lanes side by side in an instruction."""
    return ABREAST if schedule.around.output_computed else MOST_LANES


def _given(width: Name) -> tuple[str, ...]:
    """The width as an argument, where it is no constant of the module."""
    return (str(width),) if width == ABREAST else ()


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


def _carried(schedule: Schedule) -> tuple[Tick, ...]:
    """What carries the states through one chunk of every lane."""
    done = ("checkpoint",) if schedule.scan.checkpoints is not None else ()
    decayed = ("decay", *done, "keep" if schedule.around.output_computed else "output")
    if not schedule.solves:
        return (("state",), decayed)
    if schedule.scan.channels:
        return (("rest",), ("writes",), ("state",), decayed)
    return (("writes",), ("state", *decayed))


def _finished(schedule: Schedule) -> tuple[Tick, ...]:
    """What is made of the outputs of one chunk of every lane, if they are computed."""
    if not schedule.around.output_computed:
        return ()
    return (*((name,) for name in epilogue.cuts(schedule)), ("output",))


def _calls(schedule: Schedule) -> dict[str, Call]:
    """What the actions of a chunk call."""
    constants, states = Name("constants"), Name("states")
    part = Item(Item(GROUP, Text("parts")), STEP)
    arguments = (GROUP, states, STEP)
    calls: dict[str, Call] = {
        "rest": ("read_state", arguments),
        "writes": ("solve_writes", arguments),
        "state": ("carry_state", arguments),
        "decay": ("decay_states", arguments),
        "checkpoint": ("store_checkpoint", (GROUP, states, *RECORDS, TEAM, STEP)),
        "output": ("store_output", (GROUP, *RECORDS, TEAM, STEP)),
    }
    if schedule.around.output_computed:
        calls["keep"] = ("keep_output", (GROUP, part))
        calls["output"] = ("store_outputs", (GROUP, *RECORDS, TEAM, part))
        for name in epilogue.cuts(schedule):
            calls[name] = (name, (constants, GROUP, *RECORDS, part))
    used = {action for tick in (*_carried(schedule), *_finished(schedule)) for action in tick}
    return {action: call for action, call in calls.items() if action in used}


def _plan_ticks(schedule: Schedule) -> Function:
    carried, finished = _carried(schedule), _finished(schedule)
    doc = "(action, step) of a group at every tick since its transfers; `chunks` of each lane."
    tabled = bool(schedule.around.tables)
    waits = ("before", "after") if tabled else ()
    stage = Stage("plan_ticks", (*_steps(schedule), "chunks", *waits), doc)
    block, count = stage.block, Literal(len(carried))
    block.let_named("ticks", EMPTY)
    _wait(block, Name("LOAD_TICKS"))
    if tabled:
        _take_parts(block, Name("LOADED"))
        block.comment("Groups wait for one another: they need another function table at once.")
        _wait(block, Name("before"))
        _take_parts(block, Name("TABLED"))
        _wait(block, Name("after"))
    _take_parts(block, Name("PARTS"))
    if schedule.solves:
        first = block.let_named("first", Length(TICKS))
        with block.each(("step",), Name("steps")) as body:
            body.append("ticks", Values((tupled(Text("inverse"), STEP),), grows=True))
        if not schedule.scan.channels:
            _take_beside(block, first)
    with block.loop("chunk", 0, CHUNKS, exact=True) as (body, chunk):
        for tick in carried:
            work = Values(tuple(tupled(Text(action), chunk) for action in tick), grows=True)
            body.append("ticks", work)
    if finished:
        block.comment("Outputs follow while the next chunk is carried on.")
        first = block.let_named("first", Length(TICKS) - count * CHUNKS + count)
        _wait(block, Literal(len(finished)))
        with block.loop("chunk", 0, CHUNKS, exact=True) as (body, chunk):
            for place, tick in enumerate(finished):
                body.let_named("tick", Item(TICKS, first + chunk * count + place))
                for action in tick:
                    body.append("tick", tupled(Text(action), chunk))
    return stage.done("ticks")


def _steps(schedule: Schedule) -> tuple[str, ...]:
    """The steps of the inverse as an argument, if there is one."""
    return ("steps",) if schedule.solves else ()


def _wait(block: Block, count: Number) -> None:
    with block.loop("tick", 0, count, exact=True) as (body, _):
        body.append("ticks", EMPTY)


def _take_parts(block: Block, parts: Number) -> None:
    with block.each(("part",), parts) as body:
        body.let_named("work", EMPTY)
        with body.each(("stage",), Name("part")) as inner:
            inner.append("work", tupled(Text("scores"), Name("stage")))
        body.append("ticks", Name("work"))


def _take_beside(block: Block, first: Number) -> None:
    block.comment("What the inverse does not wait for goes along with it.")
    beside = Name("BESIDE")
    with block.loop("place", 0, Length(beside)) as (body, place):
        with body.when(compare("==", first + place, Length(TICKS))) as after:
            after.append("ticks", EMPTY)
        body.let_named("tick", Item(TICKS, first + place))
        with body.each(("stage",), Item(beside, place)) as inner:
            inner.append("tick", tupled(Text("scores"), Name("stage")))
    block.append("ticks", EMPTY)


def _do_work(schedule: Schedule) -> Function:
    doc = "One action of a group."
    parameters = ("constants", "tensors", "sizes", "states", "team", "group", "work")
    stage = Stage("do_work", parameters, doc)
    block = stage.block
    block.statements.append(Unpack(("action", "step"), "work"))
    calls: dict[str, Call] = {
        "scores": ("prepare", (Name("constants"), GROUP, STEP)),
    }
    if schedule.solves:
        calls["inverse"] = ("invert", (Name("constants"), GROUP, STEP))
    choose_action(block, {**calls, **_calls(schedule)})
    return stage.done()


def _run_team(schedule: Schedule) -> Function:
    doc = (
        "All chunks of a team of lanes.\n\n"
        "Groups are pipelined: each begins `interval` ticks after the one before it, and of the\n"
        "groups under way the youngest comes first at a tick."
    )
    stage = Stage("run_team", ("constants", "tensors", "sizes", "states", "team"), doc)
    block = stage.block
    width = _width(schedule)
    total, in_flight = stage.numbers("sizes", "total", "groups_in_flight", *_given(width))[:2]
    if schedule.solves:
        stage.numbers("constants", "steps", "levels")
    lanes = block.let_named("lanes", Length(TEAM))
    chunks = block.let_named("chunks", (total + CHUNK - 1) // CHUNK)
    given_width = (Name(name) for name in _given(width))
    block.call("plan_groups", lanes, chunks, *given_width, result="items")
    items, interval, active = Name("items"), Name("interval"), Name("active")
    wide = block.let_named("wide", smallest(lanes, width))
    rounds = block.let_named("rounds", (lanes + wide - 1) // wide)
    of_lane = Name("SLOTS") // wide
    waits = (ZERO, ZERO) if schedule.around.tables else ()
    steps = tuple(Name(name) for name in _steps(schedule))
    block.call("plan_ticks", *steps, of_lane, *waits, result="ticks")
    block.comment("The next chunks of the same lanes begin with the states that these ones leave.")
    carried = block.let_named("carried", Literal(len(_carried(schedule))) * of_lane)
    least = (carried + rounds - 1) // rounds
    block.let_named("interval", Largest(Length(TICKS) // in_flight, least))
    block.let_named("gates", Record((("first_chunk", Literal(-1)),)))
    block.let_named("active", EMPTY)
    last = (Length(items) - 1) * interval + Length(TICKS)
    if schedule.around.tables:
        last += (Name("TOGETHER") - 1) * interval
    with block.loop("tick", 0, last, exact=True) as (body, tick):
        begins = compare("==", tick % interval, 0)
        more = compare("<", tick // interval, Length(items))
        with body.when(binary("and", begins, more)) as inner:
            _load(schedule, inner, tick // interval)
            inner.append("active", tupled(tick, GROUP, Name("ticks")))
            if schedule.solves:
                with inner.when(compare("==", Length(Name("levels")), 0)) as first:
                    first.call("make_masks", Name("constants"))
        with body.loop("older", 0, Length(active)) as (inner, older):
            inner.let_named("taken", Item(active, Length(active) - 1 - older))
            inner.statements.append(Unpack(("begun", "group", "ticks"), "taken"))
            at = inner.let_named("at", tick - Name("begun"))
            with (
                inner.when(compare("<", at, Length(TICKS))) as due,
                due.each(("work",), Item(TICKS, at)) as each,
            ):
                given = (Name("constants"), *RECORDS, Name("states"), TEAM)
                each.call("do_work", *given, GROUP, Name("work"))
        with body.when(compare(">", Length(active), 0)) as some:
            oldest = Item(active, Literal(0))
            age = tick - Item(oldest, Literal(0)) + 1
            with some.when(compare(">=", age, Length(Item(oldest, Literal(2))))) as inner:
                inner.let_named("active", Slice(active, Literal(1), Length(active)))
    return stage.done()


def _load(schedule: Schedule, block: Block, index: Number) -> None:
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
    waits: tuple[Number, ...] = ()
    if schedule.around.tables:
        place, interval = index % Name("TOGETHER"), Name("interval")
        waits = ((Name("TOGETHER") - 1 - place) * interval, place * interval)
    steps = tuple(Name(name) for name in _steps(schedule))
    block.call("plan_ticks", *steps, Name("steps_of_lane"), *waits, result="ticks")
    if schedule.around.output_computed:
        block.let_named("parts", EMPTY)
        with block.loop("step", 0, Name("steps_of_lane"), exact=True) as (body, step):
            body.append("parts", Record((("step", step),)))
        block.put("group", parts=Name("parts"))
