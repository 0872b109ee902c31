"""Input tensors as sources of leaves: the DMA that brings the rows of a tile into SBUF."""

from __future__ import annotations

from attrs import define, field, frozen

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import F32, Element, Function, Pattern, Range, Tile, View
from backends.nki.program.numbers import NONE, ONE, ZERO, Literal, Name, Number
from backends.nki.refusal import refuse
from backends.nki.select.addressing import Level, Strides, row_levels, strides
from backends.nki.select.helpers import QUEUE, load_columns, load_rows
from backends.nki.select.layouts import Layout
from gdsl.canonical.form import Delta
from gdsl.ir.dims import Dim


@define
class RowWindow:
    """The rows of the tile that is being processed, and the axes they enumerate."""

    axes: tuple[str, ...]
    first: Number
    count: Number
    outer: dict[str, Number] = field(factory=dict)
    """Axes of which the tile has one index: the batch entry and the token at hand."""
    helpers: dict[str, Function] = field(factory=dict)
    """Functions of the module that loads needed so far."""


@frozen
class InputSource:
    """A tensor argument. `wide` is the axis it has beside the rows, if any."""

    tile: Tile
    strides: Strides
    wide: str | None
    window: RowWindow
    key_axis: str
    default: Number | None = None
    """What a missing tensor is filled with; None where it must be given."""

    @property
    def element(self) -> Element:
        """The element type of the rows in SBUF: the tensor's own, if there must be a tensor."""
        own = self.tile.element
        return own if self.default is None or own.of is None else F32

    @property
    def key_major(self) -> bool:
        """Whether rows lie closer together than the key axis, so that K belongs on partitions."""
        if self.wide != self.key_axis or self.wide not in self.strides.axes:
            return False
        inner = self.strides.axes[self.strides.axes.index(self.wide) + 1 :]
        return any(axis in self.window.axes for axis in inner)

    def load(self, block: Block, dst: View, layout: Layout) -> None:
        """Add the DMA that fills `dst`: [rows, wide] in ROWS, [K, rows] in KEYS."""
        if self.default is None:
            self._load(block, dst, layout)
            return
        given, missing = block.inner(), block.inner()
        if self.tile.element == dst.tile.element:
            self._load(given, dst, layout)
        else:
            # The tile has a dtype of its own, since the tensor may be missing.
            raw = given.tile(f"{self.tile.name}_raw_sb", dst.shape, self.tile.element)
            self._load(given, raw, layout)
            given.do("tensor_copy", dst=dst, src=raw)
        missing.do("memset", dst=dst, value=self.default)
        block.decide(compare("==", Name(self.tile.name), NONE), missing, given)

    def _load(self, block: Block, dst: View, layout: Layout) -> None:
        levels = tuple(
            level for level in row_levels(self.strides, self.window.axes) if level.count != ONE
        )
        across = (self.strides.of(self.wide), dst.shape[1]) if self.wide else (ONE, ONE)
        if layout is Layout.KEYS:
            across = (self.strides.of(self.wide) if self.wide else ZERO, dst.shape[0])
        match levels:
            case () | (Level(step=Literal(value=0)),):
                self._repeat(block, dst, layout, across)
            case (level,):
                self._affine(block, dst, layout, across, level.step)
            case (outer, inner):
                self._wrapped(block, dst, layout, across, (outer, inner))
            case _:
                raise refuse(f"input `{self.tile.name}` has rows at more than two strides", None)

    def _repeat(
        self,
        block: Block,
        dst: View,
        layout: Layout,
        across: tuple[Number, Number],
    ) -> None:
        """The same values for every row."""
        repeat = (ZERO, dst.shape[1] if layout is Layout.KEYS else dst.shape[0])
        steps = (across, repeat) if layout is Layout.KEYS else (repeat, across)
        block.do("dma_copy", dst=dst, src=Pattern(self.tile, steps, self._base), **QUEUE)

    @property
    def _base(self) -> Number:
        return base_of(self.strides, self.window)

    def _affine(
        self,
        block: Block,
        dst: View,
        layout: Layout,
        across: tuple[Number, Number],
        step: Number,
    ) -> None:
        if layout is Layout.KEYS:
            first, count = self.window.first, self.window.count
            offset = self._base + first * step
            src: View | Pattern = Pattern(self.tile, (across, (step, count)), offset)
        else:
            src = _affine(self.tile, step, across, self.window, self.wide is not None, self._base)
        block.do("dma_copy", dst=dst, src=src, **QUEUE)

    def _wrapped(
        self,
        block: Block,
        dst: View,
        layout: Layout,
        across: tuple[Number, Number],
        levels: tuple[Level, Level],
    ) -> None:
        outer, inner = levels
        function = load_rows() if layout is Layout.ROWS else load_columns()
        self.window.helpers.setdefault(function.name, function)
        block.call(
            function.name,
            dst,
            View(self.tile, self.tile.shape),
            self.window.first,
            inner.count,
            outer.step,
            inner.step,
            across[0],
            self._base,
        )


def rows_of(
    tile: Tile, dims: tuple[Dim, ...], window: RowWindow, wide: str | None
) -> View | Pattern:
    """Return where the rows of the window lie in an output tensor, as [rows, wide]."""
    tensor = strides(dims)
    levels = row_levels(tensor, window.axes)
    if len(levels) != 1 or levels[0].step == ZERO:
        raise refuse(f"output `{tile.name}` does not hold the rows of the state in order", None)
    step = levels[0].step
    across = (tensor.of(wide), Name(wide)) if wide else (ONE, ONE)
    return _affine(tile, step, across, window, wide is not None, base_of(tensor, window))


def base_of(tensor: Strides, window: RowWindow) -> Number:
    """Return where the batch entry and the token at hand begin in a tensor."""
    base: Number = ZERO
    for axis, index in window.outer.items():
        base = base + index * tensor.of(axis)
    return base


def state_blocks(
    tile: Tile,
    dims: tuple[Dim, ...],
    window: RowWindow,
    rows: tuple[Number, Number],
    delta: Delta,
) -> Pattern:
    """Return the states of rows (first, count) in a state tensor, as [K, count, V]."""
    tensor = strides(dims)
    levels = row_levels(tensor, window.axes)
    if len(levels) != 1 or levels[0].step == ZERO:
        raise refuse("the rows of the state are not contiguous", None)
    step, (first, count) = levels[0].step, rows
    K, V = delta.key_axis, delta.value_axis
    steps = ((tensor.of(K), Name(K)), (step, count), (tensor.of(V), Name(V)))
    return Pattern(tile, steps, base_of(tensor, window) + first * step)


def _affine(
    tile: Tile,
    step: Number,
    across: tuple[Number, Number],
    window: RowWindow,
    has_width: bool,
    base: Number,
) -> View | Pattern:
    """Rows at one stride: a plain slice where the tensor has that shape."""
    first, count = window.first, window.count
    if base != ZERO:
        return Pattern(tile, ((step, count), across), base + first * step)
    if len(tile.shape) == 1:
        return View(tile, (count,), (Range(first, first + count),))
    if len(tile.shape) == 2 and has_width and step == tile.shape[1]:
        return part(View(tile, tile.shape), (first, count), None)
    return Pattern(tile, ((step, count), across), first * step)
