"""Segment sums of a decay: scalar, or per channel with references that keep both factors in range.

Per channel, exp(R_i - G_j) sits inside the sum over channels, so a matmul needs it as a product of
a row and a column factor around a reference. Between the halves of a block both exponents are
<= 0 whatever the gate is. Inside a sub-block with one reference they have both signs, so its length
follows from the gate's lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from gdsl.algorithm.chunk_plan import AnchoredSegments, ScalarSegments, Segments
from gdsl.algorithm.plan import Resolved
from gdsl.algorithm.unsafe import SUBBLOCK, Unsafe
from gdsl.canonical.form import DecayKind
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr

# Largest total decay of a diagonal block, in e-folds: the product of its two factors stays inside
# bf16 and f32 (exp(88.7) overflows) with room for the vectors; f16 ends at exp(11), each factor
# has half of the block.
REACH: dict[Dtype, float] = {Dtype.F32: 80.0, Dtype.BF16: 80.0, Dtype.F16: 20.0}
LONGEST = 16
# Sub-blocks of fewer tokens cost more references than levels down to single tokens do.
SHORTEST = 8
# Tokens whose pairs meet around the references of rows: sub-blocks side by side.
TILE = 32


def choose_segments(
    kind: DecayKind, log: Expr, bound: float, operands: Dtype, settings: Mapping[str, Resolved]
) -> Segments | Unsafe:
    """Return how the decay is applied; `bound` is the smallest log decay of one token."""
    if kind is DecayKind.SCALAR:
        return ScalarSegments(log)
    chunk = int(settings["chunk"].value)
    asked = settings["subblock"]
    limit = longest_subblock(bound, operands)
    subblock = min(int(asked.value) or _longest_useful(limit), chunk)
    if subblock > limit:
        return _unsafe(subblock, limit, bound, operands, asked)
    reach = 0.0 if subblock == 1 else subblock / 2 * -bound
    tile = 1 if subblock == 1 else min(max(subblock, TILE), chunk)
    levels = tuple(tile << i for i in range(int(math.log2(chunk // tile))))
    return AnchoredSegments(log, subblock, tile, levels, reach)


def _longest_useful(limit: int) -> int:
    return 1 if limit < SHORTEST else min(limit, LONGEST)


def longest_subblock(bound: float, operands: Dtype) -> int:
    """Return the longest power of two of tokens whose total decay stays within REACH; 1 if none."""
    if bound == 0:
        return 128
    tokens = REACH[operands] / -bound
    return 1 << int(math.log2(tokens)) if tokens >= 2 else 1


def _unsafe(subblock: int, limit: int, bound: float, operands: Dtype, asked: Resolved) -> Unsafe:
    gate = "the log decay has no lower bound" if bound == -math.inf else f"it is at least {bound:g}"
    return Unsafe(
        SUBBLOCK,
        f"`subblock={subblock}` is unsafe for this decay per channel",
        asked.span,
        label=f"exp of up to {subblock / 2 * -bound:g} in a factor",
        notes=(
            f"a diagonal block factors exp(R_i - G_j) around one reference; {gate}",
            f"with {operands.value} operands a block may decay by at most "
            f"{REACH[operands]:g} e-folds",
        ),
        remedy=f"use `subblock={limit}`"
        + ("" if limit > 1 else ", or declare the gate's range, such as `in [-5, 0]`"),
    )
