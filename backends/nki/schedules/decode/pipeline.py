"""The entry of an emitted decode kernel: the phases in software-pipelined program order.

While group i is updated, group i + 1 is read and group i + 2 is on its way from HBM.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from attrs import define

from backends.nki.contract import Contract
from backends.nki.program.build import Block, Names, compare
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
    Choice,
    Literal,
    Name,
    Number,
    Query,
    binary,
    smallest,
)
from backends.nki.program.outline import Pack, defined, outline, used
from backends.nki.schedules.addresses import Addresses
from backends.nki.schedules.block.cut import cut
from backends.nki.schedules.block.sections import Sections
from backends.nki.schedules.decode.calls import (
    DELTAS_AT,
    FINISH_AT,
    GROUP,
    OUTPUTS_AT,
    READS_PER_UPDATE,
    ROWS,
    Calls,
    after_head,
)
from backends.nki.schedules.decode.front import Front
from backends.nki.schedules.decode.phases import PHASES, Phases
from backends.nki.schedules.decode.step import only_run, row_axes, step_of
from backends.nki.schedules.decode.tokens import Tokens
from backends.nki.schedules.decode.update import STORE
from backends.nki.select.constants import PARTITIONS, Constants
from backends.nki.select.inputs import RowWindow
from gdsl.algorithm.plan import Plan

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
    plan: Plan, target: str, before: Callable[[Sections], Front] = lambda _: Front()
) -> Program:
    """Return the tile program of a plan in decode form. Raises CompileError where it has none.

    `before` says what computes the values of the sections in front of the delta rule.
    """
    kernel = plan.kernel.kernel
    sections = cut(plan)
    front = before(sections)
    contract = Contract(kernel)
    parameters = contract.parameters()
    run, delta, state = only_run(plan)
    names = Names({p.name for p in parameters} | {c.name for c in CONSTANTS} | _RESERVED)
    main = Block(names)
    main.banner("Sizes and contract")
    contract.write_sizes(main)
    limits = ((delta.key_axis, PARTITIONS), (delta.value_axis, BANK))
    contract.write_checks(main, limits, contract.optional)
    _write_missing(main, contract)
    contract.write_outputs(main)
    axes = row_axes(state, delta)
    constants = Constants(Block(names), Block(names))
    addresses = Addresses(kernel, contract.tensors, constants.block)
    shares = front.begin(main, contract, axes, constants, addresses)
    window = RowWindow(axes, Name("row"), Name("rows"), shares=shares)
    if run.axis is not None:
        by_entry = bool(sections.values)
        outer: dict[str, Number] = {axes[0]: Name("entry")} if by_entry else {}
        outer[run.axis] = Name("token")
        inner = axes[1:] if by_entry else axes
        window = RowWindow(inner, Name("row"), Name("rows"), outer, shares, by_entry=by_entry)
    first, last = _rows_of_this_core(main, window, axes)
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
        rounds=plan.settings["reads"] == "bf16",
        ring=front.ring,
    )
    phases.write()
    functions, packs = _functions(phases, main)
    main.banner("Constants")
    main.extend(constants.block)
    if run.axis is not None:
        # A core may have no heads where cores share them.
        with main.when(compare("<", first, last)) if shares else nullcontext(main) as body:
            body.extend(front.loads)
            body.extend(front.ahead)
            Tokens(phases, Calls(functions, packs), front.entry).write(body, first, last)
    else:
        _Pipeline(phases, Calls(functions, packs), first, last, front).write(main)
    return Program(
        entry=kernel.name,
        parameters=parameters,
        constants=(*CONSTANTS, *front.constants),
        functions=(*window.helpers.values(), *front.functions, *functions.values()),
        body=tuple(main.statements),
        returns=contract.returns,
    )


_FILL = "Fill: the first tile of rows, the first two groups of states"
_RESERVED = {"row", "rows", "lane", "heads", "count", "raw_psum", "new_sb"}


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
    block: Block, window: RowWindow, axes: tuple[str, ...]
) -> tuple[Number, Number]:
    """[first, last): contiguous shares, the remainder on the last core.

    Where cores share heads, all rows of this core's heads.
    """
    block.banner("Rows of this core")
    total = block.let("total", window.size(axes))
    if window.shares:
        return ZERO, total
    cores = block.let_named("cores", Query("nl.num_programs(0)"))
    core = block.let_named("core", Query("nl.program_id(0)"))
    share = block.let("share", total // cores)
    first = block.let("first", core * share)
    end = Choice(compare("==", core, cores - 1), total, first + share)
    return first, block.let("last", end)


def _functions(phases: Phases, main: Block) -> tuple[dict[str, Function], dict[str, Pack]]:
    """The phases as functions, and the tuples they return; a phase with nothing to do is none."""
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
    module = {constant.name for constant in CONSTANTS}
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


@define
class _Pipeline:
    """Writes the calls of the phases."""

    phases: Phases
    calls: Calls
    first: Number
    last: Number
    front: Front

    @property
    def one_tile(self) -> Number:
        """Whether all rows share a tile."""
        return compare("<=", self.last - self.first, ROWS)

    def write(self, main: Block) -> None:
        """Add the pipeline to the entry."""
        if not self.front.loads.statements:
            main.banner(_FILL)
        with main.when(compare("<", self.first, self.last)) as block:
            self._fill(block)
        main.banner("Groups: update one, read the next, fetch the one after")
        with main.loop("group", self.first, self.last, GROUP) as (body, group):
            self._tick(body, group)
        if self.front.last.statements:
            main.banner("What only the outputs need, and the outputs")
            late = binary("and", compare("<", self.first, self.last), self.one_tile)
            with main.when(late) as block:
                block.extend(self.front.last)
                self.calls.call(block, "finish_rows", {"row": self.first})

    def _fill(self, block: Block) -> None:
        left = self.last - self.first
        rows = block.let_named("rows", smallest(ROWS, left))
        heads = block.let_named("heads", smallest(GROUP, left))
        at = {"row": self.first, "rows": rows, "lane": ZERO, "heads": heads}
        block.extend(self.front.loads)
        self.calls.call(block, "load_vectors", at)
        block.extend(self.phases.constants.loads)
        block.extend(self.front.ahead)
        if self.front.loads.statements:
            block.banner(_FILL)
        self.calls.call(block, "load_states", at)
        with block.when(compare("<", self.first + GROUP, self.last)) as more:
            second = {"row": self.first + GROUP, "heads": smallest(GROUP, left - GROUP)}
            self.calls.call(more, "load_states", second, result=f"next_{self._states}")
        block.extend(self.front.filtered)
        if self.front.during.statements:
            with block.when(self.one_tile) as late:
                late.extend(self.front.during)
        self.calls.call(block, "prepare_rows", at)
        self.calls.reads(block, self.phases.raw_shape(heads), "raw_psum")
        with block.loop("head", 0, heads) as (body, head):
            self.calls.call(body, "read_head", {**at, "head": head})
        self.calls.call(block, "spread_decay", at)
        self.calls.call(block, "group_deltas", at)

    def _tick(self, body: Block, group: Number) -> None:
        last = self.last
        lane = body.let_named("lane", (group - self.first) % ROWS)
        rows = body.let_named("rows", smallest(ROWS, last - group + lane))
        heads = body.let_named("heads", smallest(GROUP, last - group))
        body.comment("The next group; it has no heads after the last one.")
        next_heads = body.let_named("next_heads", smallest(GROUP, last - group - GROUP))
        next_lane = body.let_named("next_lane", (lane + GROUP) % ROWS)
        now = {"row": group - lane, "rows": rows, "lane": lane, "heads": heads}
        following = group + GROUP - next_lane
        ahead = {
            "row": following,
            "lane": next_lane,
            "heads": next_heads,
            "rows": Name("next_rows"),
        }
        ahead |= {name: Name(f"next_{name}") for name in ("raw_psum", *self._moving())}
        later = group + 2 * GROUP
        with body.when(compare("<", later, last)) as fetch:
            with fetch.when(compare("==", next_lane + GROUP, ROWS)) as new_rows:
                window = {"row": later, "rows": smallest(ROWS, last - later)}
                prefix = "later_" if self.calls.vectors else ""
                self.calls.call(new_rows, "load_vectors", window, prefix=prefix)
            states = {"row": later, "heads": smallest(GROUP, last - later)}
            self.calls.call(fetch, "load_states", states, result=f"later_{self._states}")
        body.rebind(tuple(f"next_{n}" for n in self._prepared), self._prepared)
        body.let_named("next_rows", rows)
        with body.when(compare(">", next_heads, 0)) as reading:
            self.calls.reads(reading, self.phases.raw_shape(next_heads), "next_raw_psum")
            with reading.when(compare("==", next_lane, 0)) as new_rows:
                new_rows.let_named("next_rows", smallest(ROWS, last - group - GROUP))
                for name in self.calls.vectors:
                    new_rows.rebind((f"next_{name}",), (f"later_{name}",))
                self.calls.call(new_rows, "prepare_rows", ahead, prefix="next_")
                self.calls.call(new_rows, "spread_decay", ahead, prefix="next_")
        with body.loop("start", 0, heads, STORE) as (chunk, start):
            self._chunk(chunk, start, now, ahead)
            self.calls.call(chunk, "store_states", {"row": group + start, "count": Name("count")})
        with body.when(compare(">", next_heads, 0)) as shift:
            moving = self._moving()
            shift.rebind(moving, tuple(f"next_{name}" for name in moving))
            with shift.when(compare("<", later, last)) as more:
                more.rebind((f"next_{self._states}",), (f"later_{self._states}",))

    def _chunk(
        self, chunk: Block, start: Number, now: dict[str, Number], ahead: dict[str, Number]
    ) -> None:
        """Heads whose new states leave together."""
        heads, next_heads = now["heads"], ahead["heads"]
        count = chunk.let_named("count", smallest(STORE, heads - start))
        chunk.statements.append(Allocate(self.phases.new_tile(count)))
        with chunk.loop("head", start, start + count) as (body, head):
            now = {**now, "head": head}
            self.calls.call(body, "update_head", now)
            reads = READS_PER_UPDATE * head
            most = smallest(reads + READS_PER_UPDATE, next_heads)
            with body.loop("other", reads, most) as (each, other):
                self.calls.call(each, "read_head", {**ahead, "head": other})
            with body.when(after_head(head, OUTPUTS_AT, heads)) as outputs:
                self.calls.call(outputs, "group_outputs", now)
            done = compare("==", now["lane"] + heads, now["rows"])
            if self.front.last.statements:
                done = binary("and", done, compare(">", self.last - self.first, ROWS))
            with body.when(binary("and", done, after_head(head, FINISH_AT, heads))) as finish:
                self.calls.call(finish, "finish_rows", now)
            reading = binary("and", compare(">", next_heads, 0), compare("==", head, DELTAS_AT))
            with body.when(reading) as deltas:
                self.calls.call(deltas, "group_deltas", ahead, prefix="next_")

    # ---- names

    @property
    def _prepared(self) -> tuple[str, ...]:
        """What holds the tiles of the rows at hand."""
        return (*self.calls.prepared, *self.calls.vectors)

    @property
    def _states(self) -> str:
        """What holds the states of a group."""
        return self.calls.packs["load_states"].name

    def _moving(self) -> tuple[str, ...]:
        """What belongs to one group and is taken over from the next one when its turn comes."""
        reads = (
            (self.calls.packs["group_deltas"].name,) if "group_deltas" in self.calls.packs else ()
        )
        return (self._states, *reads, *self._prepared)
