"""The chunk-parallel form of one delta recurrence, as a value.

For a chunk of C tokens (sub-steps counted as tokens) with carry-in S, G_i the inclusive sum of the
log decay up to token i, R_i = G_i (inclusive rows) or G_i - g_i (exclusive rows):

    score X with row x, column y:  X_ij = sum[K](x_i y_j exp(R_i - G_j)),  j < i  (or j <= i),
                                   times scale_i weight_j where the score has them

    DeltaSolve   A = ratio_i (read . key), strict
                 w = factor (I + A)^-1 (value - ratio (read exp(R)) S)
    DualSolve    A = read . erase, AK = read . key, both strict
                 r = (I + A)^-1 ((read exp(R)) S + AK value)
    no solve     w = value
    emit         o = (query exp(R)) S + P w + skip             DualSolve: P value - PE r
    carry        S <- exp(G_last) S + (key exp(G_last - G))^T w
                 DualSolve: value for w, and - (erase exp(G_last - G))^T r

Every difference of two G is the sum of the g between them; it is never formed from two prefixes.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr
from gdsl.ir.node import Node, Symbol


class Rows(Enum):
    """Which cumulative log decay stands on the row side of a score and before the carry-in."""

    INCLUSIVE = "inclusive"
    EXCLUSIVE = "exclusive"


@frozen
class Score(Node):
    """scale_i weight_j sum[K](row_i column_j exp(R_i - G_j)) for j < i, and j = i if `diagonal`.

    `shared`: the sum of a scalar decay is made once for several heads; it, and the decays that it
    meets, are rounded to operands.
    """

    name: str
    row: Expr
    column: Expr
    rows: Rows
    diagonal: bool
    scale: Expr | None = None
    weight: Expr | None = None
    shared: bool = False


@frozen
class ScalarSegments(Node):
    """A decay without key axis: exp of the [C, C] segment sums, argument masked before the exp."""

    log: Expr


@frozen
class Reference:
    """Pairs of tokens whose factors share one reference, the same in every block of `block` tokens.

    Positions are within a block. The reference lies before token `at`; rows are the tokens from
    `first` to before `last`, columns those before `columns`. With G_ref the sum up to the
    reference, exp(R_i - G_j) = exp(R_i - G_ref) exp(G_ref - G_j).
    """

    block: int
    at: int
    first: int
    last: int
    columns: int


@frozen
class AnchoredSegments(Node):
    """A per-channel decay: every pair of tokens of a chunk meets around a reference.

    Tiles of `tile` tokens consist of sub-blocks of `subblock`; the rows of a sub-block share the
    reference in its middle with all columns of the tile up to its end. Within the sub-block both
    exponents stay within `subblock` / 2 tokens of decay, at most `reach` in size; before it the
    column's is <= 0. Between tiles, level w pairs the rows of the second half of each block of 2 w
    with the columns of its first half around their boundary: both exponents are <= 0. `subblock` 1
    has no tiles, only levels and an undecayed diagonal, and serves every gate.
    """

    log: Expr
    subblock: int
    tile: int
    levels: tuple[int, ...]
    reach: float

    @property
    def references(self) -> tuple[Reference, ...]:
        """The references that cover all pairs j < i, and j = i unless `subblock` is 1."""
        step = self.subblock
        inside = tuple(
            Reference(self.tile, first + step // 2, first, first + step, first + step)
            for first in range(0, self.tile if step > 1 else 0, step)
        )
        return inside + tuple(Reference(2 * w, w, w, 2 * w, w) for w in self.levels)


Segments = ScalarSegments | AnchoredSegments


class InverseKind(Enum):
    """How the unit lower triangular I + A is inverted; see `gdsl.algorithm.triangular`."""

    MERGE = "merge"
    SUBSTITUTION = "row substitution"
    DOUBLING = "doubling"


@frozen
class Inverse(Node):
    """Leaves of `leaf` rows by `kind` (MERGE: leaf 1), then merges of widths `merges`.

    `name` is the value of the schedule key `inverse` that selects it.
    """

    name: str
    kind: InverseKind
    leaf: int
    corrections: int
    merges: tuple[int, ...]


@frozen
class DeltaSolve(Node):
    """The erase vector is `ratio` times the write key: one triangular system for the writes w.

    `folded`: W = (I + A)^-1 ratio (read exp(R)) is made first, so that a chunk waits for one
    product with the carried state; else the state is read first and what is left of the value is
    solved for. What is solved for is multiplied by `factor` before it is written.
    """

    A: Score
    read: Expr
    rows: Rows
    ratio: Expr | None
    inverse: Inverse
    folded: bool = True
    alternatives: tuple[Inverse, ...] = ()
    """The other inverses, for a kernel that takes `inverse` as a trace-time argument."""
    factor: Expr | None = None


@frozen
class DualSolve(Node):
    """The erase vector is free (DPLR, RWKV-7): the system gives the reads r."""

    A: Score
    AK: Score | None
    read: Expr
    rows: Rows
    erase: Expr
    inverse: Inverse
    alternatives: tuple[Inverse, ...] = ()


Solve = DeltaSolve | DualSolve


@frozen
class ChunkEmit(Node):
    """One output. `PE` is the score against the erase vector (DualSolve only).

    `query` None: the output is the skip alone.
    """

    result: Symbol
    query: Expr | None
    rows: Rows
    P: Score | None
    PE: Score | None
    skip: Expr | None


@frozen
class ErrorBound(Node):
    """What the domain analysis states.

    `inverse`: absolute error of an entry of (I + A)^-1 for keys within the stated ranges, at the
    plan's rounding points (0 without a solve). `decay`: absolute error of exp(R_i - G_j) from
    rounding exponents in f32.
    """

    inverse: float
    decay: float


@frozen
class ChunkPlan(Node):
    """The chunked algorithm of one run.

    `segments` None: no decay. `key`/`value` None: pure erase. `absorbed` is the erase ratio that
    was moved into the key (None: nothing was); `key` already contains it. `operands`: dtype of the
    matmul operands, None for that of the inputs; everything else, and every accumulation, is f32.
    `shared` are the axes of value heads with one key and one query together: where they have more
    than one, the chunk is computed in its form for shared keys (`gdsl.algorithm.shared_keys`).
    With checkpoints (`Run.every`) a chunk ends at every checkpoint. `substeps` names the axis whose
    steps are laid out as consecutive tokens: the decay belongs to step 0, only the last step emits.
    """

    chunk: int
    key_axis: str
    value_axis: str
    segments: Segments | None
    solve: Solve | None
    key: Expr | None
    value: Expr | None
    emits: tuple[ChunkEmit, ...]
    absorbed: Expr | None
    shared: tuple[str, ...]
    operands: Dtype | None
    substeps: str | None
    error: ErrorBound
    why: tuple[str, ...]
