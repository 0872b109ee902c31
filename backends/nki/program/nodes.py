"""Nodes of the tile program: tiles, views, instructions and trace-time control flow.

A tile program is what a kernel author has in mind before typing: buffers in SBUF and PSUM,
instructions on views of them, and Python loops that unroll when the kernel is traced. It knows the
instruction names and keywords of `nki.isa` and nothing of how they are executed.
"""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from backends.nki.program.numbers import Number
from gdsl.source import Span


class Space(Enum):
    """Where a tile lives; the value is its name in `nki.language`."""

    SBUF = "sbuf"
    PSUM = "psum"
    SHARED_HBM = "shared_hbm"
    PRIVATE_HBM = "private_hbm"
    ARGUMENT = "argument"
    """An HBM tensor the caller passed."""


@frozen
class Element:
    """An element type: how NKI text writes it, and its size (the widest the text admits)."""

    text: str
    bytes: int
    of: str | None = None
    """The tensor whose dtype it is, where the text says `tensor.dtype`."""


def dtype_of(tensor: str, widest: int) -> Element:
    """Return the element type that a tensor happens to have, `widest` bytes at most."""
    return Element(f"{tensor}.dtype", widest, tensor)


F32 = Element("nl.float32", 4)
BF16 = Element("nl.bfloat16", 2)
F16 = Element("nl.float16", 2)
F8E4M3 = Element("nl.float8_e4m3", 1)
I32 = Element("nl.int32", 4)
U8 = Element("nl.uint8", 1)


@frozen
class Tile:
    """A buffer. On chip, dimension 0 lies on partitions."""

    name: str
    shape: tuple[Number, ...]
    element: Element
    space: Space


@frozen
class Range:
    """`start : stop : step` of one dimension; `stop` None means to the end."""

    start: Number
    stop: Number | None
    step: Number | None = None


@frozen
class View:
    """A tile, or slices of it. `index` None is the whole tile; `shape` is what the view shows."""

    tile: Tile
    shape: tuple[Number, ...]
    index: tuple[Range | None, ...] | None = None
    """One entry per dimension; None keeps the whole dimension."""


@frozen
class Pattern:
    """`tile.ap(pattern=[[step, count], ...], offset=offset)`: a raw access pattern."""

    tile: Tile
    steps: tuple[tuple[Number, Number], ...]
    offset: Number
    index: View | None = None
    """One element that says, when the kernel runs, which entry of a dimension is meant."""
    indexed_dim: int = 0

    @property
    def shape(self) -> tuple[Number, ...]:
        """The counts, outermost first."""
        return tuple(count for _, count in self.steps)


@frozen
class Token:
    """A name of the NKI API used as an operand: `nl.multiply`, `nisa.engine.gpsimd`."""

    text: str


@frozen
class Integers:
    """A nested list of integers, as `iota` and `affine_select` take them."""

    rows: tuple[tuple[Number, Number], ...]


Access = View | Pattern


def tiles_in(operand: object) -> tuple[Tile, ...]:
    """Return the tiles an operand mentions."""
    match operand:
        case View(tile=tile) | Pattern(tile=tile, index=None):
            return (tile,)
        case Pattern(tile=tile, index=View(tile=index)):
            return (tile, index)
        case _:
            return ()


Operand = View | Pattern | Number | Token | Integers | bool


@frozen
class Allocate:
    """Create a tile."""

    tile: Tile
    origin: Span | None = field(default=None, eq=False, repr=False)


@frozen
class Instruction:
    """`nisa.<opcode>(keyword=operand, ...)`."""

    opcode: str
    operands: tuple[tuple[str, Operand], ...]
    origin: Span | None = field(default=None, eq=False, repr=False)


@frozen
class Assign:
    """Bind a name to a trace-time number."""

    name: str
    value: Number


@frozen
class Invoke:
    """Call a function of the program; `result` names what it returns, one value or a tuple.

    `keywords` are the names of all its parameters where the text shall say them.
    """

    function: str
    arguments: tuple[Operand, ...]
    result: str | None = None
    keywords: tuple[str, ...] = ()
    origin: Span | None = field(default=None, eq=False, repr=False)


@frozen
class For:
    """`for variable in range(start, stop, step)`, unrolled when traced."""

    variable: str
    start: Number
    stop: Number
    step: Number
    body: tuple[Statement, ...]


@frozen
class If:
    """A trace-time decision."""

    condition: Number
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@frozen
class Require:
    """A contract of the caller: an assertion at trace time. `message` may use `{names}`.

    `remedy` is what a caller can do who cannot keep it; it is no part of the text.
    """

    condition: Number
    message: str
    remedy: str = ""


@frozen
class RequireShape:
    """The caller's tensor must have the shape the tile says."""

    tile: Tile


@frozen
class Banner:
    """A phase a reader looks for."""

    title: str


@frozen
class Comment:
    """One or more lines that say why."""

    text: str


@frozen
class Rebind:
    """`a, b = b, c`: names of tiles and tuples move on."""

    targets: tuple[str, ...]
    sources: tuple[str, ...]


@frozen
class Unpack:
    """`a, b = pair`: the tiles of a tuple."""

    names: tuple[str, ...]
    tuple_name: str


@frozen
class Take:
    """`a, b = record["a"], record["b"]`: fields of a record under their own names."""

    names: tuple[str, ...]
    record: str


@frozen
class Put:
    """`record["field"] = value`."""

    record: str
    field: str
    value: Number


@frozen
class Append:
    """`values.append(value)`."""

    values: str
    value: Number


@frozen
class ForEach:
    """`for a, b in values`, unrolled when traced."""

    variables: tuple[str, ...]
    values: Number
    body: tuple[Statement, ...]


@frozen
class Verbatim:
    """Statements of a hand-written schedule, kept as NKI text."""

    text: str


Statement = (
    Allocate
    | Instruction
    | Assign
    | Invoke
    | For
    | If
    | Require
    | RequireShape
    | Banner
    | Comment
    | Rebind
    | Unpack
    | Take
    | Put
    | Append
    | ForEach
    | Verbatim
)


@frozen
class Function:
    """A function of the emitted module; it takes tiles and trace-time values.

    It returns nothing, one tile or value, or a tuple of them.
    """

    name: str
    parameters: tuple[str, ...]
    doc: str
    body: tuple[Statement, ...]
    returns: tuple[str, ...] = ()


@frozen
class Constant:
    """A named constant of the module, with its reason."""

    name: str
    value: Number
    reason: str


@frozen
class Parameter:
    """A parameter of the entry. `default` is its Python text; `tile` None for a number."""

    name: str
    tile: Tile | None
    default: str | None = None


@frozen
class Program:
    """A whole kernel: constants, functions in the order they are read, the entry."""

    entry: str
    parameters: tuple[Parameter, ...]
    constants: tuple[Constant, ...]
    functions: tuple[Function, ...]
    body: tuple[Statement, ...]
    returns: tuple[str, ...]
