"""The entry of a kernel for several tokens (T <= 16): the phases, token after token.

The states of a tile of rows stay in SBUF from the first token to the last; a tile belongs to one
entry of the batch, so that rows and tokens lie at plain strides. Sequences may end early: behind
its end a sequence takes identity steps (decay 1, keys and values 0) and its outputs are zero.
"""

from __future__ import annotations

from backends.nki.program.build import Block
from backends.nki.program.nodes import F32, Allocate, Function, Space, Tile
from backends.nki.program.numbers import Largest, Name, Number, smallest
from backends.nki.program.outline import Pack
from backends.nki.schedules.decode.calls import GROUP, ROWS, Calls
from backends.nki.schedules.decode.phases import Phases


def write_tokens(
    main: Block,
    phases: Phases,
    functions: dict[str, Function],
    packs: dict[str, Pack],
    rows: tuple[Number, Number],
    before: Block,
) -> None:
    """Add the loops over batch entries, tiles of rows, tokens and groups.

    `before` is what an entry begins with.
    """
    first, last = rows
    calls = Calls(functions, packs)
    heads = phases.window.size(phases.window.axes)
    main.extend(phases.constants.loads)
    main.banner("Batch entries, tiles of their heads, tokens")
    entries = (first // heads, (last - 1) // heads + 1)
    with main.loop("entry", *entries, exact=True) as (body, entry):
        body.extend(before)
        base = entry * heads
        begin = body.let_named("begin", Largest(first, base) - base)
        end = body.let_named("end", smallest(last, base + heads) - base)
        with body.loop("row", begin, end, ROWS, exact=True) as (tile, row):
            tile.let_named("rows", smallest(ROWS, end - row))
            calls.call(tile, "load_states", {})
            tokens = Name(str(phases.step.run.axis))
            with tile.loop("token", 0, tokens, exact=True) as (token, _):
                _token(token, phases, calls)
            calls.call(tile, "store_states", {})


def _token(block: Block, phases: Phases, calls: Calls) -> None:
    """One token of a tile of rows."""
    for phase in ("load_vectors", "prepare_rows", "spread_decay"):
        calls.call(block, phase, {})
    with block.loop("lane", 0, Name("rows"), GROUP, exact=True) as (group, lane):
        heads = group.let_named("heads", smallest(GROUP, Name("rows") - lane))
        shape = phases.raw_shape(heads)
        group.statements.append(Allocate(Tile("raw_psum", shape, F32, Space.PSUM)))
        for phase in ("read_head", "update_head"):
            with group.loop("head", 0, heads, exact=True) as (body, _):
                calls.call(body, phase, {})
            if phase == "read_head":
                calls.call(group, "group_deltas", {})
        calls.call(group, "group_outputs", {})
    calls.call(block, "finish_rows", {})
    calls.call(block, "store_token_states", {})
