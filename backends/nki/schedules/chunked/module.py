"""A chunked plan as an NKI module: the kernel's tensors and sizes around the stages."""

from __future__ import annotations

from itertools import chain, zip_longest

from backends.nki.contract import Contract
from backends.nki.program.build import Block, Names
from backends.nki.program.nodes import Constant, Function, Program
from backends.nki.program.numbers import Literal
from backends.nki.program.structures import tupled
from backends.nki.schedules.chunked import (
    alive,
    blocks,
    carry,
    carry_channel,
    checkpoints,
    constants,
    driver,
    epilogue,
    gates,
    inverse,
    kept,
    leaves,
    load,
    prologue,
    references_channel,
    scores,
    scores_channel,
    states,
    steps,
    transfer,
)
from backends.nki.schedules.chunked.addresses import Addresses
from backends.nki.schedules.chunked.around import Around
from backends.nki.schedules.chunked.before import Before
from backends.nki.schedules.chunked.entries import Entries
from backends.nki.schedules.chunked.entry import write_entry
from backends.nki.schedules.chunked.front import front_of
from backends.nki.schedules.chunked.prepare import Part, numbers, prepare
from backends.nki.schedules.chunked.records import BANK, QUADRANT
from backends.nki.schedules.chunked.scan import scan_of
from backends.nki.schedules.chunked.schedule import Schedule
from gdsl.algorithm.plan import Plan

PARTITIONS = 128
AHEAD, TOGETHER = 4, 4
LATE = 7
"""Ticks of an inverse before what is computed for outputs and the carried state alone."""
MASKED_WIDTHS = (2, 4, 8, 16)
"""Merges below the 32 partitions that an operand can begin at."""


def chunked_program(plan: Plan) -> Program:
    """Return the program of a plan in chunked form. Raises CompileError where it has none."""
    front = front_of(plan)
    scan = scan_of(front)
    contract = Contract(plan.kernel.kernel, exposed={e.argument: e.default for e in plan.exposed})
    parameters = contract.parameters()
    for name, axis in scan.formulas.indices.items():
        contract.tensors[name] = contract.index(axis, name)
    main = Block(Names({p.name for p in parameters}))
    where = Addresses(scan)
    around, entries = Around(scan, contract, where), Entries(scan, contract)
    before = Before(contract, front, scan.mapped[0], scan.axis, entries)
    schedule = Schedule(front.plan, scan, contract, where, around, entries)
    write_entry(main, schedule, before)
    schedule.around.select()
    return Program(
        entry=scan.kernel.name,
        parameters=parameters,
        constants=_constants(schedule, before),
        functions=(*before.functions, *_functions(schedule)),
        body=tuple(main.statements),
        returns=contract.returns,
    )


def _functions(schedule: Schedule) -> tuple[Function, ...]:
    """The functions of the kernel in the order a reader meets them."""
    found = [*schedule.where.functions()]
    for stage in (
        constants,
        transfer,
        alive,
        gates,
        load,
        kept,
        prologue,
        scores_channel if schedule.scan.channels else scores,
        *((leaves, inverse, blocks, steps) if schedule.solves else ()),
        *((carry_channel,) if schedule.scan.channels and schedule.solves else ()),
        carry,
        checkpoints,
        epilogue,
        states,
        driver,
    ):
        found += stage.functions(schedule)
        if stage in (scores, scores_channel):
            tabled = (part for parts in _tabled(schedule) for part in parts)
            found.append(prepare([*tabled, *_parts(schedule), *_beside(schedule)]))
    return tuple(found)


def _constants(schedule: Schedule, before: Before) -> tuple[Constant, ...]:
    chunk = schedule.scan.chunk.chunk
    masked = [width for width in MASKED_WIDTHS if width < chunk]
    wide = [width for width in (32, 64) if width < chunk]
    found = [
        Constant("CHUNK", Literal(chunk), "tokens per chunk, on partitions"),
        Constant("PARTITIONS", Literal(PARTITIONS), "most keys"),
        Constant("MAX_FREE", Literal(PARTITIONS), "most value columns of a lane"),
        Constant(
            "SLOTS",
            Literal(BANK // chunk),
            "chunks side by side in one instruction: 512 columns, one PSUM bank",
        ),
        Constant("LANES", Literal(BANK // PARTITIONS), "lanes among them, by their values"),
        Constant("TEAM", Literal(16), "lanes whose states are on chip together"),
        Constant("LOAD_TICKS", Literal(AHEAD), "ticks from the transfers of a group to their use"),
        Constant("GATE_COLUMNS", Literal(128), "chunks whose gates are computed together"),
    ]
    if schedule.solves:
        found += [
            Constant("MASKED_MERGES", tupled(*masked), "merges that select their blocks by a mask"),
            Constant("BLOCK_ROWS", Literal(min(QUADRANT, chunk)), "rows of what they merge to"),
            Constant("BLOCK_MERGES", tupled(*wide), "merges whose blocks are partition ranges"),
        ]
    if leaf := schedule.doubled_leaf:
        found.append(Constant("LEAF", Literal(leaf), "rows of a leaf that neumann doubles"))
    if schedule.scan.channels:
        found += references_channel.constants(schedule)
    loaded, tabled = _tabled(schedule)
    first, last = (sum(len(part) for part in parts) for parts in (loaded, tabled))
    if tabled:
        found += [
            Constant("TOGETHER", Literal(TOGETHER), "groups that share the loading of a table"),
            Constant("LOADED", numbers(loaded), "steps before that, tick by tick"),
            Constant("TABLED", numbers(tabled, first), "steps that need the table, tick by tick"),
        ]
    parts, beside = _parts(schedule), _beside(schedule)
    steps = numbers(parts, first + last)
    found.append(Constant("PARTS", steps, "steps of preparing scores, tick by tick"))
    if beside:
        steps = numbers(beside, first + last + sum(len(part) for part in parts))
        found.append(Constant("BESIDE", steps, "steps beside the inverse, tick by tick"))
    names = {constant.name for constant in found}
    return (*found, *(c for c in before.constants if c.name not in names))


def _tabled(schedule: Schedule) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """The steps with another function table, tick by tick, and those before them."""
    vectors, values = kept.steps(schedule)
    tables = tuple((step,) for step in prologue.tables(schedule))
    return tuple((step,) for step in (*vectors, *values)) if tables else (), tables


def _parts(schedule: Schedule) -> tuple[Part, ...]:
    """The other steps from loaded vectors to scores, tick by tick."""
    vectors, values = ((), ()) if _tabled(schedule)[1] else kept.steps(schedule)
    before = prologue.early(schedule)
    if schedule.scan.channels:
        late = prologue.late(schedule)
        # Nobody but the carried state waits for the values.
        # What is computed before takes live tokens, though.
        first, then = (values, ()) if before else ((), values)
        steps = (*vectors, *first, *before, *scores_channel.steps(schedule), *then, *late)
        return tuple((step,) for step in steps)
    early = (*((step,) for step in (*vectors, *values, *before)), *scores.parts(schedule))
    # Where nothing is inverted, nothing goes along with it.
    late = () if schedule.solves else prologue.late(schedule)
    return (*early, *((step,) for step in late))


def _beside(schedule: Schedule) -> tuple[Part, ...]:
    """The steps that a group takes while it is inverted, tick by tick."""
    if schedule.scan.channels or not schedule.solves:
        return ()
    late = (((),) * LATE, ((step,) for step in prologue.late(schedule)))
    both = zip_longest(scores.beside(schedule), chain(*late), fillvalue=())
    return tuple((*ours, *theirs) for ours, theirs in both)
