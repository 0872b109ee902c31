"""The chunk-parallel form of one delta recurrence, as a value.

For a chunk of C tokens (sub-steps counted as tokens) with carry-in S, G_i the inclusive sum of the
log decay up to token i, R_i = G_i (inclusive rows) or G_i - g_i (exclusive rows):

    score X with row x, column y:  X_ij = sum[K](x_i y_j exp(R_i - G_j)),  j < i  (or j <= i)

    DeltaSolve   A = ratio_i (read . key), strict
                 w = (I + A)^-1 (value - ratio (read exp(R)) S)
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
    """scale_i sum[K](row_i column_j exp(R_i - G_j)) for j < i, and for j = i when `diagonal`."""

    name: str
    row: Expr
    column: Expr
    rows: Rows
    diagonal: bool
    scale: Expr | None = None


@frozen
class ScalarSegments(Node):
    """A decay without key axis: exp of the [C, C] segment sums, argument masked before the exp."""

    log: Expr


@frozen
class AnchoredSegments(Node):
    """A per-channel decay: the pairs of a chunk as a binary tree of blocks.

    Level w pairs the rows of the second half of each block of 2 w with the columns of its first
    half; the reference is the boundary between the halves, so that both factors
    exp(R_i - G_ref) and exp(G_ref - G_j) have exponents <= 0. Diagonal blocks of `subblock` tokens
    share one reference in their middle: both exponents stay within `subblock` / 2 tokens of decay,
    at most `reach` in size. `subblock` 1 has no diagonal factor at all and serves every gate.
    """

    log: Expr
    subblock: int
    levels: tuple[int, ...]
    reach: float


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
    """The erase vector is `ratio` times the write key: one triangular system for the writes w."""

    A: Score
    read: Expr
    rows: Rows
    ratio: Expr | None
    inverse: Inverse
    alternatives: tuple[Inverse, ...] = ()
    """The other inverses, for a kernel that takes `inverse` as a trace-time argument."""


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
    operands: Dtype | None
    substeps: str | None
    error: ErrorBound
    why: tuple[str, ...]
