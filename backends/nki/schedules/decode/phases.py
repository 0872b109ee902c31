"""The phases of a decode step as blocks of statements, in the order a tile of rows meets them.

Each phase becomes one function of the emitted module. What a phase computes follows from the terms
it asks the selector for: terms of the inputs land in the block that is current for their stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from attrs import define, field

from backends.nki.contract import Contract
from backends.nki.program.build import Block, Names, every, interleaved, part
from backends.nki.program.nodes import (
    F32,
    Element,
    Operand,
    Space,
    Tile,
    View,
)
from backends.nki.program.numbers import ONE, ZERO, Name, Number, smallest
from backends.nki.schedules.addresses import Addresses
from backends.nki.schedules.decode.calls import ROWS
from backends.nki.schedules.decode.order import order_loads, order_preparation
from backends.nki.schedules.decode.reads import Moving, moving_keys, read_head
from backends.nki.schedules.decode.state_tile import StateTile, states_shape
from backends.nki.schedules.decode.states import load_states, store_states, store_token_states
from backends.nki.schedules.decode.step import Step, several_steps
from backends.nki.schedules.decode.turned import (
    turn_heads,
    turned_shape,
    value_major,
)
from backends.nki.schedules.decode.update import update_head
from backends.nki.select.constants import Constants
from backends.nki.select.inputs import RowWindow, store_rows
from backends.nki.select.key_tiles import KeyTile, KeyTiles
from backends.nki.select.layouts import SCALAR, TENSOR, Layout
from backends.nki.select.selector import Selector
from backends.nki.select.terms import Stage, Term
from gdsl.ir.dims import Dim
from gdsl.ir.kernel import Output

PHASES = {
    "load_vectors": "Bring in the vectors of a tile of rows, one row per partition.",
    "prepare_rows": "Everything that needs the vectors alone: keys on K partitions, norms, gates,\n"
    "and the factors of deltas and outputs. Ordered so that no engine waits for long.",
    "spread_decay": "Repeat the decay of each row on all K partitions.",
    "load_states": "Bring in the states of a group, one head after the other along the free axis.",
    "arrive_head": "Turn a state that arrived with V on partitions.",
    "read_head": "Multiply one old state with its key and query: both reads in one pass.",
    "group_deltas": "Put the reads of a group back onto rows, and form what each head adds.",
    "update_head": "Decay one state and add key (x) delta.",
    "leave_head": "Turn a new state back, V on partitions.",
    "group_outputs": "Outputs of the rule for a group, from the reads and the deltas.",
    "finish_rows": "Finish the outputs of a tile of rows and send them to HBM.",
    "store_states": "Send new states to HBM.",
    "token_entries": "Which entries of the batch have this token, and which have ended.",
    "store_token_states": "Send the states after this token to HBM; zeros where it is no token.",
}
"""Functions of the emitted module, in the order a row meets them."""


@define
class Phases:
    """A block of statements for each phase; `write` fills them."""

    step: Step
    contract: Contract
    constants: Constants
    addresses: Addresses
    window: RowWindow
    names: Names
    lane: Number
    """First partition of the group among the rows of its tile."""
    heads: Number
    """Heads of the group."""
    target: str
    tiles: int
    """Tiles on which the keys of a head lie."""
    rounds: bool
    """Whether states are rounded to bf16 where they are read (`reads=bf16`)."""
    head: Number
    """The head at hand, counted from the first of the group."""
    ring: Mapping[str, Operand] = field(factory=dict)
    """The queue of the states, where they share one with other transfers."""
    blocks: dict[str, Block] = field(init=False)
    selector: Selector = field(init=False)
    state: StateTile = field(init=False)
    """States of a group, or of a tile of rows."""
    arrived: StateTile = field(init=False)
    """The same as they came from HBM, if they are stored [V, K] (`decode.turned`)."""
    raw: View = field(init=False)
    """Reads of a group, [V, heads * reads]."""
    keys: View = field(init=False)
    """Vectors along K of a tile of rows, [K, rows * vectors], one tile of keys after the other."""
    moving: tuple[Moving, ...] = field(init=False)
    """The same, as operands that TensorE multiplies with the states."""

    def __attrs_post_init__(self) -> None:
        origin = self.step.run.span
        self.blocks = {name: Block(self.names, origin=origin) for name in PHASES}
        K, V = self.sizes
        self.selector = Selector(
            algebra=self.step.algebra,
            sizes={self.step.delta.key_axis: K, self.step.delta.value_axis: V},
            key_axis=self.step.delta.key_axis,
            tiles=self.tiles,
            rows=self.window.count,
            sources=self.step.sources,
            constants=self.constants,
            loads=self.blocks["load_vectors"],
            blocks={},
            group=(self.lane, self.heads),
        )
        self.selector.count_uses(self.step.roots)

    @property
    def sizes(self) -> tuple[Number, Number]:
        """K and V."""
        return Name(self.step.delta.key_axis), Name(self.step.delta.value_axis)

    @property
    def key_tiles(self) -> KeyTiles:
        """How the keys of a head lie on partitions."""
        return KeyTiles(self.sizes[0], self.tiles)

    @property
    def stored(self) -> Element:
        """The element type of the state in HBM."""
        state = self.step.state
        if state.argument in self.contract.optional and not state.inplace:
            # There may be no tensor to ask.
            return self.contract.new_element(state.dtype)
        return self.contract.element(state.argument, state.dtype)

    @property
    def held(self) -> Element:
        """The element type of the states that are updated: fp32 from one token to the next."""
        return F32 if self.resident else self.stored

    def write(self) -> None:
        """Fill every block."""
        load_states(self)
        turn_heads(self)
        self._transpose_keys()
        read_head(self)
        deltas = self._group_deltas()
        update_head(self, deltas)
        store_states(self)
        store_token_states(self)
        self._group_outputs()
        self._finish_rows()
        for function in tuple(self.selector.functions.values())[:1]:
            self.constants.warm(function)
        order_loads(self)
        order_preparation(self)

    def ask(self, inputs: str, reads: str | None = None, after: str | None = None) -> None:
        """Name the phases in which terms are computed from now on."""
        self.selector.blocks = {
            Stage.INPUTS: self.blocks[inputs],
            Stage.READS: self.blocks[reads or inputs],
            Stage.OUTPUTS: self.blocks[after or inputs],
        }

    # ---- places

    @property
    def resident(self) -> bool:
        """Whether the states of a tile of rows stay in SBUF from token to token."""
        return several_steps(self.step.run, self.step.delta)

    @property
    def place(self) -> Number:
        """Where the head at hand lies in the state tile."""
        return self.lane + self.head if self.resident else self.head

    def turned(self, dims: tuple[Dim, ...]) -> bool:
        """Whether states in a tensor are stored [V, K]."""
        return value_major(dims, self.step.delta)

    def new_tile(self, count: Number) -> Tile:
        """A tile for `count` new states on their way out."""
        return Tile("new_sb", self.states_shape(count), self.stored, Space.SBUF)

    def leaving_tile(self, count: Number) -> Tile:
        """The same with V on partitions."""
        return Tile("leaving_sb", self.states_shape(count, turned=True), self.stored, Space.SBUF)

    def states_shape(self, of: Number, *, turned: bool = False) -> tuple[Number, Number]:
        """Shape of a tile for the states of so many heads; `turned`: with V on partitions."""
        return turned_shape(self, of) if turned else states_shape(self.key_tiles, of, self.sizes[1])

    def states_in(self, tile: View | Tile, of: Number) -> StateTile:
        """A tile as that of the states of so many heads."""
        view = View(tile, tile.shape) if isinstance(tile, Tile) else tile
        return StateTile(view, of, self.sizes[1])

    @property
    def leaves_turned(self) -> bool:
        """Whether new states are stored [V, K]."""
        return any(self.turned(output.dims) for output in self.step.states)

    # ---- keys

    def _transpose_keys(self) -> None:
        block, columns = self.blocks["prepare_rows"], self.step.columns
        self.ask("prepare_rows")
        rows = self.tiles * self.window.count
        names = dict.fromkeys(self.step.algebra.principal(column) for column in columns)
        shape = (self.key_tiles.partitions, len(columns) * rows)
        self.keys = block.tile(f"{'_'.join(names)}_T_sb", shape, F32)
        for i, column in enumerate(columns):
            self.selector.keys_into(column, every(self.keys, i, len(columns), rows))
        self.moving = moving_keys(self, block)

    def key_column(self, keys: KeyTile, row: Number, place: int) -> View:
        """One vector of one row."""
        width = len(self.step.columns)
        per = width * self.window.count
        return keys.columns(self.keys, per, width * row + place, ONE)

    # ---- reads and deltas

    def raw_shape(self, heads: Number) -> tuple[Number, Number]:
        """Shape of the reads of a group: values on partitions, 128 at a time, heads behind."""
        V = self.sizes[1]
        slices = (V + ROWS - 1) // ROWS
        return smallest(V, ROWS), len(self.step.terms.reads) * heads * slices

    @contextmanager
    def value_slices(self, block: Block) -> Iterator[tuple[Block, Number, Number]]:
        """Go through the values as they fit on partitions: body, first value, how many."""
        V = self.sizes[1]
        with block.loop("value", 0, V, ROWS) as (body, start):
            yield body, start, body.let_named("width", smallest(ROWS, V - start))

    def _group_deltas(self) -> list[View]:
        V, block, step = self.sizes[1], self.blocks["group_deltas"], self.step
        rows, lane, heads = self.window.count, self.lane, self.heads
        count = len(step.terms.reads)
        shape = self.raw_shape(rows)
        reads = self.blocks["prepare_rows"].tile("reads_T_sb", shape, F32)
        turned = [
            block.tile(f"{step.algebra.stem(leaf)}_psum", (rows, V), F32, Space.PSUM)
            for leaf in step.terms.read_results
        ]
        with self.value_slices(block) as (body, start, width):
            values = (ZERO, width)
            column = body.let_named("column", count * (start // ROWS) * heads)
            first = body.let_named("first", count * (start // ROWS) * rows)
            body.do(
                "tensor_copy",
                dst=part(reads, values, (first + count * lane, count * heads)),
                src=part(self.raw, values, (column, count * heads)),
                engine=SCALAR,
            )
            body.comment("From row 0 on, so that heads come onto the partitions of their rows.")
            for i, tile in enumerate(turned):
                body.do(
                    "nc_transpose",
                    dst=part(tile, (0, lane + heads), (start, width)),
                    data=interleaved(reads, width, first, i, count, lane + heads),
                    engine=TENSOR,
                )
        for leaf, tile in zip(step.terms.read_results, turned, strict=True):
            self.selector.hold(leaf, tile)
        self.ask("prepare_rows", reads="group_deltas")
        updates = step.terms.updates
        names = [f"delta_{step.algebra.principal(u.key)}" for u in updates]
        if len(updates) == 1:
            names = ["delta"]
        return [self._delta(u.delta, name) for u, name in zip(updates, names, strict=True)]

    def _delta(self, term: Term, name: str) -> View:
        """Compute a delta of the group into a tile that holds all groups of the rows."""
        shape = (self.window.count, self.sizes[1])
        view = self.blocks["prepare_rows"].tile(f"{name}_sb", shape, F32)
        self.selector.into_held(term, view)
        return view

    # ---- outputs

    def _group_outputs(self) -> None:
        self.ask("prepare_rows", reads="group_outputs")
        for leaf, value in self.step.results:
            only = [output for output, term in self.step.values if term == leaf]
            alone = bool(only) and self.selector.uses[leaf] <= 1
            element = self.contract.element(only[0].name, only[0].dtype) if alone else F32
            shape = (self.window.count, self.sizes[1])
            view = self.blocks["prepare_rows"].tile(f"{leaf.name}_sb", shape, element)
            self.selector.into_held(value, view)
            self.selector.hold(leaf, view)

    def _finish_rows(self) -> None:
        block = self.blocks["finish_rows"]
        self.ask("prepare_rows", reads="group_outputs", after="finish_rows")
        self.selector.leisure = True
        for output, value in self.step.values:
            block.origin = output.span
            source = self._output_tile(output, value)
            tensor = self.contract.outputs[output.name]
            store_rows(block, tensor, output.dims, self.window, value.wide, source)

    def _output_tile(self, output: Output, value: Term) -> View:
        element = self.contract.element(output.name, output.dtype)
        held = self.selector.held.get((value, Layout.ROWS))
        if isinstance(held, View) and held.tile.element == element:
            return held
        width = ONE if value.wide is None else Name(value.wide)
        block = self.selector.blocks[value.stage]
        view = block.tile(f"{output.name}_sb", (self.window.count, width), element)
        self.selector.into(value, view)
        return view
