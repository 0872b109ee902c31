"""The window in front of a chunked rule: the filter of a convolution kernel, as one function.

Its channels are those of the packed axis as a whole; cores share them, whatever heads they take
later.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from backends.nki.contract import Contract
from backends.nki.program.build import Block, Names, compare
from backends.nki.program.nodes import Function, Space, Tile
from backends.nki.program.numbers import NONE, Name, Number
from backends.nki.program.outline import outline
from backends.nki.refusal import refuse
from backends.nki.schedules.chunked.front import Filtered
from backends.nki.schedules.window.filter import Filter
from backends.nki.schedules.window.program import RESERVED, constants_of, taps_of, write_filter
from gdsl.ir.dims import Atom, Axis, Dim, Unit
from gdsl.ir.kernel import Output

CHANNELS = "channels"
DOC = "The window over all tokens of this core's channels, and its last columns."


@frozen
class Filtering:
    """Writes what the entry does before the first chunk."""

    contract: Contract
    filtered: Filtered
    entry: str
    """The batch axis."""

    def write(self, main: Block) -> tuple[Function, ...]:
        """Filter all tokens into HBM; returns the functions for that."""
        contract, filter = self.contract, self.filter
        main.banner("The window in front, for all tokens")
        absent = self._fresh_window(main)
        token = self.filtered.token
        tile = Tile(
            self.filtered.name,
            contract.sizes(token.dims),
            contract.new_element(token.dtype),
            Space.SHARED_HBM,
        )
        main.create(tile)
        contract.tensors[tile.name] = tile
        kernel = evolve(contract.kernel, axes=(*contract.kernel.axes, Axis(CHANNELS)))
        outputs = {**contract.outputs, filter.out.name: tile}
        held = evolve(contract, kernel=kernel, outputs=outputs)
        taps = taps_of(main, filter, held)
        main.let_named(CHANNELS, contract.sizes((self._channel(token.dims),))[0])
        module = {constant.name for constant in constants_of(filter)}
        taken = {argument.name for argument in contract.kernel.call.arguments}
        block = Block(Names(taken | module | RESERVED | {tile.name, CHANNELS}))
        functions = write_filter(block, filter, held, taps, absent)
        whole = outline("filter_channels", DOC, block.statements, known=module)
        main.call(whole.name, *(Name(p) for p in whole.parameters))
        return (*functions, whole)

    @property
    def filter(self) -> Filter:
        """The window as the schedule of convolutions knows it: flat channels."""
        filtered, kernel = self.filtered, self.contract.kernel
        section, token = filtered.section, filtered.token
        if section.token_windows or section.state.slots or section.state.unless:
            raise refuse(
                "a window in a pool, one with a flag, or one after each token is not emitted in "
                "front of a rule in chunks",
                section.state.span,
            )
        if section.rounded is not None and section.rounded != token.dtype:
            raise refuse("tokens of a window that are rounded", section.run.span)
        new = section.windows
        if len(new) > 1:
            raise refuse("a window that is returned twice", new[1].span)
        out = Output(filtered.name, token.dtype, self._flat(token.dims), kernel.outputs[0].value)
        lengths = {item.symbol: item for item in kernel.inputs}
        valid = section.run.valid_len
        return Filter(
            kernel=kernel,
            run=section.run,
            state=evolve(section.state, dims=self._flat(section.state.dims)),
            batch=self.entry,
            channel=CHANNELS,
            axis=section.axis,
            newest_inside=section.newest_inside,
            token=evolve(token, dims=self._flat(token.dims)),
            weight=evolve(section.weight, dims=self._flat(section.weight.dims)),
            bias=None,
            silu=filtered.silu,
            length=None if valid is None else lengths[valid],
            unless=None,
            out=out,
            new_state=evolve(new[0], dims=self._flat(new[0].dims)) if new else None,
        )

    def _flat(self, dims: Sequence[Dim]) -> tuple[Dim, ...]:
        """Dimensions with all channels as one axis."""
        channel = self._channel(dims)
        return tuple(Atom(CHANNELS) if dim == channel else dim for dim in dims)

    def _channel(self, dims: Sequence[Dim]) -> Dim:
        """The dimension of channels: the one beside entries, tokens and columns of windows."""
        section = self.filtered.section
        around = {self.entry, section.run.axis, section.axis}
        around |= {a for a in section.weight.type.axes if a not in section.state.type.axes}
        found = [
            d
            for d in dims
            if not isinstance(d, Unit) and not (isinstance(d, Atom) and d.axis in around)
        ]
        if len(found) != 1:
            raise refuse(
                "a window in front of a rule in chunks needs its channels in one dimension",
                self.filtered.token.span,
            )
        return found[0]

    def _fresh_window(self, main: Block) -> dict[str, Number]:
        """Make the window that the caller did not bring; says when it has nothing in it."""
        contract, state = self.contract, self.filtered.section.state
        if state.argument not in contract.optional:
            return {}
        fresh = main.let_named("fresh_window", compare("==", Name(state.argument), NONE))
        if not state.inplace:
            return {state.argument: fresh}
        tile = contract.tensors[state.argument]
        with main.when(fresh) as body:
            element = contract.new_element(state.dtype)
            body.create(Tile(tile.name, tile.shape, element, Space.SHARED_HBM))
        return {state.argument: fresh}
