"""The tile program of a kernel in decode form: contract, phases as functions, and the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from backends.nki.contract import Contract, Limit
from backends.nki.program.build import Block, Names, compare
from backends.nki.program.mentions import defined, used
from backends.nki.program.nodes import (
    Allocate,
    Constant,
    Function,
    Program,
    Space,
    Tile,
)
from backends.nki.program.numbers import (
    NONE,
    ZERO,
    Literal,
    Name,
    Number,
)
from backends.nki.program.outline import Pack, outline
from backends.nki.schedules.addresses import Addresses
from backends.nki.schedules.block.cut import cut
from backends.nki.schedules.block.sections import Sections
from backends.nki.schedules.decode.calls import (
    Calls,
)
from backends.nki.schedules.decode.front import Front
from backends.nki.schedules.decode.phases import PHASES, Phases
from backends.nki.schedules.decode.pipeline import Pipeline
from backends.nki.schedules.decode.step import (
    only_run,
    row_axes,
    several_steps,
    step_axes,
    step_of,
)
from backends.nki.schedules.decode.tokens import TEAM, Tokens
from backends.nki.schedules.sharing import share_of
from backends.nki.select.constants import Constants
from backends.nki.select.inputs import RowWindow
from backends.nki.select.key_tiles import KEYS, KeyTiles
from gdsl.algorithm.plan import Plan
from gdsl.algorithm.schedule_keys import SCHEDULE_KEYS

CONSTANTS = (
    Constant("ROWS", Literal(128), "rows whose vectors share an instruction: all partitions"),
    Constant(
        "GROUP", Literal(32), "heads in flight; slices of partitions start at multiples of 32"
    ),
)
PACKS = {
    "load_vectors": "vectors",
    "prepare_rows": "prepared",
    "load_states": "states",
    "token_entries": "entries",
    "group_deltas": "reads",
}
"""What the phases that feed others return, as one tuple each."""
BANK = 512
"""fp32 numbers of a PSUM bank and partition: values of one head."""


def decode_program(
    plan: Plan,
    target: str,
    before: Callable[[Sections], tuple[Sections, Front]] = lambda sections: (sections, Front()),
) -> Program:
    """Return the tile program of a plan in decode form. Raises CompileError where it has none.

    `before` says what computes the values of the sections in front of the delta rule, and which
    sections that leaves.
    """
    kernel = plan.kernel.kernel
    sections, front = before(cut(plan))
    contract = Contract(kernel, exposed={e.argument: e.default for e in plan.exposed})
    parameters = contract.parameters()
    run, delta, state = only_run(plan)
    names = Names({p.name for p in parameters} | {c.name for c in CONSTANTS} | _RESERVED)
    main = Block(names)
    main.banner("Sizes and contract")
    contract.write_sizes(main)
    tiles = int(plan.settings["key_tiles"])
    keys = KeyTiles(Name(delta.key_axis), tiles)
    more = tiles < (SCHEDULE_KEYS["key_tiles"].bounds or (1, 1))[1]
    limits = (
        Limit(delta.key_axis, keys.most, keys.least, front.more_keys if more else ""),
        Limit(delta.value_axis, BANK),
    )
    contract.write_checks(main, limits, contract.optional)
    _write_missing(main, contract)
    keys.bind(main)
    contract.write_outputs(main)
    axes = row_axes(state, delta)
    constants = Constants(Block(names), Block(names))
    addresses = Addresses(kernel, contract.tensors, constants.block)
    shares = front.begin(main, contract, axes, constants, addresses)
    window = RowWindow(axes, Name("row"), Name("rows"), shares=shares)
    first, last = _rows_of_this_core(main, window, axes, plan.settings["shard"])
    if several_steps(run, delta):
        outer = step_axes(run, delta)
        teams = {axes[0]: TEAM} if shares else {}
        window = RowWindow(axes, Name("row"), Name("rows"), outer, {**shares, **teams})
    phases = Phases(
        step=step_of(plan, contract, window, sections, front.prepare(window)),
        contract=contract,
        constants=constants,
        addresses=addresses,
        window=window,
        names=names,
        lane=Name("lane"),
        heads=Name("heads"),
        head=Name("head"),
        target=target,
        tiles=tiles,
        rounds=plan.settings["reads"] == "bf16",
        ring=front.ring,
    )
    phases.write()
    module = {constant.name for constant in CONSTANTS}
    functions, packs = _functions(phases, main, module)
    main.banner("Constants")
    contract.write_indices(main)
    main.extend(constants.block)
    if several_steps(run, delta):
        # A core may have no heads where cores share them.
        with main.when(compare("<", first, last)) if shares else nullcontext(main) as body:
            body.extend(front.loads)
            body.extend(front.ahead)
            Tokens(phases, Calls(functions, packs), front.entry).write(body, first, last)
    else:
        Pipeline(phases, Calls(functions, packs), first, last, front).write(main)
    return Program(
        entry=kernel.name,
        parameters=parameters,
        constants=(*CONSTANTS, *(c for c in front.constants if c.name not in module)),
        functions=(*window.helpers.values(), *front.functions, *functions.values()),
        body=tuple(main.statements),
        returns=contract.returns,
    )


_RESERVED = {KEYS, "row", "rows", "lane", "heads", "count", "raw_psum", "new_sb"}


def _write_missing(block: Block, contract: Contract) -> None:
    """Create an in-place state that the caller did not bring, and remember that it is new."""
    for state in contract.kernel.states:
        tile = contract.tensors[state.argument]
        if not state.inplace or state.argument not in contract.optional:
            continue
        missing = block.let_named(f"{tile.name}_missing", compare("==", Name(tile.name), NONE))
        element = contract.new_element(state.dtype)
        with block.when(missing) as create:
            new = Tile(tile.name, tile.shape, element, Space.SHARED_HBM)
            create.statements.append(Allocate(new))


def _rows_of_this_core(
    block: Block, window: RowWindow, axes: tuple[str, ...], shard: object
) -> tuple[Number, Number]:
    """[first, last): neighbouring rows.

    Where cores share heads, all rows of this core's heads.
    """
    block.banner("Rows of this core")
    total = block.let("total", window.size(axes))
    if window.shares:
        return ZERO, total
    mine = share_of(block, total, ("first", "own_rows"), shard)
    return mine.first, block.let("last", mine.first + mine.count)


def _functions(
    phases: Phases, main: Block, module: set[str]
) -> tuple[dict[str, Function], dict[str, Pack]]:
    """The phases as functions, and the tuples they return; a phase with nothing to do is none.

    `module`: the constants of the schedule.
    """
    blocks = {n: tuple(b.statements) for n, b in phases.blocks.items() if b.statements}
    needed = {
        name: {n for other in blocks if other != name for n in used(blocks[other])}
        for name in blocks
    }
    returns: dict[str, tuple[str, ...]] = {
        name: tuple(n for n in defined(statements) if n in needed[name])
        for name, statements in blocks.items()
    }
    packs = {
        name: Pack(pack if len(returns[name]) > 1 else returns[name][0], returns[name])
        for name, pack in PACKS.items()
        if returns.get(name)
    }
    functions = {
        name: outline(
            name,
            PHASES[name],
            statements,
            returns=returns[name],
            packs=packs.values(),
            known=module,
        )
        for name, statements in blocks.items()
    }
    return functions, packs
