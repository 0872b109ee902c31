"""Terms: the mathematics of a kernel as instruction selection sees it.

A term is a value per *row* (a row is one (batch, head) pair, or whatever axes the state maps over)
and possibly along one further axis, its *wide* axis (K or V). Against the typed IR three things
are gone: names (every value is expressed by the kernel's inputs), nested products (one flat product
with a trace-time coefficient) and operators without an instruction of their own (see `algebra`).

Terms are interned by `Algebra`, so equal terms are the same object.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

from attrs import field, frozen

from backends.nki.program.numbers import Number


class Stage(IntEnum):
    """The earliest point at which a term can be computed.

    A decode step knows the last three. In chunks of tokens the state is read elsewhere, and what
    does not differ from token to token is computed before them.
    """

    KERNEL = -2
    """The same for all heads and tokens: once per kernel."""
    TEAM = -1
    """The same for all tokens of a head: once per team of heads."""
    INPUTS = 0
    """From the inputs alone: once per tile of rows, or group of chunks."""
    READS = 1
    """Needs the products with the state: once per group of heads."""
    OUTPUTS = 2
    """Needs the output of the rule: once per tile of rows, after its groups."""


@frozen
class Leaf:
    """A value that is there: an input, a product with the state, a result of the rule."""

    name: str
    wide: str | None
    rows: bool
    """Whether it differs from row to row."""
    stage: Stage


@frozen
class Known:
    """A trace-time number."""

    value: Number
    wide: None = None
    rows: bool = False
    stage: Stage = Stage.INPUTS


@frozen(cache_hash=True)
class Product:
    """coefficient * factor * factor * ...; two factors or more unless the coefficient is not 1."""

    coefficient: Number
    factors: tuple[Term, ...]
    wide: str | None = field(eq=False)
    rows: bool = field(eq=False)
    stage: Stage = field(eq=False)


@frozen(cache_hash=True)
class Op:
    """An operator that has an instruction (a key of `selector.OPERATIONS`)."""

    name: str
    args: tuple[Term, ...]
    wide: str | None = field(eq=False)
    rows: bool = field(eq=False)
    stage: Stage = field(eq=False)


@frozen(cache_hash=True)
class Fold:
    """`sum`, `max` or `min` over the wide axis of `arg`."""

    name: str
    arg: Term
    rows: bool = field(eq=False)
    stage: Stage = field(eq=False)
    wide: None = field(default=None, eq=False)


@frozen(cache_hash=True)
class Rounded:
    """`arg` rounded to a dtype (`bf16`, `f16`), then used in fp32 again."""

    dtype: str
    arg: Term
    wide: str | None = field(eq=False)
    rows: bool = field(eq=False)
    stage: Stage = field(eq=False)


Term = Leaf | Known | Product | Op | Fold | Rounded


def children(term: Term) -> tuple[Term, ...]:
    """Return the terms a term is made of."""
    match term:
        case Product(factors=factors):
            return factors
        case Op(args=args):
            return args
        case Fold(arg=arg) | Rounded(arg=arg):
            return (arg,)
        case _:
            return ()


@cache
def depth(term: Term) -> int:
    """Return the longest chain of operations in a term."""
    return 1 + max(map(depth, children(term)), default=0)
