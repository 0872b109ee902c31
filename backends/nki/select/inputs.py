"""Input tensors as sources of leaves: the DMA that brings the rows of a tile into SBUF."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, evolve, field, frozen

from backends.nki.program.build import Block, columns_of, compare, part
from backends.nki.program.nodes import F32, Element, Function, Pattern, Range, Tile, View
from backends.nki.program.numbers import (
    NONE,
    ONE,
    ZERO,
    Largest,
    Literal,
    Name,
    Number,
    product,
    smallest,
)
from backends.nki.refusal import refuse
from backends.nki.select.addressing import Level, Share, Strides, row_levels, strides
from backends.nki.select.helpers import QUEUE, load_columns, load_rows
from backends.nki.select.layouts import Layout
from gdsl.ir.dims import Dim
from gdsl.source import Span


@define
class RowWindow:
    """The rows of the tile that is being processed, and the axes they enumerate."""

    axes: tuple[str, ...]
    first: Number
    count: Number
    outer: dict[str, Number] = field(factory=dict)
    """Axes of which the tile has one index: the batch entry and the token at hand."""
    shares: dict[str, Share] = field(factory=dict)
    """Axes of which this core has a part, and the batch axis where entries are taken in teams."""
    helpers: dict[str, Function] = field(factory=dict)
    """Functions of the module that loads needed so far."""

    @property
    def sizes(self) -> dict[str, Number]:
        """The sizes of axes that the rows do not go through as a whole."""
        return {axis: share.count for axis, share in self.shares.items()}

    def number(self, entry: Number) -> Number:
        """The entry of the whole batch that an entry of the rows is."""
        share = self.shares.get(self.axes[0])
        return entry if share is None else share.first + entry

    def size(self, axes: tuple[str, ...]) -> Number:
        """Rows that some of the axes enumerate."""
        return product(tuple(self.sizes.get(axis, Name(axis)) for axis in axes))


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
    first: Number = ZERO
    """The element at which it begins in the tensor, for a field of a packed axis."""
    span: Span | None = None
    """Where the text declares it."""

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

    def load(self, block: Block, dst: View, layout: Layout, first_key: Number = ZERO) -> None:
        """Add the DMA that fills `dst`: [rows, wide] in ROWS, [keys, rows] in KEYS.

        The keys are those from `first_key` on; a value without keys is the same for each.
        """
        if first_key != ZERO and self.wide is not None:
            source = evolve(self, first=self.first + first_key * self.strides.of(self.wide))
            source.load(block, dst, layout)
            return
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
            level
            for level in row_levels(self.strides, self.window.axes, self.window.sizes)
            if level.count != ONE
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
            case (_, _, _):
                self._by_entry(block, dst, layout)
            case _:
                raise refuse(
                    f"the rows of input `{self.tile.name}` lie at more than two strides",
                    self.span,
                    notes=(f"rows go through the axes {_listed(self.window.axes)} in this order",),
                    help="give it these axes in the order of the state's, or fewer of them",
                )

    def _by_entry(self, block: Block, dst: View, layout: Layout) -> None:
        """Entry of the batch by entry, whose rows lie at two strides."""
        window = self.window
        with entries_of(block, window, (window.first, window.count)) as rows_of_entry:
            body, entry, begin, many, place = rows_of_entry
            inner = evolve(
                window,
                axes=window.axes[1:],
                first=begin,
                count=many,
                outer={window.axes[0]: entry, **window.outer},
            )
            rows: tuple[Number, Number] = (place, many)
            held = part(dst, rows, None) if layout is Layout.ROWS else columns_of(dst, *rows)
            evolve(self, window=inner)._load(body, held, layout)

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
        return self.first + base_of(self.strides, self.window)

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


def store_rows(
    block: Block,
    tile: Tile,
    dims: tuple[Dim, ...],
    window: RowWindow,
    wide: str | None,
    source: View,
) -> None:
    """Add the transfers of the rows of the window, [rows, wide], to an output tensor."""
    tensor = strides(dims)
    apart, step = row_step(tensor, window, tile.name, dims[0].span)
    across = (tensor.of(wide), Name(wide)) if wide else (ONE, ONE)
    base = base_of(tensor, window)
    if not apart:
        dst = _affine(tile, step, across, window, wide is not None, base)
        block.do("dma_copy", dst=dst, src=source)
        return
    first, count = window.first, window.count
    with entries_of(block, window, (first, count)) as (body, entry, begin, many, place):
        start = base + entry * tensor.of(window.axes[0]) + begin * step
        rows = part(source, (place, many), None)
        body.do("dma_copy", dst=Pattern(tile, ((step, many), across), start), src=rows)


@contextmanager
def entries_of(
    block: Block, window: RowWindow, rows: tuple[Number, Number]
) -> Iterator[tuple[Block, Number, Number, Number, Number]]:
    """Go through the entries of the batch that rows (first, count) belong to.

    Yields the body of the loop, the entry, the first of its rows, how many there are, and where
    they begin among the rows. Rows of several entries lie at two strides where cores share heads.
    """
    heads, (first, count) = window.size(window.axes[1:]), rows
    last = (first + count - 1) // heads + 1
    with block.loop("entry", first // heads, last) as (body, entry):
        base = entry * heads
        place = body.let_named("place", Largest(ZERO, base - first))
        begin = body.let_named("begin", place + first - base)
        end = smallest(count, (entry + 1) * heads - first)
        yield body, entry, begin, body.let_named("many", end - place), place


def row_step(
    tensor: Strides, window: RowWindow, name: str, span: Span | None
) -> tuple[bool, Number]:
    """Whether entries of the batch lie apart in an output or a state, and the stride of its rows.

    They do in a pool, where cores share heads, and where the tokens of an entry lie between.
    """
    for apart in (False, True):
        levels = row_levels(tensor, window.axes[apart:], window.sizes)
        if len(levels) == 1 and levels[0].step != ZERO:
            return apart, levels[0].step
    raise refuse(
        f"`{name}` does not hold the rows of the state in order",
        span,
        notes=(f"rows go through the axes {_listed(window.axes)} in this order",),
        help="give it all of these axes, in the order of the state's",
    )


def _listed(axes: tuple[str, ...]) -> str:
    return ", ".join(f"`{axis}`" for axis in axes)


def base_of(tensor: Strides, window: RowWindow) -> Number:
    """Return where the batch entry, the token and the part of this core begin in a tensor."""
    base: Number = ZERO
    for axis, index in window.outer.items():
        base = base + index * tensor.of(axis)
    for axis, share in window.shares.items():
        base = base + share.first * tensor.of(axis)
    return base


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
