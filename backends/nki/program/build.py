"""Writing tile programs: a block that collects statements, and the views instructions take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field

from backends.nki.program.nodes import (
    Allocate,
    Append,
    Assign,
    Banner,
    Comment,
    Element,
    For,
    ForEach,
    If,
    Instruction,
    Invoke,
    Operand,
    Pattern,
    Put,
    Range,
    Rebind,
    Require,
    RequireShape,
    Space,
    Statement,
    Take,
    Tile,
    View,
    tiles_in,
)
from backends.nki.program.numbers import (
    Binary,
    Literal,
    Name,
    Number,
    Numeric,
    number,
    product,
)
from gdsl.source import Span


@define
class Names:
    """Python names of one function, each given once."""

    taken: set[str] = field(factory=set)

    def fresh(self, stem: str) -> str:
        """Return `stem`, or `stem_2`, `stem_3`, ... if it is taken."""
        name, count = stem, 1
        while name in self.taken:
            count += 1
            name = f"{stem}_{count}"
        self.taken.add(name)
        return name


@define
class Block:
    """Statements in the order they are added. `origin` goes to every statement added meanwhile."""

    names: Names
    statements: list[Statement] = field(factory=list)
    origin: Span | None = None

    def tile(
        self,
        stem: str,
        shape: tuple[Numeric, ...],
        element: Element,
        space: Space = Space.SBUF,
    ) -> View:
        """Create a tile and return a view of all of it."""
        sizes = tuple(number(size) for size in shape)
        return self.create(Tile(self.names.fresh(stem), sizes, element, space))

    def create(self, tile: Tile) -> View:
        """Create exactly this tile, under a name that may stand for another one before."""
        self.names.taken.add(tile.name)
        self.statements.append(Allocate(tile, self.origin))
        return View(tile, tile.shape)

    def later(
        self, stem: str, shape: tuple[Numeric, ...], element: Element, space: Space = Space.SBUF
    ) -> View:
        """Name a tile that `place` will create where it is first used."""
        sizes = tuple(number(size) for size in shape)
        return View(Tile(self.names.fresh(stem), sizes, element, space), sizes)

    def place(self, view: View, since: int) -> None:
        """Create a tile just before the first of the statements from `since` on that uses it."""
        for position in range(since, len(self.statements)):
            statement = self.statements[position]
            if view.tile in tiles_of(statement):
                self.statements.insert(position, Allocate(view.tile, _origin_of(statement)))
                return

    def do(self, opcode: str, **operands: Operand) -> None:
        """Add `nisa.<opcode>` with its keywords in the order given."""
        self.statements.append(Instruction(opcode, tuple(operands.items()), self.origin))

    def let(self, stem: str, value: Numeric) -> Number:
        """Bind a number to a name, unless it is a name or known already."""
        value = number(value)
        if isinstance(value, Literal | Name):
            return value
        name = self.names.fresh(stem)
        self.statements.append(Assign(name, value))
        return Name(name)

    def let_named(self, name: str, value: Number) -> Number:
        """Bind a number to exactly this name."""
        self.names.taken.add(name)
        self.statements.append(Assign(name, value))
        return Name(name)

    def call(
        self,
        function: str,
        *arguments: Operand,
        result: str | None = None,
        keywords: tuple[str, ...] = (),
    ) -> None:
        """Add a call of a function of the program; `keywords` name all parameters, or none."""
        call = Invoke(function, arguments, result, keywords, origin=self.origin)
        self.statements.append(call)

    def take(self, record: str, *names: str) -> None:
        """Bring fields of a record in under their own names."""
        if names:
            self.names.taken.update(names)
            self.statements.append(Take(names, record))

    def put(self, record: str, **fields: Numeric | View) -> None:
        """Set fields of a record; a view stands for its whole tile."""
        for name, value in fields.items():
            held = Name(value.tile.name) if isinstance(value, View) else number(value)
            self.statements.append(Put(record, name, held))

    def append(self, values: str, value: Number) -> None:
        """Append to a list."""
        self.statements.append(Append(values, value))

    def rebind(self, targets: tuple[str, ...], sources: tuple[str, ...]) -> None:
        """Move names on: `a, b = b, c`."""
        self.statements.append(Rebind(targets, sources))

    def require(self, condition: Number, message: str, remedy: str = "") -> None:
        """Add an assertion; nothing when it is known to hold."""
        if condition != Literal(True):
            self.statements.append(Require(condition, message, remedy))

    def require_shape(self, tile: Tile) -> None:
        """Add an assertion that an argument has the shape its tile says."""
        self.statements.append(RequireShape(tile))

    def banner(self, title: str) -> None:
        """Add a phase heading."""
        self.statements.append(Banner(title))

    def comment(self, text: str) -> None:
        """Add a comment."""
        self.statements.append(Comment(text))

    def inner(self) -> Block:
        """Return an empty block that shares the names and the origin."""
        return Block(self.names, origin=self.origin)

    @contextmanager
    def loop(
        self,
        stem: str,
        start: Numeric,
        stop: Numeric,
        step: Numeric = 1,
        *,
        exact: bool = False,
    ) -> Iterator[tuple[Block, Number]]:
        """Add a loop; yields its body and its variable, named `stem` at all events if `exact`."""
        variable = stem if exact else self.names.fresh(stem)
        body = self.inner()
        yield body, Name(variable)
        if not exact:
            self.names.taken.discard(variable)
        self.statements.append(
            For(variable, number(start), number(stop), number(step), tuple(body.statements))
        )

    @contextmanager
    def each(self, variables: tuple[str, ...], values: Number) -> Iterator[Block]:
        """Add a loop over a list whose entries are bound to exactly these names."""
        body = self.inner()
        yield body
        self.statements.append(ForEach(variables, values, tuple(body.statements)))

    @contextmanager
    def when(self, condition: Number) -> Iterator[Block]:
        """Add a trace-time decision without an else; nothing if there is nothing to do."""
        then = self.inner()
        yield then
        if then.statements:
            self.statements.append(If(condition, tuple(then.statements)))

    def decide(self, condition: Number, then: Block, otherwise: Block) -> None:
        """Add a trace-time decision between two blocks."""
        branches = (tuple(then.statements), tuple(otherwise.statements))
        self.statements.append(If(condition, *branches))

    def extend(self, other: Block) -> None:
        """Append the statements of another block."""
        self.statements.extend(other.statements)


def tiles_of(statement: Statement) -> set[Tile]:
    """Return the tiles an instruction or a call mentions; empty for other statements."""
    match statement:
        case Instruction(operands=operands):
            values: tuple[Operand, ...] = tuple(value for _, value in operands)
        case Invoke(arguments=arguments):
            values = arguments
        case _:
            return set()
    return {tile for value in values for tile in tiles_in(value)}


def _origin_of(statement: Statement) -> Span | None:
    return statement.origin if isinstance(statement, Instruction | Invoke) else None


def part(view: View, *ranges: tuple[Numeric, Numeric] | None) -> View:
    """Return a slice of a whole tile: (start, size) per dimension, None for all of it.

    A range that is the whole dimension stays the whole dimension.
    """
    if view.index is not None:
        raise ValueError(f"slice `{view.tile.name}` itself, not a view of it")
    index: list[Range | None] = []
    shape: list[Number] = []
    for given, extent in zip(ranges, view.shape, strict=True):
        if given is None:
            index.append(None)
            shape.append(extent)
            continue
        start, size = number(given[0]), number(given[1])
        whole = start == Literal(0) and size == extent
        index.append(None if whole else Range(start, start + size))
        shape.append(size)
    if all(entry is None for entry in index):
        return view
    return View(view.tile, tuple(shape), tuple(index))


def columns_of(view: View, first: Numeric, count: Numeric) -> View:
    """Return columns first, first + 1, ... of a two-dimensional tile, or of a slice of it."""
    if view.index is None:
        return part(view, None, (first, count))
    partitions, columns = view.index
    begin = number(first) if columns is None else columns.start + first
    index = (partitions, Range(begin, begin + count))
    return View(view.tile, (view.shape[0], number(count)), index)


def interleaved(
    view: View, rows: Numeric, first: Numeric, place: Numeric, step: Numeric, count: Numeric
) -> View:
    """Return one of `step` vectors that lie side by side from column `first` on.

    `place` says which one, `count` how many of its elements; on the first `rows` partitions.
    """
    start, height, many, stride = number(first), number(rows), number(count), number(step)
    if stride == Literal(1):
        return part(view, (0, height), (start, many))
    columns = Range(start + place, start + stride * many, stride)
    return View(view.tile, (height, many), (Range(number(0), height), columns))


def every(view: View, first: Numeric, step: Numeric, count: Numeric) -> View:
    """Return columns first, first + step, ... (`count` of them) of a two-dimensional tile."""
    start, stride, many = number(first), number(step), number(count)
    if many == Literal(1) or stride == Literal(1):
        return part(view, None, (start, many))
    columns = Range(start, None if stride * many == view.shape[1] else stride * many, stride)
    return View(view.tile, (view.shape[0], many), (None, columns))


def repeated(view: View, column: Numeric, partitions: Numeric, count: Numeric) -> Pattern:
    """Return one column of a two-dimensional tile, seen `count` times (stride 0)."""
    free = product(view.tile.shape[1:])
    return Pattern(
        view.tile, ((free, number(partitions)), (number(0), number(count))), number(column)
    )


def compare(op: str, a: Numeric, b: Numeric) -> Number:
    """Return a comparison of two numbers."""
    return Binary(op, number(a), number(b))
