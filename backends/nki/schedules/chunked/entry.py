"""The entry of a chunked kernel: its contract, the records of tensors and sizes, teams of lanes."""

from __future__ import annotations

from backends.nki.contract import Limit
from backends.nki.program.build import Block, compare
from backends.nki.program.mentions import names_in
from backends.nki.program.nodes import F32, Space, Tile
from backends.nki.program.numbers import (
    NONE,
    Choice,
    Literal,
    Name,
    Number,
    binary,
    smallest,
)
from backends.nki.program.structures import DtypeName, Length, Record, Slice, Text
from backends.nki.schedules.chunked.before import Before
from backends.nki.schedules.chunked.formulas import numbers_of
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.sharding import ABREAST, as_many, write_lanes, write_share
from gdsl.algorithm.inverses import NAMES

PARTITIONS = 128
MORE_KEYS = "go token by token, with `form=recurrent` and `key_tiles=2` for up to 256 keys"
OF_ITS_OWN = f"compute the recurrence in a kernel of its own, and {MORE_KEYS}"
"""The same where sections stand in front."""
MOST_GROUPS = 14
"""Groups in flight that fit SBUF in 16 bits at the largest sizes, chunks of 128 tokens."""
MOST_ASKED = 16
"""What a caller may ask for, unless the text's own default is more."""
TEAM, TILES = Name("TEAM"), Name("tiles")


def write_entry(main: Block, schedule: Schedule, before: Before) -> None:
    """Add the statements of the entry."""
    contract, scan = schedule.contract, schedule.scan
    main.banner("Sizes and contract")
    if scan.every is not None:
        main.require(
            compare("==", scan.every % Name("CHUNK"), 0),
            f"{scan.every} must be a multiple of the chunk, {{CHUNK}}, got {{{scan.every}}}",
        )
    contract.write_sizes(main)
    fresh = _fresh_state(main, schedule)
    missing = contract.optional - {scan.state.argument}
    alone = not before.front.projected and not before.front.filtered
    remedy = MORE_KEYS if alone else OF_ITS_OWN
    contract.write_checks(main, (Limit(scan.key_axis, PARTITIONS, remedy=remedy),), missing)
    _check_arguments(main, schedule)
    contract.write_outputs(main)
    contract.write_indices(main)
    schedule.entries.bring_in(main)
    before.write(main)
    main.banner("Chunks")
    write_lanes(main, schedule)
    _records(main, schedule, fresh)
    _teams(main, schedule)


def _fresh_state(main: Block, schedule: Schedule) -> Number:
    """Whether states begin at zero; makes the tensor that the caller did not bring."""
    state = schedule.scan.state
    if not state.optional or state.slots is not None:
        return Literal(False)
    fresh = main.let_named("fresh", compare("==", Name(state.argument), NONE))
    tile = schedule.contract.tensors[state.argument]
    with main.when(fresh) as body:
        body.create(Tile(tile.name, tile.shape, tile.element, Space.SHARED_HBM))
    return fresh


def _check_arguments(main: Block, schedule: Schedule) -> None:
    """What the caller may give for the schedule keys that are arguments, and for the dtypes."""
    for exposed in schedule.plan.exposed:
        argument = Name(exposed.argument)
        if exposed.key == "inverse":
            known = [compare("==", argument, Text(name)) for name in NAMES]
            message = f"{argument} must be {' or '.join(NAMES)}, got {{{argument}}}"
            main.require(binary("or", *known), message)
        if exposed.key == "group":
            most = max(MOST_ASKED, int(exposed.default))
            low, high = compare(">=", argument, 1), compare("<=", argument, most)
            main.require(
                binary("and", low, high), f"{argument} must be 1 to {most}, got {{{argument}}}"
            )


def _records(main: Block, schedule: Schedule, fresh: Number) -> None:
    contract, scan = schedule.contract, schedule.scan
    names = dict.fromkeys((*contract.tensors, *(t.name for t in contract.outputs.values())))
    names |= dict.fromkeys(schedule.entries.names)
    main.let_named("tensors", Record(tuple((name, Name(name)) for name in names)))
    main.let_named(
        "sizes",
        Record(
            (
                *((axis.name, Name(axis.name)) for axis in scan.kernel.axes),
                *((name, Name(name)) for name in _params(schedule)),
                ("tiles", TILES),
                ("keys", Name(scan.key_axis)),
                ("values", Name("values")),
                ("total", Name(scan.axis)),
                ("factor", scan.scale),
                ("fresh", fresh),
                ("groups_in_flight", _groups(schedule)),
                *(((str(ABREAST), ABREAST),) if schedule.around.output_computed else ()),
                *((("every", _distance(schedule)),) if scan.every is not None else ()),
            )
        ),
    )
    query = scan.query.name
    main.call("make_constants", Name(query), result="constants")
    if schedule.solves:
        main.call("inverse_steps", _algorithm(schedule), schedule.operand_dtype, result="steps")
        main.put("constants", algorithm=_algorithm(schedule), steps=Name("steps"))


def _distance(schedule: Schedule) -> Number:
    """Tokens between checkpoints, more than there are where the caller asks for none."""
    every = schedule.scan.every
    assert every is not None
    if isinstance(every, Literal):
        return every
    return Choice(compare(">", every, 0), every, Name(schedule.scan.axis) + 1)


def _params(schedule: Schedule) -> tuple[str, ...]:
    """The numbers of the caller that what is computed around the rule needs."""
    formulas = schedule.scan.formulas
    terms = (formulas.log, formulas.beta, formulas.key.factor, *(t for _, t in formulas.outputs))
    names = names_in(numbers_of(terms)) if schedule.around.output_computed else ()
    return tuple(p.name for p in schedule.scan.kernel.params if p.name in names)


def _groups(schedule: Schedule) -> Number:
    """Groups under way: the schedule's `group`, which may be an argument, as memory allows."""
    # What stands around the rule makes the way of a group longer.
    more = 6 if schedule.around.output_computed else 0
    asked: Number = Literal(int(schedule.plan.settings["group"]) + more)
    for exposed in schedule.plan.exposed:
        if exposed.key == "group":
            asked = Name(exposed.argument)
    most = MOST_GROUPS * schedule.scan.chunk.chunk // PARTITIONS
    single = compare("==", schedule.operand_dtype, DtypeName(F32))
    fit = Choice(single, Literal(max(1, most // 2)), Literal(max(1, most)))
    return smallest(asked, as_many(schedule, fit))


def _algorithm(schedule: Schedule) -> Number:
    """The inverse, as the argument that carries it or as a name."""
    for exposed in schedule.plan.exposed:
        if exposed.key == "inverse":
            return Name(exposed.argument)
    return Text(str(schedule.plan.settings["inverse"]))


def _teams(main: Block, schedule: Schedule) -> None:
    mine = write_share(main, schedule)
    lanes = as_many(schedule, TEAM)
    if lanes != TEAM:
        lanes = main.let_named("lanes_of_team", lanes)
    with main.loop("start", 0, Length(mine), lanes) as (body, start):
        body.let_named("team", Slice(mine, start, start + lanes))
        records = (Name("tensors"), Name("sizes"))
        team, states = Name("team"), Name("states")
        body.call("load_states", Name("constants"), *records, team, result="states")
        body.call("run_team", Name("constants"), *records, states, team)
        body.call("store_states", states, *records, team)
