"""The convolutions of a kernel: which function of the module filters them, and its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from attrs import define, field

from backends.nki.program.build import Block
from backends.nki.program.nodes import (
    F32,
    Element,
    Integers,
    Operand,
    Space,
    Tile,
    View,
)
from backends.nki.program.numbers import ONE, ZERO, Literal, Name, Number
from backends.nki.refusal import refuse
from backends.nki.schedules.addresses import dimension
from backends.nki.schedules.block.channels import lying
from backends.nki.schedules.block.row_chunks import fetched_shape
from backends.nki.schedules.block.sections import Convolution, Field, Port
from backends.nki.schedules.block.taps import LOAD_TAPS, TURN_TAPS, Taps
from backends.nki.schedules.block.window_arguments import Arguments
from backends.nki.schedules.block.window_token import TokenStep
from backends.nki.schedules.block.window_tokens import TokensStep
from backends.nki.schedules.block.window_tokens_filtered import slide_tokens
from backends.nki.schedules.block.window_tokens_moved import fetch_tokens
from backends.nki.select.constants import PARTITIONS
from gdsl.ir.dims import Atom


@define(eq=False)
class Windows(Arguments):
    """Writes the convolutions of a kernel: taps once, windows for all entries or for one."""

    raw: dict[tuple[str, Field], View] = field(factory=dict)
    """Taps as they come in."""
    taps: dict[tuple[str, Field], View] = field(factory=dict)
    """Taps turned."""
    fetched: dict[tuple[str, Field], View] = field(factory=dict)
    """Windows on chip."""
    _loaded: dict[tuple[str, Field], Taps] = field(init=False, factory=dict)

    # ---- taps

    def load(self, block: Block, section: Convolution) -> None:
        """Bring in the taps of every field."""
        self.functions.setdefault(LOAD_TAPS.name, LOAD_TAPS)
        weight, columns = section.weight, self._taps(section)
        last = weight.dims[-1]
        if (
            isinstance(last, Atom)
            and last.axis in section.state.type.axes
            and (last.axis != section.axis)
        ):
            raise refuse("taps must be the innermost axis of their tensor", weight.span)
        tile = self.contract.tensors[weight.name]
        for part in section.fields:
            where = lying(weight.dims[:-1], part, self.window, ONE, weight.span)
            heads, wide = self.window.size(part.heads), self._wide(part)
            taps = Taps(tile, where, heads, wide, columns)
            partitions, free = taps.rows_shape
            free = block.let(f"{part.name}_tap_columns", free)
            rows = block.tile(f"{part.name}_taps_rows_sb", (partitions, free), tile.element)
            self._call(block, LOAD_TAPS, taps.loading(rows))
            self.raw[section.symbol.name, part] = rows
            self._loaded[section.symbol.name, part] = taps

    def turn(self, block: Block, section: Convolution) -> None:
        """Turn the taps of every field."""
        self.functions.setdefault(TURN_TAPS.name, TURN_TAPS)
        for part in section.fields:
            place = section.symbol.name, part
            taps, rows = self._loaded[place], self.raw[place]
            turned = block.tile(f"{part.name}_taps_sb", taps.turned_shape, F32)
            self._call(block, TURN_TAPS, taps.turning(rows, turned))
            self.taps[place] = turned

    # ---- one token

    def fetch(self, block: Block, section: Convolution, tokens: Mapping[Port, View]) -> None:
        """Bring in the windows of all entries, for `step`."""
        state = section.state
        window, new = self._tensors(section)
        slots = self.addresses.read(state)
        for part, port in zip(section.fields, section.token, strict=True):
            heads, run = self.window.size(part.heads), self._wide(part) * Name(section.axis)
            form = self._form(section, port, tokens.get(port))
            element = window.element
            if new is not None and self._missing(section) is not None:
                element = new.element
            partitions, columns = fetched_shape(self.rows.entries, heads, run)
            columns = block.let(f"{part.name}_window_columns", columns)
            view = block.tile(f"{part.name}_windows_sb", (partitions, columns), element)
            self.fetched[section.symbol.name, part] = view
            known = self._known(section, part, view, window, new)
            known |= {"windows_sb": view, "entries": self.rows.entries, "wide": self._wide(part)}
            if slots is not None:
                known["read_slots"] = slots
            block.origin = state.span
            self._call(block, self._function("fetch_windows", form.fetch), known)

    def step(self, block: Block, section: Convolution, tokens: Mapping[Port, View]) -> list[View]:
        """Filter one token of all entries; returns the sums of each field, channels turned."""
        return [
            self._step(block, section, part, port, tokens.get(port))
            for part, port in zip(section.fields, section.token, strict=True)
        ]

    def _form(self, section: Convolution, port: Port, token: View | None) -> TokenStep:
        state = section.state
        _, new = self._tensors(section)
        writes = self.addresses.write(state) if section.windows else None
        return TokenStep(
            before=1 if section.newest_inside else 0,
            given=token is None,
            rounded=None if token is not None else self._rounded(section, port),
            element=self._element(section, new),
            optional=self._missing(section) is not None,
            reads_slots=self.addresses.read(state) is not None,
            writes_slots=writes is not None,
            stored=bool(section.windows),
        )

    def _step(
        self, block: Block, section: Convolution, part: Field, port: Port, token: View | None
    ) -> View:
        state = section.state
        window, new = self._tensors(section)
        sums = block.tile(f"{part.name}_sum_sb", (self._wide(part), self.rows.columns(part)), F32)
        known = self._known(section, part, sums, window, new)
        place = section.symbol.name, part
        known |= {"windows_sb": self.fetched[place], "taps_sb": self.taps[place]}
        written = self.addresses.write(state) if section.windows else None
        if written is not None:
            known["write_slots"] = written
        known["entries"] = self.rows.entries
        if token is not None:
            known["token_sb"] = token
        else:
            known |= self._given(port)
        block.origin = section.run.span
        form = self._form(section, port, token)
        self._call(block, self._function("slide_token", form.function), known)
        return sums

    # ---- several tokens

    def scan(self, block: Block, section: Convolution) -> list[View]:
        """Filter the tokens of the team at hand; returns the sums of each field."""
        known = {
            part: self._sent_for(block, section, part, port)
            for part, port in zip(section.fields, section.token, strict=True)
        }
        return [
            self._scan(block, section, part, port, known[part])
            for part, port in zip(section.fields, section.token, strict=True)
        ]

    def _tokens_form(self, section: Convolution, port: Port) -> TokensStep:
        state = section.state
        _, new = self._tensors(section)
        indexed = None if state.accepted is None else dimension(state.dims, state.accepted.axis)
        rounded, element = self._rounded(section, port), self._element(section, new)
        token = self.contract.tensors[self._token_tensor(port).name].element
        same = (rounded or token).bytes == element.bytes
        return TokensStep(
            before=1 if section.newest_inside else 0,
            rounded=rounded,
            element=element,
            line=self._line(section) if same else F32,
            optional=self._missing(section) is not None,
            indexed=indexed if state.slots is None else 0,
            slots=state.slots is not None,
            lengths=section.run.valid_len is not None,
            shows=bool(section.token_windows),
            stored=bool(section.windows),
        )

    def _sent_for(
        self, block: Block, section: Convolution, part: Field, port: Port
    ) -> dict[str, Operand]:
        """Send for windows, tokens and ends; returns the arguments that both functions take."""
        state, form = section.state, self._tokens_form(section, port)
        window, new = self._tensors(section)
        heads, wide = self.window.size(part.heads), self._wide(part)
        token = self.contract.tensors[self._token_tensor(port).name]
        element = window.element
        if new is not None and self._missing(section) is not None:
            element = new.element
        sides: dict[str, tuple[Number, Element]] = {
            "windows": (wide * Name(section.axis), element),
            "tokens": (self.rows.tokens * wide, token.element),
        }
        lengths: dict[str, Operand] = {}
        if section.run.valid_len is not None:
            inputs = {item.symbol: item for item in self.contract.kernel.inputs}
            length = self.contract.tensors[inputs[section.run.valid_len].name]
            lengths = {"lengths": View(length, length.shape), "places_sb": self._places}
            sides["ends"] = (ONE, length.element)
        held: dict[str, View] = {}
        partitions, chunks = fetched_shape(self.rows.entries, heads, ONE)
        beside = block.let(f"{part.name}_chunks", chunks)
        for name, (width, kind) in sides.items():
            shape = (partitions, beside * width)
            held[f"{name}_sb"] = block.tile(f"{part.name}_{name}_sb", shape, kind)
        known = self._known(section, part, held["windows_sb"], window, new)
        known |= self._given(port) | held | lengths
        known |= {"tokens": self.rows.tokens, "entries": self.rows.entries, "wide": wide}
        known["team"] = self.window.number(ZERO)
        numbers = self.addresses.read(state) if state.slots else self.addresses.kept(state)
        if numbers is not None:
            known["numbers"] = numbers
        block.origin = state.span
        self._call(block, self._function("fetch_tokens", partial(fetch_tokens, form)), known)
        return known

    def _scan(
        self,
        block: Block,
        section: Convolution,
        part: Field,
        port: Port,
        known: dict[str, Operand],
    ) -> View:
        form = self._tokens_form(section, port)
        sums = block.tile(f"{part.name}_sum_sb", (self._wide(part), self.rows.columns(part)), F32)
        known = {**known, "sum_sb": sums, "taps_sb": self.taps[section.symbol.name, part]}
        written = self.addresses.write(section.state) if section.windows else None
        if written is not None:
            known["new_numbers"] = written
        for output in section.token_windows:
            tile = self.contract.outputs[output.name]
            lies = self._columns(output, part, section)
            known |= {
                "shown_windows": View(tile, tile.shape),
                "shown_first": lies.first,
                "shown_step": lies.step,
                "shown_apart": lies.strides.of(self.entry),
                "shown_next": lies.strides.of(str(section.run.states_axis)),
            }
        block.origin = section.run.span
        self._call(block, self._function("slide_tokens", partial(slide_tokens, form)), known)
        return sums

    def number_tokens(self, block: Block) -> None:
        """Number the tokens on every partition: once."""
        places = self._places
        block.create(places.tile)
        pattern = Integers(((ONE, self.rows.tokens),))
        block.do("iota", dst=places, pattern=pattern, offset=ZERO)

    @property
    def _places(self) -> View:
        tile = Tile("places_sb", (Literal(PARTITIONS), self.rows.tokens), F32, Space.SBUF)
        return View(tile, tile.shape)
