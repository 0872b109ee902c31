"""The entry of a kernel for several tokens (T <= 16): group after group, token by token.

The states of a tile of rows stay in SBUF from the first token to the last. The steps are the groups
of heads of each token; while one is updated, the next is read: the next heads of the token, or the
first heads with the next token, whose vectors are prepared in the meantime. Where a tile has one
group only, a head is read for the next token soon after its update. States leave a few heads at a
time. The states of the next tile arrive during the last token.

Sequences may end early: behind its end a sequence takes identity steps (decay 1, keys and values 0)
and its outputs are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define

from backends.nki.program.build import Block, compare
from backends.nki.program.numbers import (
    ONE,
    ZERO,
    Choice,
    Largest,
    Literal,
    Name,
    Number,
    binary,
    product,
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
from backends.nki.schedules.decode.phases import Phases
from backends.nki.schedules.decode.states import LOAD
from backends.nki.schedules.decode.step import every
from backends.nki.select.addressing import Share
from gdsl.ir.node import Symbol

TEAM = Share(Name("first_entry"), Name("members"))
"""Entries of the batch that share what comes before their tokens."""
TEAM_COLUMNS = Literal(1024)
"""Tokens times rows of a team, if one entry has not more: what a section leaves on chip."""
LAG = 2
"""Heads between the update of a state and its read, where the next group is the same one."""
_COMING = "coming_"
"""Names the vectors of the token that is prepared next."""


@contextmanager
def _if(block: Block, condition: Number) -> Iterator[Block]:
    """A trace-time decision, unless it is none."""
    if condition == Literal(True):
        yield block
        return
    with block.when(condition) as body:
        yield body


@define
class Tokens:
    """Writes the loops over tiles of rows, tokens and groups."""

    phases: Phases
    calls: Calls
    before: Block
    """What the tokens of a team of entries begin with."""

    @property
    def tokens(self) -> Number:
        """Steps: T, times the sub-steps of each."""
        axes = self.phases.step.run.axis, self.phases.step.delta.substeps
        return product(tuple(Name(axis) for axis in axes if axis is not None))

    def _complete(self, token: Number) -> Number:
        """Whether a step is the last sub-step of a token."""
        sub_steps = self.phases.step.delta.substeps
        if sub_steps is None:
            return Literal(True)
        return compare("==", token % Name(sub_steps), Name(sub_steps) - 1)

    def _returned(self, token: Number) -> Number:
        """Whether the states after a step are returned."""
        run, often = self.phases.step.run, every(self.phases.step.run)
        due = self._complete(token)
        if run.every in (None, 1) or run.axis is None:
            return due
        at = compare("==", (self.phases.window.outer[run.axis] + 1) % often, 0)
        if isinstance(run.every, Symbol):
            at = binary("and", compare(">", often, 0), at)
        return binary("and", due, at)

    def write(self, main: Block, first: Number, last: Number) -> None:
        """Add the loops over rows [first, last) to the entry."""
        window = self.phases.window
        main.extend(self.phases.constants.loads)
        if window.axes[0] not in window.shares:
            main.banner("Tiles of rows, tokens, groups: update one, read the next")
            self._tiles(main, first, last)
            return
        main.banner("Teams of batch entries, tiles of their heads, tokens, groups")
        batch, heads = Name(window.axes[0]), window.size(window.axes[1:])
        per = main.let("per", Largest(ONE, TEAM_COLUMNS // (self.tokens * heads)))
        with main.loop("first_entry", 0, batch, per, exact=True) as (body, entry):
            body.let_named("members", smallest(per, batch - entry))
            self._tiles(body, ZERO, window.size(window.axes))

    def _tiles(self, block: Block, begin: Number, end: Number) -> None:
        states = self.calls.packs["load_states"].name
        with block.when(compare("<", begin, end)) as some:
            at = {"row": begin, "rows": smallest(ROWS, end - begin)}
            self.calls.call(some, "load_states", at)
        with block.loop("row", begin, end, ROWS, exact=True) as (tile, row):
            rows = tile.let_named("rows", smallest(ROWS, end - row))
            self._fill(tile, rows, compare("==", row, begin))
            with tile.loop("token", 0, self.tokens, exact=True) as (token, at_token):
                self._prefetch(token, row, end, at_token)
                self.calls.call(token, "token_entries", {})
                with token.loop("lane", 0, rows, GROUP, exact=True) as (group, lane):
                    self._step(group, rows, lane, at_token)
            with tile.when(compare("<", row + ROWS, end)) as more:
                more.rebind((states,), (f"next_{states}",))

    def _prefetch(self, block: Block, row: Number, end: Number, token: Number) -> None:
        """The states of the next tile of rows, during the last token of this one."""
        more = binary("and", self._last(token), compare("<", row + ROWS, end))
        with block.when(more) as fetch:
            at = {"row": row + ROWS, "rows": smallest(ROWS, end - row - ROWS)}
            self.calls.call(fetch, "load_states", at, prefix="next_")

    def _last(self, token: Number) -> Number:
        return compare("==", token, self.tokens - 1)

    def _fill(self, block: Block, rows: Number, first: Number) -> None:
        """The first group of the first token; before the `first` tile what the team begins with."""
        heads = block.let_named("heads", smallest(GROUP, rows))
        at: dict[str, Number] = {"token": ZERO, "lane": ZERO, "heads": heads}
        self.calls.call(block, "load_vectors", at)
        with block.when(compare(">", self.tokens, 1)) as more:
            self.calls.call(more, "load_vectors", {"token": ONE}, prefix=_COMING)
        if self.before.statements:
            with block.when(first) as begin:
                begin.extend(self.before)
        self.calls.call(block, "prepare_rows", at)
        self.calls.call(block, "spread_decay", at)
        self.calls.reads(block, self.phases.raw_shape(heads), "raw_psum")
        with block.loop("head", 0, heads, exact=True) as (body, head):
            self.calls.call(body, "read_head", {**at, "head": head})
        self.calls.call(block, "group_deltas", at)

    def _step(self, block: Block, rows: Number, lane: Number, token: Number) -> None:
        """Update a group for a token, and read the next one."""
        heads = block.let_named("heads", smallest(GROUP, rows - lane))
        block.comment("The next step: more heads, or the next token. None after the last one.")
        more = compare("<", lane + GROUP, rows)
        next_lane = block.let_named("next_lane", Choice(more, lane + GROUP, ZERO))
        next_token = block.let_named("next_token", Choice(more, token, token + 1))
        left = Choice(
            compare("<", next_token, self.tokens), smallest(GROUP, rows - next_lane), ZERO
        )
        next_heads = block.let_named("next_heads", left)
        now: dict[str, Number] = {"token": token, "lane": lane, "heads": heads}
        ahead: dict[str, Number] = {"token": next_token, "lane": next_lane, "heads": next_heads}
        ahead |= {name: Name(f"next_{name}") for name in ("raw_psum", *self._carried())}
        self._prepare(block, ahead)
        alone = compare("<=", rows, GROUP)
        per_head = block.let_named(
            "reads_per_update",
            Largest(Literal(READS_PER_UPDATE), (next_heads + heads - 1) // heads),
        )
        block.let_named("deltas_at", Choice(alone, heads - 1, smallest(DELTAS_AT, heads - 1)))
        block.comment("A tile of one group is finished while VectorE waits for its next reads.")
        finish_at = Choice(alone, heads - 1, smallest(FINISH_AT, heads - 1))
        block.let_named("finish_at", finish_at)
        read = block.let_named("read", ZERO)
        with block.loop("start", 0, heads, LOAD, exact=True) as (chunk, start):
            count = chunk.let_named("count", smallest(LOAD, heads - start))
            with chunk.loop("head", start, start + count, exact=True) as (body, head):
                self.calls.call(body, "update_head", {**now, "head": head})
                lagging = Choice(
                    compare("==", head, heads - 1), heads, Largest(ZERO, head + 1 - LAG)
                )
                done = Choice(alone, lagging, per_head * (head + 1))
                ready = body.let_named("ready", smallest(done, next_heads))
                with body.loop("other", read, ready, exact=True) as (each, other):
                    self.calls.call(each, "read_head", {**ahead, "head": other})
                body.let_named("read", ready)
                self._between(body, rows, head, now, ahead)
            with _if(chunk, self._returned(token)) as whole:
                self.calls.call(whole, "store_token_states", {})
            with chunk.when(self._last(token)) as last:
                self.calls.call(last, "store_states", {})
        with block.when(compare(">", next_heads, 0)) as shift:
            carried = self._carried()
            shift.rebind(carried, tuple(f"next_{name}" for name in carried))

    def _prepare(self, block: Block, ahead: dict[str, Number]) -> None:
        """What the next step needs; the vectors of a token are there one token ahead."""
        held = (*self.calls.prepared, *self.calls.vectors)
        block.rebind(tuple(f"next_{name}" for name in held), held)
        with block.when(compare(">", ahead["heads"], 0)) as reading:
            self.calls.reads(reading, self.phases.raw_shape(ahead["heads"]), "next_raw_psum")
            with reading.when(compare("==", ahead["lane"], 0)) as new:
                self._next_vectors(new, ahead)
                self.calls.call(new, "prepare_rows", ahead, prefix="next_")
                self.calls.call(new, "spread_decay", ahead, prefix="next_")

    def _next_vectors(self, block: Block, ahead: dict[str, Number]) -> None:
        """Take the vectors that came for the next token, and send for those of the one after."""
        pack = self.calls.packs.get("load_vectors")
        if pack is None:
            return
        block.rebind((f"next_{pack.name}",), (f"{_COMING}{pack.name}",))
        ahead[pack.name] = Name(f"next_{pack.name}")
        after = ahead["token"] + 1
        with block.when(compare("<", after, self.tokens)) as more:
            self.calls.call(more, "load_vectors", {"token": after}, prefix=_COMING)

    def _between(
        self,
        block: Block,
        rows: Number,
        head: Number,
        now: dict[str, Number],
        ahead: dict[str, Number],
    ) -> None:
        """What is done after some heads of a group."""
        heads = now["heads"]
        with block.when(after_head(head, OUTPUTS_AT, heads)) as outputs:
            self.calls.call(outputs, "group_outputs", now)
        done = binary("and", compare("==", now["lane"] + heads, rows), self._complete(now["token"]))
        finish_at = compare("==", head, Name("finish_at"))
        with block.when(binary("and", done, finish_at)) as finish:
            self.calls.call(finish, "finish_rows", now)
        due = binary("and", compare(">", ahead["heads"], 0), compare("==", head, Name("deltas_at")))
        with block.when(due) as deltas:
            self.calls.call(deltas, "group_deltas", ahead, prefix="next_")

    def _carried(self) -> tuple[str, ...]:
        """What belongs to one step and is taken over from the next one when its turn comes."""
        reads = self.calls.packs.get("group_deltas")
        return (*([reads.name] if reads else ()), *self.calls.prepared, *self.calls.vectors)
