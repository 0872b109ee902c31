"""The steps of an inverse as the plan has it, and the choice of the function for each.

A step is (action, argument, whether X^T is made from X beside it); a group takes one at a tick.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import F32, Function, Unpack
from backends.nki.program.numbers import NONE, Choice, Literal, Name, Number, Numeric, binary
from backends.nki.program.structures import DtypeName, Length, Text, Values, tupled
from backends.nki.refusal import refuse
from backends.nki.schedules.chunked.records import QUADRANT
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from gdsl.algorithm.chunk_plan import Inverse, InverseKind

CONSTANTS, GROUP, ARGUMENT = Name("constants"), Name("group"), Name("argument")
MASKED_MERGES = Name("MASKED_MERGES")

CALLS: dict[str, tuple[str, tuple[Number, ...]]] = {
    "leaves": ("mask_leaves", (CONSTANTS, GROUP)),
    "turn leaves": ("turn_leaves", (CONSTANTS, GROUP)),
    "square": ("square_power", (GROUP, ARGUMENT)),
    "add": ("add_factor", (CONSTANTS, GROUP)),
    "residual": ("find_residual", (CONSTANTS, GROUP)),
    "narrow": ("narrow_leaves", (CONSTANTS, GROUP)),
    "pairs": ("find_pairs", (CONSTANTS, GROUP)),
    "start": ("start_inverse", (CONSTANTS, GROUP)),
    "read": ("merge_read", (CONSTANTS, GROUP, ARGUMENT)),
    "write": ("merge_write", (CONSTANTS, GROUP, ARGUMENT)),
    "widen": ("widen_inverse", (CONSTANTS, GROUP)),
    "block read": ("block_read", (GROUP, ARGUMENT)),
    "block write": ("block_write", (GROUP, ARGUMENT)),
    "keys": ("turn_keys", (GROUP,)),
}
"""What each action calls."""


MERGED = ("pairs", "start")
"""Actions of an inverse that merges from the diagonal on."""
DOUBLED = ("leaves", "turn leaves", "square", "add", "residual", "narrow")
"""Actions of an inverse that doubles its leaves."""


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield `inverse_steps` and `invert`."""
    yield _inverse_steps(schedule)
    yield _invert(schedule)


def choose_action(block: Block, calls: dict[str, tuple[str, tuple[Number, ...]]]) -> None:
    """Add the call that belongs to `action`; the last one for whatever is left."""
    *named, (_, last) = calls.items()
    otherwise = block.inner()
    otherwise.call(last[0], *last[1])
    for action, (function, arguments) in reversed(named):
        then, outer = block.inner(), block.inner()
        then.call(function, *arguments)
        outer.decide(compare("==", Name("action"), Text(action)), then, otherwise)
        otherwise = outer
    block.extend(otherwise)


def _step(action: str, argument: Numeric = 0, widen: Numeric = False) -> Values:
    return tupled(Text(action), argument, Literal(widen) if isinstance(widen, bool) else widen)


def _inverse_steps(schedule: Schedule) -> Function:
    doc = (
        "(action, argument, whether X^T follows from X) of every step from A to its inverse.\n\n"
        "schur merges from 2x2 blocks, neumann from leaves of LEAF rows that it doubles."
    )
    inverses = schedule.inverses
    stage = Stage("inverse_steps", ("algorithm", "dtype"), doc, schedule.scan.solve_span)
    block = stage.block
    written = {"schur": _merged_pairs, "neumann": _doubled_leaves}
    branches = []
    for inverse in inverses:
        branch = block.inner()
        written[inverse.name](branch, inverse, schedule)
        branches.append(branch)
    if len(branches) == 1:
        block.extend(branches[0])
    else:
        first = compare("==", Name("algorithm"), Text(inverses[0].name))
        block.decide(first, *branches)
    count, first_level = Length(MASKED_MERGES), Name("first_level")
    block.comment("A merge needs X^T of the one before only to write, X to read.")
    with block.loop("level", first_level, count) as (body, level):
        body.append("steps", _step("read", level, compare(">", level, first_level)))
        body.append("steps", _step("write", compare("==", level, Name("bare"))))
    merged = compare("<", first_level, count)
    if schedule.scan.chunk.chunk > QUADRANT:
        with block.each(("width",), Name("BLOCK_MERGES")) as body:
            first_merge = binary("and", compare("==", Name("width"), Name("BLOCK_ROWS")), merged)
            body.append("steps", _step("block read", Name("width"), first_merge))
            body.append("steps", _step("block write", Name("width")))
    else:
        with block.when(merged) as body:
            body.append("steps", _step("widen"))
    if not schedule.scan.channels:
        block.append("steps", _step("keys"))
    return stage.done("steps")


def _merged_pairs(block: Block, inverse: Inverse, schedule: Schedule) -> None:
    if inverse.kind is not InverseKind.MERGE:
        setting = schedule.setting("leaf")
        raise refuse(
            f"the chunked schedule does not emit row substitution (`leaf={inverse.leaf}`)",
            setting.span or schedule.plan.span,
            help="leave out `leaf`, or set `inverse=neumann`",
        )
    block.let_named("steps", Values((_step("pairs"), _step("start")), grows=True))
    block.let_named("first_level", Literal(0))
    block.let_named("bare", Literal(0))


def _doubled_leaves(block: Block, inverse: Inverse, schedule: Schedule) -> None:
    squarings = inverse.leaf.bit_length() - 2
    steps = [_step("leaves"), _step("turn leaves")]
    for squaring in range(squarings):
        steps += [_step("square", Literal(squaring < squarings - 1)), _step("add")]
    block.let_named("steps", Values(tuple(steps), grows=True))
    corrections: Number = Literal(inverse.corrections)
    if schedule.corrections_follow_dtype(inverse):
        block.comment("fp32 needs one correction before any merge.")
        single = compare("==", Name("dtype"), DtypeName(F32))
        corrections = Choice(single, Literal(1), corrections)
    with block.loop("correction", 0, corrections) as (body, _):
        body.append("steps", _step("residual"))
        body.append("steps", _step("add"))
    block.let_named("first_level", Literal(inverse.leaf.bit_length() - 2))
    block.let_named("bare", NONE)
    if inverse.leaf < schedule.scan.chunk.chunk:
        block.append("steps", _step("narrow"))


def _invert(schedule: Schedule) -> Function:
    doc = "One step of inverting I + A of a group."
    stage = Stage("invert", ("constants", "group", "step"), doc, schedule.scan.solve_span)
    block = stage.block
    block.statements.append(Unpack(("action", "argument", "widen"), "step"))
    kinds = {inverse.kind for inverse in schedule.inverses}
    unused = set() if InverseKind.MERGE in kinds else set(MERGED)
    unused |= set() if InverseKind.DOUBLING in kinds else set(DOUBLED)
    unused |= {"keys"} if schedule.scan.channels else set()
    choose_action(block, {action: CALLS[action] for action in CALLS if action not in unused})
    with block.when(Name("widen")) as body:
        body.call("widen_inverse", CONSTANTS, GROUP)
    return stage.done()
