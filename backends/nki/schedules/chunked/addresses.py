"""Where a lane's chunk lies in a tensor: strides and offsets over the record `sizes` of axes.

A lane is one (batch, value head, tile of value columns); `lane` counts them with the tile fastest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from backends.nki.program.mentions import names_in
from backends.nki.program.nodes import Function
from backends.nki.program.numbers import ZERO, Name, Number, product
from backends.nki.program.structures import Call
from backends.nki.schedules.chunked.scan import Scan
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.addressing import Strides, field_strides
from gdsl.ir.dims import Atom, Dim
from gdsl.ir.kernel import Input, Output, State
from gdsl.source import Span

LANE, TILES, SIZES = Name("lane"), Name("tiles"), Name("sizes")
PLACE_OF_KEYS = "place_of_keys"
"""A function like an offset, for no tensor: lanes with one key have one place at a token."""


@frozen
class Addresses:
    """Addresses of one scan's tensors."""

    scan: Scan

    def stride(self, tensor: Input | State | Output, axis: str) -> Number:
        """Elements between neighbours along an axis, over the names of axes."""
        return self._lies(tensor.name, tensor.dims)[0].of(axis)

    def _lies(self, name: str, dims: Sequence[Dim]) -> tuple[Strides, Number]:
        """Strides and first element of a tensor, or of the field of one that has this name."""
        return field_strides(dims, self.scan.fields.get(name, {}))

    def offset(self, tensor: str, token: Number) -> Number:
        """Where the elements of the lane at hand begin, at a token."""
        return Call(f"{tensor}_offset", (LANE, token, SIZES))

    def row_of(self, lane: Number) -> Number:
        """The row of the batch that a lane belongs to."""
        return Call("row_of", (lane, SIZES))

    def place_of_keys(self, token: Number) -> Number:
        """Which key and query the lane at hand has, at a token."""
        return Call(PLACE_OF_KEYS, (LANE, token, SIZES))

    def functions(self) -> Iterator[Function]:
        """For each tensor the function `<tensor>_offset(lane, token, sizes)`."""
        scan = self.scan
        if scan.chunk.shared:
            yield self._place_of_keys()
        for item in scan.inputs:
            yield self._function(item.name, item.dims, item.span)
        for output, _ in scan.formulas.outputs:
            yield self._function(output.name, output.dims, output.span)
        yield self._function(scan.state.argument, scan.state.dims, scan.state.span)
        if scan.checkpoints is not None:
            output = scan.checkpoints
            yield self._function(output.name, output.dims, output.span, "checkpoint")
        yield self._row()

    def _place_of_keys(self) -> Function:
        scan = self.scan
        axes = [*(axis for axis in scan.mapped if axis not in scan.chunk.shared), scan.axis]
        doc = "Which key and query a lane has at a token, as a number."
        stage = Stage(PLACE_OF_KEYS, ("lane", "token", "sizes"), doc, scan.key.span)
        terms = self._terms(PLACE_OF_KEYS, [Atom(axis) for axis in axes], Name("token"))
        return self._sum(stage, terms, "place")

    def _function(
        self, name: str, dims: Sequence[Dim], origin: Span | None, place: str = "token"
    ) -> Function:
        doc = f"Where a lane's elements begin in `{name}`, at a {place}."
        stage = Stage(f"{name}_offset", ("lane", place, "sizes"), doc, origin)
        return self._sum(stage, self._terms(name, dims, Name(place)), "offset")

    def _sum(self, stage: Stage, terms: Sequence[Number], name: str) -> Function:
        stage.block.take("sizes", *names_in(terms, known=stage.parameters))
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        stage.block.let_named(name, total)
        return stage.done(name)

    def _row(self) -> Function:
        doc = "The row of the batch that a lane belongs to."
        stage = Stage("row_of", ("lane", "sizes"), doc, self.scan.state.span)
        return self._sum(stage, [self._index(self.scan.mapped[0])], "row")

    def _terms(self, name: str, dims: Sequence[Dim], place: Number) -> list[Number]:
        scan, (steps, begin) = self.scan, self._lies(name, dims)
        terms = [self._index(axis) * steps.of(axis) for axis in scan.mapped if axis in steps.axes]
        if scan.value_axis in steps.axes:
            width = Name(scan.value_axis) // TILES
            terms.append(LANE % TILES * width * steps.of(scan.value_axis))
        for axis in (scan.axis, scan.run.states_axis):
            if axis in steps.axes:
                terms.append(place * steps.of(axis))
        return terms if begin == ZERO else [begin, *terms]

    def _index(self, axis: str) -> Number:
        """The index of a lane along a mapped axis."""
        mapped = self.scan.mapped
        inner = (TILES, *(Name(name) for name in mapped[mapped.index(axis) + 1 :]))
        whole = LANE // product(inner)
        return whole if axis == mapped[0] else whole % Name(axis)
