"""The vocabulary of instruction rows: what a row of `instructions.py` can say.

A row is data: names and defaults in call order, what each argument is, where tiles may live, which
element types and operators it takes, which engine runs it, and which operands must agree. Whoever
checks, times or generates an instruction reads it from here.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from attrs import field, frozen

Engine = Literal["tensor", "vector", "scalar", "gpsimd", "sync", "dma"]
Space = Literal["sbuf", "psum", "hbm"]
"""Where a tile lives; private and shared HBM are both `hbm`."""

SBUF: frozenset[Space] = frozenset({"sbuf"})
PSUM: frozenset[Space] = frozenset({"psum"})
ON_CHIP: frozenset[Space] = frozenset({"sbuf", "psum"})
DMA_SPACES: frozenset[Space] = frozenset({"sbuf", "hbm"})
HBM: frozenset[Space] = frozenset({"hbm"})
NOWHERE: frozenset[Space] = frozenset()


class Kind(Enum):
    """What an argument is."""

    __hash__ = object.__hash__  # members are single objects; Python's own hash goes by the name

    OUT = "tile that is written"
    IN = "tile that is read"
    TILES = "list of tiles that are read"
    OPERAND = "number or (P, 1) tile"
    IN_OR_NUMBER = "tile that is read, or number"
    VECTOR_IN = "(P, 1) tile that is read"
    VECTOR_OUT = "(P, 1) tile that is written"
    SEED = "tile of random state"
    OPERATOR = "ALU operator"
    FUNCTION = "activation function"
    NUMBER = "number"
    NUMBERS = "list of numbers, or one number"
    INTEGER = "integer"
    FLAG = "True or False"
    CHOICE = "member of an enumeration"
    PATTERN = "list of [step, count] pairs"
    INTEGERS = "list of integers"
    REGISTER = "register"
    REGISTER_OR_INTEGER = "register or integer"
    NAME = "text"


TILE_KINDS = frozenset(
    {
        Kind.OUT,
        Kind.IN,
        Kind.IN_OR_NUMBER,
        Kind.VECTOR_IN,
        Kind.VECTOR_OUT,
        Kind.OPERAND,
        Kind.SEED,
    }
)
WRITTEN_KINDS = frozenset({Kind.OUT, Kind.VECTOR_OUT})


class _Required:
    """The default of an argument that must be given."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


@frozen
class Param:
    """One argument of an instruction."""

    name: str
    kind: Kind
    default: object = REQUIRED
    spaces: frozenset[Space] = NOWHERE
    """Where a tile given here may live."""
    dtypes: frozenset[str] | None = None
    """Element types a tile given here may have; None: every type that is not packed."""
    operators: frozenset[str] = frozenset()
    """Operators or functions accepted here."""
    choices: str = ""
    """Name of the `nki.isa` enumeration whose members are accepted."""
    keeps: Literal["never", "always", "sometimes"] = "never"
    """Whether old content of a written tile survives, so that it is read as well; for some
    instructions that depends on the other arguments."""
    number_from: int = 2
    """First generation that takes a number here (operands)."""
    tile: bool = True
    """Whether an operand may be a tile."""
    since: str = "0.3"
    """First NKI version with this argument."""

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is REQUIRED


@frozen
class EngineUse:
    """One way to run an instruction: an engine and what must hold for it.

    Rows list their uses in the order in which they are tried when a call leaves `engine` unknown.
    """

    engine: Engine
    generations: tuple[int, ...] = (2, 3, 4)
    spaces: frozenset[Space] = frozenset({"sbuf", "psum", "hbm"})
    """Every tile of the call lives here."""
    out_spaces: frozenset[Space] | None = None
    """Narrower rule for written tiles."""
    in_spaces: frozenset[Space] | None = None
    """Narrower rule for read tiles."""
    dtypes: frozenset[str] | None = None
    """Every tile of the call has one of these element types."""
    operators: frozenset[str] | None = None
    """Every operator of the call is one of these."""
    forms: tuple[tuple[str | None, ...], ...] | None = None
    """The operators of the call, slot by slot, are one of these tuples."""
    on_request: bool = False
    """Used only when the call names this engine."""


class Shape(Enum):
    """How the shapes of an instruction's tiles hang together."""

    ELEMENTWISE = "equal partitions and equal elements per partition"
    MATMUL = "dst (M, N), stationary (K, M), moving (K, N)"
    MATMUL_MX = "as a matmul, with four packed elements per contraction row and scale tiles"
    TRANSPOSE = "dst (F, P) of data (P, F)"
    DMA = "equal element counts"
    DMA_TRANSPOSE = "dst is the transposed shape"
    DMA_COMPUTE = "equal element counts of dst and every source"
    REDUCE_FREE = "dst keeps the leading free axes of data"
    REDUCE_PARTITION = "dst (1, F) of data (P, F)"
    STATISTICS = "dst has 6 elements per partition"
    AGGREGATE = "data in triples, dst has 2 elements per partition"
    EIGHT = "vals and dst have 8 elements per partition"
    SHUFFLE = "quadrants of 32 partitions"
    GATHER = "dst, index and source on equal partitions"
    GENERATE = "dst alone"
    SEQUENCE = "one row of n elements, dst (1, 2, n)"
    COUNT = "dst has one element per partition more than src"
    TOPK = "groups of 16 partitions"
    QUANTIZE_MX = "groups of 8 partitions and 4 elements"
    CROSS_CORE = "equal shapes on both cores"
    REGISTER = "one element"


@frozen
class Limit:
    """A bound on one tile: its elements per partition, or its partitions."""

    param: str
    quantity: Literal["free", "partitions"]
    maximum: int | None = None
    minimum: int = 1
    multiple: int = 1
    generations: tuple[int, ...] = (2, 3, 4)
    engine: Engine | None = None
    """Only when this engine runs the instruction."""
    dst_dtypes: frozenset[str] | None = None
    """Only for a destination of one of these types."""


@frozen
class Instruction:
    """One row: everything that is true of an instruction before its arguments are known."""

    name: str
    family: str
    params: tuple[Param, ...]
    engines: tuple[EngineUse, ...]
    shape: Shape
    one_psum: tuple[tuple[str, ...], ...] = ()
    """Groups of operands of which at most one may live in PSUM."""
    same_dtype: tuple[tuple[str, ...], ...] = ()
    """Groups of tiles that must have equal element types."""
    limits: tuple[Limit, ...] = ()
    generations: tuple[int, ...] = (2, 3, 4)
    """Generations that have the instruction."""
    since: str = "0.3"
    """First NKI version (of 0.3 and later) with it."""
    accumulator: Literal["vector", "scalar"] | None = None
    """The engine whose per-lane accumulator registers it reads or writes."""
    multi_core: bool = False
    """Whether it needs a launch on two cores."""
    not_simulated: str | None = None
    """Why the simulator refuses to run it, where it does."""
    by_name: dict[str, Param] = field(init=False, eq=False, repr=False)
    operator_slots: tuple[Param, ...] = field(init=False, eq=False, repr=False)
    """The arguments that name ALU operators, in call order."""

    @by_name.default
    def _by_name(self) -> dict[str, Param]:
        return {param.name: param for param in self.params}

    @operator_slots.default
    def _operator_slots(self) -> tuple[Param, ...]:
        return tuple(param for param in self.params if param.kind is Kind.OPERATOR)

    def param(self, name: str) -> Param:
        """The argument called `name`; KeyError when there is none."""
        return self.by_name[name]
