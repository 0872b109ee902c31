"""All tokens of a prompt, a channel of each partition at a time: the functions of a scan."""

from __future__ import annotations

from attrs import define, evolve, field

from backends.nki.program.build import Block, Names, compare, part
from backends.nki.program.nodes import (
    F16,
    F32,
    Allocate,
    Element,
    Function,
    Operand,
    Pattern,
    Space,
    Tile,
    Token,
    Verbatim,
    View,
)
from backends.nki.program.numbers import ONE, ZERO, Largest, Literal, Name, Number, binary, smallest
from backends.nki.program.outline import outline
from backends.nki.schedules.window.lengths import Lengths
from backends.nki.schedules.window.skipped import write_skipped, zero_skipped
from backends.nki.schedules.window.tensors import (
    LANES,
    MANY,
    PER,
    ROW,
    ROWS,
    SLOT,
    SYNC,
    Tensors,
    to_the_end,
)
from backends.nki.select.addressing import strides
from gdsl.ir.types import DtypeVar

BLOCK, TOKENS, BANK = Name("BLOCK"), Name("TOKENS"), Name("BANK")
LINES, PARTITIONS = Name("LINES"), Name("PARTITIONS")
TOKEN, COUNT = Name("token"), Name("tokens")
GROUP, HELD, MEMBER = Name("group"), Name("held"), Name("member")
GPSIMD = Token("nisa.engine.gpsimd")
DOCS = {
    "load_lines": "Bring in the lines of `held` channels of each partition, from `group` on.",
    "filter_channel": "Weigh, activate and store the tokens of one channel of each partition.",
    "filter_tokens": "Filter all tokens of `lanes` * `per` channels from `first` on, all rows.",
}


@define
class Scan:
    """Writes the functions; names of tiles are the same in all of them."""

    tensors: Tensors
    names: Names
    module: set[str]
    """Constants of the module."""
    functions: dict[str, Function] = field(factory=dict)

    def write(self) -> Function:
        """Write all functions; return the one that the entry calls."""
        filter = self.tensors.filter
        shape = (LANES, ROWS, MANY, self.tensors.columns)
        element = self.tensors.window_element
        window_sb = _whole("window_sb", shape, element)
        if filter.selects:
            window_sb = _whole("start_sb", shape, element)
        new_sb = _whole("new_sb", shape, element)
        columns = self.tensors.columns + COUNT
        line_sb = _whole("line_sb", (LANES, ROWS, HELD, columns), self.tensors.line_element)
        lengths = Lengths(self.tensors)
        self._outline("load_lines", self._load(window_sb, line_sb), ("line_sb",))
        self._outline("filter_channel", self._channel(line_sb, lengths))
        self._outline("filter_tokens", self._tokens(window_sb, new_sb, line_sb, lengths))
        return self.functions["filter_tokens"]

    def _outline(self, name: str, block: Block, returns: tuple[str, ...] = ()) -> None:
        self.functions[name] = outline(
            name, DOCS[name], block.statements, returns=returns, known=self.module
        )

    def _call(self, block: Block, name: str, result: str | None = None, **given: Number) -> None:
        """Call a function; parameters that are not given go by their name."""
        function = self.functions[name]
        arguments: list[Operand] = [given.get(p, Name(p)) for p in function.parameters]
        block.call(name, *arguments, result=result)

    # ---- functions

    def _load(self, window_sb: View, line_sb: View) -> Block:
        """The columns before the tokens, and the tokens: [lanes, rows, held, columns + tokens]."""
        tensors, filter, columns = self.tensors, self.tensors.filter, self.tensors.columns
        source = tensors.argument(filter.token.name)
        axis = filter.run.axis or ""
        block = Block(self.names, origin=filter.token.span)
        block.statements.append(Allocate(line_sb.tile, block.origin))
        first, later = block.inner(), block.inner()
        first.do(
            "tensor_copy",
            dst=part(line_sb, None, None, None, (ZERO, columns)),
            src=part(window_sb, None, None, (GROUP, HELD), None),
            engine=Token("nisa.engine.gpsimd"),
        )

        def load(target: Block, dst: View, start: Number, count: Number) -> None:
            src = tensors.block(
                source, filter.token.dims, (axis, start, count), many=HELD, slot=SLOT + GROUP
            )
            target.do("dma_copy", dst=dst, src=src, **tensors.line_queue)

        load(first, to_the_end(line_sb, columns, COUNT), ZERO, COUNT)
        load(later, line_sb, TOKEN - columns, columns + COUNT)
        block.decide(compare("==", TOKEN, ZERO), first, later)
        return block

    def _channel(self, line_sb: View, lengths: Lengths) -> Block:
        """The taps over the line, bias, activation, output."""
        filter = self.tensors.filter
        block = Block(self.names, origin=filter.run.span)
        channel = block.let_named("channel", GROUP + MEMBER)
        sum_psum = self._taps(block, line_sb, channel)
        block.origin = filter.out.span
        out = self.tensors.contract.outputs[filter.out.name]
        out_sb = block.tile("out_sb", (LANES, ROWS, COUNT), out.element)
        function = Token("nl.silu" if filter.silu else "nl.copy")
        if filter.bias is None:
            block.do("activation", dst=out_sb, op=function, data=sum_psum)
        else:
            tile = self.tensors.argument(filter.bias.name)
            bias_sb = _whole("bias_sb", (LANES, MANY), tile.element)
            bias = part(bias_sb, None, (channel, ONE))
            block.do("activation", dst=out_sb, op=function, data=sum_psum, bias=bias)
        lengths.write_zeros(block, out_sb)
        zero_skipped(block, self.tensors, out_sb)
        target = self.tensors.block(
            out,
            filter.out.dims,
            (filter.run.axis or "", TOKEN, COUNT),
            many=ONE,
            slot=SLOT + channel,
        )
        block.do("dma_copy", dst=target, src=out_sb, **SYNC)
        return block

    def _taps(self, block: Block, line_sb: View, channel: Number) -> View:
        """The sum over the taps: matmuls with diagonal stationaries, fp32 in PSUM."""
        taps = self.tensors.taps
        identity = Tile("identity_sb", (PARTITIONS, PARTITIONS), F32, Space.SBUF)
        weight = Tile("weight_sb", (LANES, MANY * taps), F32, Space.SBUF)
        block.comment("A tap is a diagonal stationary: 11 bits of it beside 16-bit tokens.")
        element = self._tap_element(block)
        diagonal_sb = block.tile("diagonal_sb", (LANES, taps * LANES), element)
        spread: dict[str, Operand] = {
            "data1": Pattern(identity, ((PARTITIONS, LANES), (ZERO, taps), (ONE, LANES)), ZERO),
            "data2": Pattern(
                weight, ((MANY * taps, LANES), (ONE, taps), (ZERO, LANES)), channel * taps
            ),
            "op": Token("nl.multiply"),
            "engine": GPSIMD,
        }
        block.do("tensor_tensor", dst=diagonal_sb, **spread)
        block.comment("For few tokens, what that leaves of the weights is a second stationary.")
        short = compare("<=", Name(self.tensors.filter.run.axis or ""), BANK)
        rest_sb = block.tile("rest_sb", (LANES, taps * LANES), element)
        with block.when(short) as few:
            wide_sb = few.tile("wide_sb", (LANES, taps * LANES), F32)
            few.do("tensor_tensor", dst=wide_sb, **spread)
            few.do(
                "tensor_tensor",
                dst=rest_sb,
                data1=wide_sb,
                data2=diagonal_sb,
                op=Token("nl.subtract"),
                engine=GPSIMD,
            )
        sum_psum = block.tile("sum_psum", (LANES, ROWS, COUNT), F32, Space.PSUM)
        with block.loop("start", ZERO, COUNT, BANK) as (bank, start):
            width = bank.let_named("width", smallest(BANK, COUNT - start))
            with bank.loop("tap", ZERO, taps) as (body, tap):
                first = body.let_named("begin", start + tap + self.tensors.before)
                moving = part(line_sb, None, None, (MEMBER, ONE), (first, width))
                dst = part(sum_psum, None, None, (start, width))
                body.do(
                    "nc_matmul",
                    dst=dst,
                    stationary=part(diagonal_sb, None, (tap * LANES, LANES)),
                    moving=moving,
                    accumulate=compare(">", tap, 0),
                )
                with body.when(short) as few:
                    few.do(
                        "nc_matmul",
                        dst=dst,
                        stationary=part(rest_sb, None, (tap * LANES, LANES)),
                        moving=moving,
                        accumulate=True,
                    )
        return sum_psum

    def _tokens(self, window_sb: View, new_sb: View, line_sb: View, lengths: Lengths) -> Block:
        """Blocks of channels, rows and tokens; lines are fetched two groups ahead."""
        filter, taps = self.tensors.filter, self.tensors.taps
        batch, total = Name(filter.batch), Name(filter.run.axis or "")
        block = Block(self.names)
        block.comment("Short rows share an instruction, up to one PSUM bank of tokens.")
        most_rows = block.let_named("most_rows", smallest(batch, Largest(ONE, BANK // total)))
        most = block.let_named("most", smallest(PER, Largest(ONE, BLOCK // (taps * most_rows))))
        lengths.write_load(block)
        write_skipped(block, self.tensors)
        with block.loop("slot", ZERO, PER, most, exact=True) as (body, _):
            body.let_named("many", smallest(most, PER - SLOT))
            self.tensors.load_weights(body)
            with body.loop("row", ZERO, batch, most_rows, exact=True) as (rows, _):
                rows.let_named("rows", smallest(most_rows, batch - ROW))
                rows.origin = filter.state.span
                self.tensors.load_windows(rows)
                rows.statements.append(Allocate(new_sb.tile, rows.origin))
                with rows.loop("token", ZERO, total, TOKENS, exact=True) as (tokens, _):
                    tokens.let_named("tokens", smallest(TOKENS, total - TOKEN))
                    lengths.write_dead(tokens)
                    self._groups(tokens, window_sb, new_sb, line_sb, lengths)
                rows.origin = filter.state.span
                self.tensors.store_windows(rows, new_sb)
        return block

    def _groups(
        self, block: Block, window_sb: View, new_sb: View, line_sb: View, lengths: Lengths
    ) -> None:
        """Filter one group of channels while the next two are on their way."""
        total = Name(self.tensors.filter.run.axis or "")

        def load(target: Block, result: str, group: Number) -> None:
            held = smallest(LINES, MANY - group)
            self._call(target, "load_lines", result, group=group, held=held)

        load(block, "line_sb", ZERO)
        with block.when(compare("<", LINES, MANY)) as more:
            load(more, "next_line_sb", LINES)
        lengths.write_windows(block, window_sb, new_sb)
        with block.loop("group", ZERO, MANY, LINES, exact=True) as (body, group):
            body.let_named("held", smallest(LINES, MANY - group))
            later = group + 2 * LINES
            with body.when(compare("<", later, MANY)) as fetch:
                load(fetch, "later_line_sb", later)
            with body.loop("member", ZERO, HELD, exact=True) as (each, _):
                self._call(each, "filter_channel")
            body.origin = self.tensors.filter.state.span
            self._show(body, line_sb, lengths)
            end = compare("==", TOKEN + COUNT, total)
            if lengths.missing != Literal(True):
                end = binary("and", lengths.missing, end)
            with body.when(end) as last:
                last.comment("The end of the line is the new window.")
                last.do(
                    "tensor_copy",
                    dst=part(new_sb, None, None, (group, HELD), None),
                    src=to_the_end(line_sb, COUNT, self.tensors.columns),
                    engine=Token("nisa.engine.gpsimd"),
                )
            with body.when(compare("<", group + LINES, MANY)) as shift:
                shift.rebind(("line_sb",), ("next_line_sb",))
            with body.when(compare("<", later, MANY)) as shift:
                shift.rebind(("next_line_sb",), ("later_line_sb",))

    def _show(self, block: Block, line_sb: View, lengths: Lengths) -> None:
        """The windows after each token of a group of channels; zeros behind the end of a row."""
        output, columns = self.tensors.filter.token_windows, self.tensors.columns
        if output is None:
            return
        tile = self.tensors.contract.outputs[output.name]
        axis = str(self.tensors.filter.run.states_axis)
        block.comment("The window after each token is the line from its second column on.")
        with block.loop("place", ZERO, COUNT) as (body, place):
            shown_sb = body.tile("shown_sb", (LANES, ROWS, HELD, columns), tile.element)
            source = part(line_sb, None, None, None, (place + 1, columns))
            body.do("tensor_copy", dst=shown_sb, src=source, engine=GPSIMD)
            lengths.write_dead_windows(body, shown_sb, place)
            step = strides(output.dims).of(axis)
            target = self.tensors.block(
                tile,
                output.dims,
                (self.tensors.filter.axis, ZERO, columns),
                many=HELD,
                slot=SLOT + GROUP,
            )
            target = evolve(target, offset=target.offset + (TOKEN + place) * step)
            body.do("dma_copy", dst=target, src=shown_sb, **SYNC)

    def _tap_element(self, block: Block) -> Element:
        """What holds weights on TensorE, which does not mix fp32 with narrower dtypes."""
        token, state = self.tensors.filter.token, self.tensors.filter.state
        choices = token.dtype.choices if isinstance(token.dtype, DtypeVar) else (token.dtype,)
        wide = {choice.bytes == 4 for choice in choices}
        if token.dtype != state.dtype or wide == {True}:
            return F32
        if wide == {False}:
            return F16
        condition = f"{token.name}.dtype == nl.float32"
        block.statements.append(Verbatim(f"tap_dtype = nl.float32 if {condition} else nl.float16"))
        return Element("tap_dtype", 4, token.name)


def _whole(name: str, shape: tuple[Number, ...], element: Element) -> View:
    """A tile that another function makes."""
    return View(Tile(name, shape, element, Space.SBUF), shape)
