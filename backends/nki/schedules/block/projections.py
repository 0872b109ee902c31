"""The projections of a kernel: every port of one as a tile, its weight in the stream.

What a schedule does with a port, in this order: `plan` puts its weight into the stream, `create`
gives it a tile, `begin` sends for the first tiles of the weight (as many as find a slot), `finish`
multiplies tile after tile and fills each slot again at once. What comes between `begin` and
`finish` runs under the stream.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import define, field, frozen

from backends.isa.targets import PSUM_BANK_BYTES
from backends.nki.contract import Contract
from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import F32, Element, Function, Operand, Pattern, View
from backends.nki.program.numbers import ONE, ZERO, Choice, Literal, Name, Number
from backends.nki.refusal import refuse
from backends.nki.schedules.block.columns import columns_of, spanned
from backends.nki.schedules.block.projected_port import ProjectedPort
from backends.nki.schedules.block.projection_step import NEEDS, PROJECT_HEADS
from backends.nki.schedules.block.projection_stream import (
    BEGIN_STREAM,
    STREAM_FUNCTIONS,
    Stream,
    Weight,
    bytes_of,
    columns_name,
    element_bytes,
    units_per_tile,
)
from backends.nki.schedules.block.scales import Scales
from backends.nki.schedules.block.sections import Port, Projection
from backends.nki.select.addressing import strides
from backends.nki.select.constants import PARTITIONS, Constants
from backends.nki.select.helpers import QUEUE
from backends.nki.select.inputs import RowWindow
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input
from gdsl.ir.types import DtypeVar

BANK = PSUM_BANK_BYTES // F32.bytes
"""Entries whose sums of a head of channels fit side by side."""


@frozen
class Activation:
    """What moves, per entry: [partitions, entries * groups].

    Row p * groups + g of the weight meets columns g, g + groups, ... of partition p.
    """

    tile: View
    groups: Number


@define
class Projections:
    """The ports of a kernel's projections on this core. All entries at once: a bank of PSUM."""

    contract: Contract
    window: RowWindow
    """The rows of the delta rule: the batch axis, then its heads."""
    constants: Constants
    limits: Block
    """Where the emitted kernel asserts what it takes: its head."""
    streams: dict[Dtype | DtypeVar, Stream] = field(factory=dict)
    """By the dtype of the weights: a buffer has one."""
    ports: dict[Port, ProjectedPort] = field(factory=dict)
    row_columns: Number | None = None
    """Columns of one number per row, 128 rows to a column."""
    activations: dict[str, Activation] = field(factory=dict)
    """Of tensors, by their names."""
    limited: set[str] = field(factory=set)
    """What is asserted to fit on the partitions already."""
    groups: dict[str, Number] = field(factory=dict)
    """Rows of a weight per partition, by the contracted axis."""
    scales: Scales = field(init=False)

    @scales.default
    def _no_scales(self) -> Scales:
        return Scales(self.contract, self.window)

    @property
    def entries(self) -> Number:
        """Size of the batch axis."""
        return Name(self.entry)

    @property
    def entry(self) -> str:
        """The batch axis."""
        return self.window.axes[0]

    def heads(self, port: Port) -> Number:
        """Heads of a field on this core."""
        return self.window.size(port.field.heads)

    # ---- sizes and memory

    def plan(self, block: Block, port: Port) -> None:
        """Put the weight of a port at the end of the stream; binds sizes, asserts limits."""
        projection, part = port.section, port.field
        assert isinstance(projection, Projection)
        tile = self.contract.tensors[projection.weight.name]
        stream = self.streams.setdefault(projection.weight.dtype, Stream())
        _multiplies(projection)
        columns = columns_of(projection.weight, part, self.window)
        rows = Name(projection.axis)
        name = "_".join((projection.weight.name, *(f for _, f in part.packed)))
        if isinstance(projection.moving, Port):
            groups: Number = ONE
            self._at_most(rows, f"channels `{projection.axis}`")
        else:
            groups = self._groups(block, projection.axis)
        if projection.scale is not None:
            self.scales.plan(port, name, projection.scale)
        if part.wide is None:
            self._at_most(self.heads(port), "heads on a core")
            weight = Weight(name, tile, spanned(columns), groups, ONE)
        else:
            self._at_most(Name(part.wide), f"channels `{part.wide}` of a head")
            if stream.size is None:
                stream.size = block.let("weight_bytes", element_bytes(tile))
            most = units_per_tile(block, name, stream.size, columns, rows)
            weight = Weight(name, tile, columns, groups, most)
        stream.weights.append(weight)
        self.ports[port] = ProjectedPort(port, projection, weight, columns, stream)

    def _groups(self, block: Block, axis: str) -> Number:
        """Rows of a weight per partition."""
        if axis not in self.groups:
            self.groups[axis] = block.let("groups", Name(axis) // PARTITIONS)
        return self.groups[axis]

    def _at_most(self, size: Number, what: str, most: int = PARTITIONS) -> None:
        if what not in self.limited:
            self.limited.add(what)
            kernel = self.contract.kernel.name
            self.limits.require(
                compare("<=", size, most),
                f"{kernel} needs at most {most} {what}, got {{{size}}}",
            )

    def create(self, block: Block, port: Port, element: Element) -> View:
        """Create the tile of a port.

        [wide, entries * heads], column (entry, head); for a field without a wide axis
        [128, rows / 128]: row (entry, head) on partition row % 128 of column row // 128.
        """
        projected = self.ports[port]
        columns = self.entries * self.heads(port)
        if port.field.wide is None:
            if self.row_columns is None:
                tiles = (columns + (PARTITIONS - 1)) // PARTITIONS
                self.row_columns = block.let("row_columns", tiles)
            shape: tuple[Number, Number] = (Literal(PARTITIONS), self.row_columns)
        else:
            shape = (Name(port.field.wide), columns)
        projected.view = block.tile(f"{projected.weight.name}_sb", shape, element)
        return projected.view

    # ---- activations

    def activate(self, block: Block) -> None:
        """Bring every tensor that moves onto partitions: runs of neighbouring rows per entry."""
        for projected in self.ports.values():
            item = projected.projection.moving
            if isinstance(item, Input) and item.name not in self.activations:
                axis = projected.projection.axis
                self.activations[item.name] = self._activate(block, item, axis)

    def _activate(self, block: Block, item: Input, axis: str) -> Activation:
        tile, where = self.contract.tensors[item.name], strides(item.dims)
        if where.of(axis) != ONE or set(where.axes) != {axis, self.entry}:
            raise refuse(f"`{item.name}` is not a vector along `{axis}` per entry", item.span)
        kernel, size = self.contract.kernel.name, Name(axis)
        self.limits.require(
            compare("==", size % PARTITIONS, ZERO),
            f"{kernel} needs {axis} % 128 == 0, got {axis} = {{{axis}}}",
        )
        self._at_most(self.entries, f"entries `{self.entry}`", BANK)
        groups = self._groups(block, axis)
        view = block.tile(f"{item.name}_sb", (PARTITIONS, self.entries * groups), tile.element)
        steps = ((groups, Literal(PARTITIONS)), (where.of(self.entry), self.entries), (ONE, groups))
        block.do("dma_copy", dst=view, src=Pattern(tile, steps, ZERO), **QUEUE)
        return Activation(view, groups)

    def _activation(self, projection: Projection) -> Activation:
        if isinstance(projection.moving, Input):
            return self.activations[projection.moving.name]
        view = self.ports[projection.moving].view
        assert view is not None
        return Activation(view, ONE)

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions that the ports need."""
        called = {projected.function for projected in self.ports.values()}
        steps = [step for function in NEEDS if function in called for step in NEEDS[function]]
        return (*STREAM_FUNCTIONS, *steps, *self.scales.functions)

    def bytes_held(self) -> Number:
        """Bytes of a partition that results, activations and scales take."""
        held = [p.view for p in self.ports.values() if p.view is not None]
        held += [activation.tile for activation in self.activations.values()]
        return bytes_of(held) + self.scales.bytes_held()

    # ---- the stream

    def allocate(self, block: Block, room: Number, late: Number, ports: Collection[Port]) -> None:
        """Create the slots in `room` bytes per partition; streams of single columns come first.

        `late`: a condition under which all tiles of `ports` should find a slot.
        """
        streams = sorted(self.streams.values(), key=lambda stream: stream.size is not None)
        for place, stream in enumerate(streams):
            mine = [p for port in ports if (p := self.ports[port]).stream is stream]
            tiles: Number = ZERO
            for projected in mine:
                tiles = tiles + stream.tiles_of(projected.weight)
            wanted = Choice(late, tiles, ZERO) if mine else ZERO
            more = len(streams) - place
            share = room if more == 1 else room // more
            taken = stream.allocate(block, share, wanted)
            room = room - taken

    def begin(self, block: Block, port: Port) -> None:
        """Send for the first tiles of a port's weight; those before it must be finished."""
        projected = self.ports[port]
        block.origin = projected.projection.weight.span
        self._call(block, BEGIN_STREAM, projected)

    def finish(self, block: Block, port: Port) -> None:
        """Multiply every tile of a port's weight with the activation, and send for the next."""
        projected = self.ports[port]
        block.origin = projected.projection.weight.span
        columns = projected.columns
        numbers: dict[str, Operand] = {
            "width": columns.width,
            "heads": self.heads(port),
            "entries": self.entries,
            "apart": columns.step,
            "outer": columns.units,
            "inner": columns.run,
        }
        self._call(block, projected.function, projected, numbers)

    def _call(
        self,
        block: Block,
        function: Function,
        projected: ProjectedPort,
        numbers: Mapping[str, Operand] = {},
    ) -> None:
        """Call a function with what its parameters name."""
        weight, buffer = projected.weight, projected.stream.buffer
        assert buffer is not None
        known: dict[str, Operand] = {
            "weights_sb": buffer,
            "weight": View(weight.tile, weight.tile.shape),
            "columns": Name(columns_name(weight)),
            **numbers,
        }
        if projected.view is not None:
            known |= {"port_sb": projected.view, "rows_sb": projected.view}
            known["moving_sb"] = self._activation(projected.projection).tile
        if projected.port in self.scales.turned:
            known["scale_sb"] = self.scales.turned[projected.port]
        if function is PROJECT_HEADS:
            known |= {"identity_sb": self.constants.identity(), "ones_sb": self.constants.ones()}
        block.call(function.name, *(known[name] for name in function.parameters))


def _multiplies(projection: Projection) -> None:
    """Raise CompileError where TensorE does not take the dtypes of the operands together."""
    moving, weight = projection.moving, projection.weight
    if not isinstance(moving, Input) or not isinstance(weight.dtype, Dtype):
        return
    choices = moving.dtype.choices if isinstance(moving.dtype, DtypeVar) else (moving.dtype,)
    if weight.dtype.only_read and Dtype.F32 in choices:
        raise refuse(
            f"`{moving.name}` may be f32, but TensorE multiplies `{weight.name}` in "
            f"{weight.dtype.value} only with 16-bit values",
            moving.span,
            help=f"declare `{moving.name}` as bf16",
        )
