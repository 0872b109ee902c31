"""One token for any number of rows: the phases in software-pipelined program order.

While group i is updated, group i + 1 is read and group i + 2 is on its way from HBM.
"""

from __future__ import annotations

from attrs import define

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import (
    Allocate,
)
from backends.nki.program.numbers import (
    ZERO,
    Choice,
    Largest,
    Literal,
    Name,
    Number,
    binary,
    smallest,
)
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
from backends.nki.schedules.decode.phases import Phases
from backends.nki.schedules.decode.update import STORE

_FILL = "Fill: the first tile of rows, the first two groups of states"
TURNED_READS, TURNED_UPDATES, TURNED_DELTAS_AT = 5, 4, 26
"""Reads for so many updates where states are turned as well, and when the deltas follow."""
ARRIVING, LEAVING = Literal(4), 3
"""Heads between the turning of a state that is stored [V, K] and its read, its update and its
turning back."""


@define
class Pipeline:
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
        self._arrive(block, ZERO, at)
        with block.loop("head", 0, heads) as (body, head):
            self.calls.call(body, "read_head", {**at, "head": head})
            self._arrive(body, head + ARRIVING, at, head + ARRIVING + 1)
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
            self._arrive(reading, ZERO, ahead)
            with reading.when(compare("==", next_lane, 0)) as new_rows:
                new_rows.let_named("next_rows", smallest(ROWS, last - group - GROUP))
                for name in self.calls.vectors:
                    new_rows.rebind((f"next_{name}",), (f"later_{name}",))
                self.calls.call(new_rows, "prepare_rows", ahead, prefix="next_")
                self.calls.call(new_rows, "spread_decay", ahead, prefix="next_")
        if self._turns:
            for tile in (self.phases.new_tile(heads), self.phases.leaving_tile(heads)):
                body.statements.append(Allocate(tile))
            body.let_named("left", ZERO)
        with body.loop("start", 0, heads, STORE) as (chunk, start):
            at: dict[str, Number] = {"row": group + start, "count": Name("count")}
            if self._turns:
                stored = chunk.let_named("stored", Name("left"))
                many = Name("left") - stored
                at = {**now, "row": group + stored, "start": stored, "count": many}
            self._chunk(chunk, start, now, ahead)
            self.calls.call(chunk, "store_states", at)
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
        if not self._turns:
            chunk.statements.append(Allocate(self.phases.new_tile(count)))
        with chunk.loop("head", start, start + count) as (body, head):
            now = {**now, "head": head}
            self.calls.call(body, "update_head", now)
            reads, most = self._read_before(head), self._read_before(head + 1)
            with body.loop("other", reads, smallest(most, next_heads)) as (each, other):
                self.calls.call(each, "read_head", {**ahead, "head": other})
            self._arrive(body, reads + ARRIVING, ahead, most + ARRIVING)
            if self._turns:
                self._leave(body, now)
            with body.when(after_head(head, OUTPUTS_AT, heads)) as outputs:
                self.calls.call(outputs, "group_outputs", now)
            done = compare("==", now["lane"] + heads, now["rows"])
            if self.front.last.statements:
                done = binary("and", done, compare(">", self.last - self.first, ROWS))
            with body.when(binary("and", done, after_head(head, FINISH_AT, heads))) as finish:
                self.calls.call(finish, "finish_rows", now)
            reading = binary(
                "and", compare(">", next_heads, 0), compare("==", head, self._deltas_at)
            )
            with body.when(reading) as deltas:
                self.calls.call(deltas, "group_deltas", ahead, prefix="next_")

    @property
    def _turns(self) -> bool:
        """Whether new states are turned before they leave."""
        return "leave_head" in self.calls.functions

    def _leave(self, block: Block, now: dict[str, Number]) -> None:
        """Turn new states back some heads after their update; all of them after the last one."""
        head, heads = now["head"], now["heads"]
        done = block.let_named(
            "done",
            Choice(compare("==", head, heads - 1), heads, Largest(ZERO, head + 1 - LEAVING)),
        )
        with block.loop("leaving", Name("left"), done) as (body, leaving):
            self.calls.call(body, "leave_head", {**now, "head": leaving})
        block.let_named("left", done)

    @property
    def _deltas_at(self) -> int:
        """Head after which the next group's deltas are formed."""
        return TURNED_DELTAS_AT if "arrive_head" in self.calls.functions else DELTAS_AT

    def _read_before(self, head: Number) -> Number:
        """Heads of the next group that are read before head `head` of this one is updated."""
        if "arrive_head" in self.calls.functions:
            return TURNED_READS * head // TURNED_UPDATES
        return READS_PER_UPDATE * head

    def _arrive(
        self, block: Block, first: Number, at: dict[str, Number], end: Number = ARRIVING
    ) -> None:
        """Turn states that came with V on partitions, some heads before they are read."""
        if "arrive_head" not in self.calls.functions:
            return
        with block.loop("arriving", first, smallest(end, at["heads"])) as (body, head):
            self.calls.call(body, "arrive_head", {**at, "head": head})

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
