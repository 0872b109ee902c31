"""One function of the emitted kernel while it is being written."""

from __future__ import annotations

from attrs import define, field

from backends.nki.program.build import Block, Names
from backends.nki.program.nodes import Function, Tile, View
from backends.nki.program.numbers import Name, Number
from backends.nki.schedules.chunked.records import tile_of
from gdsl.source import Span


@define
class Stage:
    """Collects the statements of a function; `origin` is the source line they come from."""

    name: str
    parameters: tuple[str, ...]
    doc: str
    origin: Span | None = None
    block: Block = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.block = Block(Names(set(self.parameters)), origin=self.origin)

    def inside(self, block: Block) -> Stage:
        """Return the same function with another block, a branch of it, to write to."""
        inner = Stage(self.name, self.parameters, self.doc, self.origin)
        inner.block = block
        return inner

    def numbers(self, record: str, *fields: str) -> tuple[Number, ...]:
        """Bring numbers of a record in under their own names."""
        self.block.take(record, *fields)
        return tuple(Name(name) for name in fields)

    def tiles(self, record: str, *fields: str) -> tuple[View, ...]:
        """Bring tiles of a record in under their own names, each as a view of all of it."""
        self.block.take(record, *fields)
        return tuple(tile_of(record, name) for name in fields)

    def of_group(self, *fields: str) -> tuple[View, ...]:
        """Bring in tiles of the group, and how many slots they have."""
        self.block.take("group", "slots", *fields)
        return tuple(tile_of("group", name) for name in fields)

    def given(self, name: str, like: View) -> View:
        """Return a parameter that is a tile, of the shape and dtype of another one."""
        tile = Tile(name, like.tile.shape, like.tile.element, like.tile.space)
        return View(tile, like.shape)

    def named(self, name: str, value: Number, like: View) -> View:
        """Bind a tile that a trace-time value is, of the shape and dtype of another one."""
        self.block.let_named(name, value)
        return self.given(name, like)

    def done(self, *returns: str) -> Function:
        """Return the function; `returns` are names."""
        statements = tuple(self.block.statements)
        return Function(self.name, self.parameters, self.doc, statements, returns)
