"""One sentence per decision of a chunked plan, for `gdsl check`."""

from __future__ import annotations

import math

from attrs import evolve

from gdsl.algorithm.chunk_plan import (
    AnchoredSegments,
    Inverse,
    InverseKind,
    ScalarSegments,
    Segments,
)
from gdsl.algorithm.domain import Domain
from gdsl.algorithm.inverse_domain import SafeInverse
from gdsl.algorithm.inverses import passes
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr
from gdsl.ir.interval import show
from gdsl.ir.text import expression_text


def chunk_why(
    domain: Domain,
    product: float,
    segments: Segments | None,
    inverse: tuple[Inverse, SafeInverse] | None,
    absorbed: Expr | None,
    operands: Dtype,
) -> tuple[str, ...]:
    """Return why the chunked plan of a run is what it is."""
    sentences = [*_decay(domain, segments)]
    if inverse is None:
        sentences.append("nothing is erased, so there is no triangular system")
    else:
        sentences.append(
            f"|A_ij| <= {product:.3g} from the norms of read ({domain.read:.4g}) and key "
            f"({domain.key:.4g}) and the erase factor"
        )
        sentences.append(_inverse(*inverse, operands))
    if absorbed is not None:
        sentences.append(f"`{expression_text(absorbed)}` is absorbed into the key, which is exact")
    return tuple(sentences)


def _decay(domain: Domain, segments: Segments | None) -> list[str]:
    match segments:
        case None:
            return ["no decay"]
        case ScalarSegments():
            how = "one factor per pair of tokens, exp of masked segment sums"
        case AnchoredSegments(subblock=1):
            how = (
                "per channel, references between halves of blocks down to single tokens, so that "
                "no exponent is positive"
            )
        case AnchoredSegments(subblock=subblock, tile=tile, reach=reach):
            how = (
                f"per channel, a reference in the middle of every {subblock} rows (exponents "
                f"within {reach:g}) for all pairs of {tile} tokens, larger blocks split between "
                "their halves"
            )
    bound = "no lower bound" if domain.log_range.lo == -math.inf else "bounded"
    declared = show(evolve(domain.log_range, may_be_nan=False))
    return [f"log decay in {declared} ({bound}): {how}"]


def _inverse(inverse: Inverse, row: SafeInverse, operands: Dtype) -> str:
    how = {
        InverseKind.MERGE: "2x2 merging from the diagonal, as exact as row substitution",
        InverseKind.SUBSTITUTION: f"row substitution in blocks of {inverse.leaf}, then merges",
        InverseKind.DOUBLING: f"doubling in blocks of {inverse.leaf} with {inverse.corrections} "
        "corrections, then merges",
    }[inverse.kind]
    return (
        f"inverse `{inverse.name}`: {how}, {passes(inverse)} passes over a chunk's matrix; "
        f"error of an entry at most {row.error:g} with "
        f"{operands.value} operands and |A_ij| <= {row.product:g}"
    )
