"""Lanes, and which core takes which: the schedule key `shard`.

A lane is one (batch, value head, tile of value columns). Columns are independent of one another, so
that cores may split them as well as heads, unless outputs are folded over them: a norm of the
output needs all columns of a head, which then are one lane.
"""

from __future__ import annotations

from backends.nki.program.build import Block, compare
from backends.nki.program.numbers import (
    ONE,
    Choice,
    Largest,
    Literal,
    Name,
    Number,
    Query,
    binary,
    number,
    product,
    smallest,
)
from backends.nki.program.structures import EMPTY
from backends.nki.refusal import refuse
from backends.nki.schedules.chunked.records import BANK
from backends.nki.schedules.chunked.schedule import Schedule

ABREAST = Name("abreast")
"""Most lanes side by side in an instruction, where lanes have all value columns of a head."""
CORE, CORES = Query("nl.program_id(0)"), Query("nl.num_programs(0)")
TILES, WIDEST = Name("tiles"), Name("MAX_FREE")


def write_lanes(main: Block, schedule: Schedule) -> None:
    """Bind `tiles` and `values`: how many tiles of value columns a head has, and their width."""
    scan, V = schedule.scan, Name(schedule.scan.value_axis)
    shard = schedule.setting("shard")
    if schedule.around.output_computed:
        if shard.value == "value_columns":
            raise refuse(
                "`shard=value_columns` is not possible: outputs need all value columns of a head",
                shard.span or schedule.plan.span,
                help="leave out `shard`",
            )
        main.let_named("tiles", Literal(1))
        main.let_named("values", V)
        message = f"{scan.kernel.name} needs {V} <= {BANK}, got {V} = {{{V}}}"
        main.require(compare("<=", V, BANK), message)
        main.comment("Lanes of many value columns share a PSUM bank with fewer others.")
        main.let_named(str(ABREAST), smallest(Name("LANES"), number(BANK) // V))
        return
    main.comment("Value columns beyond 128 are tiles of their own; each is a lane.")
    if shard.value == "value_columns":
        main.let_named("tiles", (V + WIDEST * CORES - 1) // (WIDEST * CORES) * CORES)
    else:
        main.let_named("tiles", (V + WIDEST - 1) // WIDEST)
    if shard.value == "heads":
        heads = product((*(Name(axis) for axis in scan.mapped), TILES))
        few = binary("and", compare("<", heads, CORES), compare("==", V % (TILES * CORES), 0))
        with main.when(few) as body:
            body.comment("With fewer lanes than cores they split the columns of each.")
            body.let_named("tiles", TILES * CORES)
    values = main.let_named("values", V // TILES)
    main.require(
        compare("==", values * TILES, V),
        f"{scan.kernel.name} needs {V} to divide into equal tiles of at most 128, "
        f"got {V} = {{{V}}}",
    )


def as_many(schedule: Schedule, count: Number) -> Number:
    """Return how many lanes or groups fit where `count` of at most 128 value columns do."""
    if not schedule.around.output_computed:
        return count
    return Largest(ONE, count * ABREAST // Name("LANES"))


def write_share(main: Block, schedule: Schedule) -> Number:
    """Bind the list of this core's lanes and return it."""
    mapped = tuple(Name(axis) for axis in schedule.scan.mapped)
    total = main.let_named("total_lanes", product((*mapped, TILES)))
    shard = schedule.setting("shard").value
    if shard == "heads":
        main.comment("Contiguous shares of lanes per core, the remainder on the last one.")
        share = main.let_named("share", total // CORES)
        first = main.let_named("first", CORE * share)
        is_last = compare("==", CORE, CORES - 1)
        last = main.let_named("last", Choice(is_last, total, first + share))
    mine = main.let_named("mine", EMPTY)
    if shard == "heads":
        with main.loop("lane", first, last) as (body, lane):
            body.append("mine", lane)
        return mine
    if shard == "value_columns":
        main.comment("Every core takes its share of the value columns of each head.")
        owned = compare("==", Name("lane") % TILES * CORES // TILES, CORE)
    else:
        main.comment("The first core does everything.")
        owned = compare("==", CORE, 0)
    with main.loop("lane", 0, total, exact=True) as (body, lane), body.when(owned) as own:
        own.append("mine", lane)
    return mine
