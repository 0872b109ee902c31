"""What a chunked kernel does before its first chunk: it makes the tensors that its rule reads.

Rows of the batch and their tokens come in blocks of up to 512 tokens, several short rows together:
turned once, they are projected and filtered, block after block.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from backends.nki.contract import Contract
from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import Constant, Function, Rebind, Space, Tile, View
from backends.nki.program.numbers import (
    NONE,
    ONE,
    ZERO,
    Largest,
    Name,
    Number,
    product,
    smallest,
)
from backends.nki.program.structures import tupled
from backends.nki.schedules.chunked import filter_channels, lines, projecting
from backends.nki.schedules.chunked.entries import Entries
from backends.nki.schedules.chunked.filtering import (
    Filtering,
    bind_lengths,
    kind_of,
    write_constants,
    write_lengths,
)
from backends.nki.schedules.chunked.front import Front
from backends.nki.schedules.chunked.given_tokens import load_tokens
from backends.nki.schedules.chunked.projected import Projected, Turned
from backends.nki.schedules.chunked.runs import runs_of
from backends.nki.schedules.chunked.sharding import CORE, CORES
from gdsl.ir.kernel import Input

ROWS, WIDE = Name("ROWS"), Name("WIDE")


@define
class Before:
    """Statements of the entry, and the functions and constants they need."""

    contract: Contract
    front: Front
    entry: str
    """The batch axis."""
    axis: str
    """The axis of tokens."""
    entries: Entries | None = None
    """Rows of a pool; None in front of a rule that goes token by token."""
    functions: tuple[Function, ...] = field(init=False, default=())
    constants: tuple[Constant, ...] = field(init=False, default=())
    windows: tuple[Filtering, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        front = self.front
        for projected in front.projected:
            self._tensor(projected.item)
        self.windows = tuple(Filtering(self.contract, f, front, self.entry) for f in front.filtered)
        if front.projected or front.filtered:
            self.constants = projecting.CONSTANTS
        for item in front.plan.kernel.kernel.inputs:
            if item.name in front.sources:
                self._tensor(item, of=item.name)

    def _tensor(self, item: Input, of: str | None = None) -> None:
        """A tensor in HBM that the kernel makes; `of`: whose dtype it has, where it is a name."""
        contract = self.contract
        element = contract.element(of, item.dtype) if of else contract.new_element(item.dtype)
        sizes = contract.sizes(item.dims)
        contract.tensors[item.name] = Tile(item.name, sizes, element, Space.SHARED_HBM)

    def write(self, main: Block) -> None:
        """Add the statements."""
        front = self.front
        if front.projected or front.filtered:
            main.banner("Projections and windows of all tokens")
            self._check(main)
            self._make_tensors(main)
            self._blocks(main)
            made = [p.item.name for p in front.projected] + [f.item.name for f in front.filtered]
            self._meet(main, made, "Heads read what the other core made.")
            self.functions = tuple(self._functions())
        sources = front.sources
        if sources:
            main.names.taken.update(sources)
            main.statements.append(Rebind(tuple(sources), tuple(sources.values())))

    # ---- what is projected

    @property
    def _projections(self) -> tuple[Projected, ...]:
        """All that is projected: for the rule, and for windows."""
        seen = [f.token for f in self.front.filtered if isinstance(f.token, Projected)]
        return (*seen, *self.front.projected)

    @property
    def _apart(self) -> bool:
        """Whether columns of some weight are used that lie apart."""
        return any(projected.part for projected in self._projections)

    def _functions(self) -> list[Function]:
        front = self.front
        found: list[Function] = []
        projections = self._projections
        if projections:
            turned = any(isinstance(p.moving, Turned) for p in projections)
            rows = bool(front.projected)
            found += projecting.functions(turned=turned, rows=rows, runs=self._apart)
        if front.filtered:
            kind = kind_of(front)
            if not kind.projected:
                found.append(load_tokens(kind))
            found += (*lines.functions(kind), *filter_channels.functions(kind))
        return found

    def _check(self, main: Block) -> None:
        """Assert that contractions divide into groups of partitions."""
        name = self.contract.kernel.name
        seen = {p.section.axis: isinstance(p.moving, Input) for p in self._projections}
        for axis, given in seen.items():
            hidden = Name(axis)
            if given:
                main.require(
                    compare("==", hidden % ROWS, 0),
                    f"{name} needs {axis} % 128 == 0, got {{{axis}}}",
                )
            else:
                main.require(
                    compare("==", hidden % smallest(ROWS, hidden), 0),
                    f"{name} needs {axis} of at most 128, or a multiple of it, got {{{axis}}}",
                )

    def _make_tensors(self, main: Block) -> None:
        contract, front = self.contract, self.front
        for projected in front.projected:
            main.create(contract.tensors[projected.item.name])
            if self._apart:
                weight = projected.section.weight
                channels = product(contract.sizes(weight.dims[1:]))
                runs = runs_of(weight.dims[1:], projected.part, channels, weight.span)
                main.let_named(self._runs_name(projected), runs.record)
        if not front.filtered:
            return
        write_constants(main)
        valid = front.filtered[0].section.run.valid_len
        entries = self.entries
        if entries is not None and front.slots is not None:
            bind_lengths(main, entries.live_tokens, Name(self.axis))
        elif valid is not None:
            length = next(item for item in contract.kernel.inputs if item.symbol == valid)
            write_lengths(main, contract, length, Name(self.axis))
        for window in self.windows:
            window.write(main, kind_of(front), entries.addresses if entries else None)

    def _blocks(self, main: Block) -> None:
        """Blocks of tokens, of several rows where they are short."""
        batch, total = Name(self.entry), Name(self.axis)
        given = (p.section.axis for p in self._projections if isinstance(p.moving, Input))
        fits = [projecting.at_once(Name(axis)) for axis in dict.fromkeys(given)] or [WIDE]
        most = fits[0]
        for other in fits[1:]:
            most = smallest(most, other)
        most = main.let("most", most)
        most_rows = main.let_named("most_rows", smallest(batch, Largest(ONE, most // total)))
        with main.loop("row", ZERO, batch, most_rows, exact=True) as (of_rows, row):
            of_rows.let_named("rows", smallest(most_rows, batch - row))
            with of_rows.loop("token", ZERO, total, most, exact=True) as (body, token):
                body.let_named("tokens", smallest(most, total - token))
                self._block(body)

    def _block(self, body: Block) -> None:
        """Project and filter the tokens at hand."""
        place = tuple(Name(name) for name in lines.PLACE)
        turned = self._project(body) if self._projections else {}
        live: tuple[Number, ...] = ()
        if self.front.filtered and kind_of(self.front).lengths:
            live = (Name("live_sb"),)
            self._find_live(body)
        for window in self.windows:
            token_of = window.filtered.token
            moving = (
                (Name(turned[_key(token_of.moving)]),) if isinstance(token_of, Projected) else ()
            )
            body.call("filter_channels", Name(window.record), *moving, *live, *place)

    def _project(self, body: Block) -> dict[str, str]:
        """Turn and project the tokens at hand; names of tiles by what is turned."""
        row, rows, token, tokens = (Name(name) for name in lines.PLACE)
        first = body.let_named("first", row * Name(self.axis) + token)
        held = body.let_named("held", rows * tokens)
        turned = self._turned(body, first, held)
        for projected in self.front.projected:
            item, section = projected.item, projected.section
            columns = product(self.contract.sizes(item.dims)[2:])
            share = (columns * CORE // CORES, columns * (CORE + 1) // CORES)
            where = (Name(self._runs_name(projected)),) if self._apart else ()
            body.call(
                "project_rows",
                Name(turned[_key(projected.moving)]),
                Name(section.weight.name),
                Name(item.name),
                first,
                held,
                Name(section.axis),
                columns,
                *share,
                *where,
            )
        return turned

    def _runs_name(self, projected: Projected) -> str:
        """What says where the columns of a projection lie in its weight."""
        return f"{projected.item.name}_runs"

    def _find_live(self, body: Block) -> None:
        """Find the tokens at hand that are some row's."""
        valid = self.front.filtered[0].section.run.valid_len
        found = (item for item in self.contract.kernel.inputs if item.symbol == valid)
        length = next(found, None)
        arguments = (Name("lengths_f32"), *(Name(name) for name in lines.PLACE))
        always = length is None or length.name not in self.contract.optional
        if length is None or always or self.front.slots is not None:
            body.call("find_live", *arguments, result="live_sb")
            return
        body.let_named("live_sb", NONE)
        with body.when(compare("!=", Name(length.name), NONE)) as given:
            given.call("find_live", *arguments, result="live_sb")

    def _turned(self, body: Block, first: Number, held: Number) -> dict[str, str]:
        """Turn the tokens that projections need; names of tiles by what is turned."""
        found: dict[str, str] = {}
        for projected in self._projections:
            moving = projected.moving
            given = moving if isinstance(moving, Input) else moving.moving
            if given.name not in found:
                tile = body.names.fresh(f"{given.name}_T")
                hidden = self.contract.sizes(given.dims)[-1]
                body.call("turn_rows", Name(given.name), first, held, hidden, result=tile)
                found[given.name] = tile
            if isinstance(moving, Turned) and _key(moving) not in found:
                section = moving.section
                tile = body.names.fresh(f"{section.symbol.name}_T")
                columns = product(self.contract.sizes(section.weight.dims)[1:])
                arguments = (Name(found[given.name]), Name(section.weight.name), held)
                body.call("project_turned", *arguments, Name(section.axis), columns, result=tile)
                found[_key(moving)] = tile
        return found

    def _meet(self, main: Block, names: Sequence[str], why: str) -> None:
        """Two cores wait for each other's part of tensors."""
        with main.when(compare(">", CORES, 1)) as both:
            both.comment(why)
            for name in names:
                tile = self.contract.tensors[name]
                both.do("core_barrier", data=View(tile, tile.shape), cores=tupled(0, 1))


def _key(moving: Input | Turned) -> str:
    """What tells apart what is turned."""
    return moving.name if isinstance(moving, Input) else moving.section.weight.name
