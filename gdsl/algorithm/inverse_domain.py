"""Where each inverse of I + A is safe, as data.

`product` bounds |A_ij|: erase ratio times the norms of read and key. The errors are the largest
seen over keys that are random, correlated (cosine 0.5 to 0.99), identical, alternating in sign
and of rank 3, at C = 128 with A rounded once to the operand dtype, rounded up;
`tests/gdsl/algorithm/test_inverse_domain.py` measures them again. Doubling is limited by the
powers of a leaf, whose entries reach binomial(leaf - 1, n) product^n before they cancel.
"""

from __future__ import annotations

from attrs import frozen

from gdsl.algorithm.chunk_plan import Inverse, InverseKind
from gdsl.ir.dtypes import Dtype


@frozen
class SafeInverse:
    """A method within limits, and the error that holds inside them."""

    kind: InverseKind
    operands: Dtype
    max_leaf: int
    min_corrections: int
    product: float
    error: float


# Unit keys whose squared norm an `assume` states as <= 1.01, rounded to bf16, stay below these.
_UNIT = 1.05
_DOUBLE = 2.1

SAFE_INVERSES: tuple[SafeInverse, ...] = (
    SafeInverse(InverseKind.MERGE, Dtype.F32, 1, 0, _UNIT, 3e-6),
    SafeInverse(InverseKind.MERGE, Dtype.F32, 1, 0, _DOUBLE, 2e-4),
    SafeInverse(InverseKind.MERGE, Dtype.BF16, 1, 0, _UNIT, 1e-2),
    SafeInverse(InverseKind.MERGE, Dtype.BF16, 1, 0, _DOUBLE, 2.0),
    SafeInverse(InverseKind.SUBSTITUTION, Dtype.F32, 128, 0, _UNIT, 3e-6),
    SafeInverse(InverseKind.SUBSTITUTION, Dtype.F32, 128, 0, _DOUBLE, 2e-4),
    SafeInverse(InverseKind.SUBSTITUTION, Dtype.BF16, 128, 0, _UNIT, 1e-2),
    SafeInverse(InverseKind.SUBSTITUTION, Dtype.BF16, 128, 0, _DOUBLE, 2.0),
    SafeInverse(InverseKind.DOUBLING, Dtype.F32, 16, 1, _UNIT, 3e-6),
    SafeInverse(InverseKind.DOUBLING, Dtype.F32, 16, 1, _DOUBLE, 2e-4),
    SafeInverse(InverseKind.DOUBLING, Dtype.BF16, 16, 2, _UNIT, 1e-2),
    SafeInverse(InverseKind.DOUBLING, Dtype.BF16, 16, 2, _DOUBLE, 2.0),
)


def safe_inverse(inverse: Inverse, operands: Dtype, product: float) -> SafeInverse | None:
    """Return the tightest row that covers a method for |A_ij| <= product, None if none does.

    16-bit floats other than bf16 count as bf16.
    """
    for row in SAFE_INVERSES:
        if (
            row.kind is inverse.kind
            and (row.operands is Dtype.F32) == (operands is Dtype.F32)
            and inverse.leaf <= row.max_leaf
            and inverse.corrections >= row.min_corrections
            and product <= row.product
        ):
            return row
    return None


def corrections_needed(operands: Dtype) -> int:
    """Return the residual corrections a doubling leaf needs before any merge."""
    return min(
        row.min_corrections
        for row in SAFE_INVERSES
        if row.kind is InverseKind.DOUBLING
        and (row.operands is Dtype.F32) == (operands is Dtype.F32)
    )


MAX_PRODUCT = max(row.product for row in SAFE_INVERSES)
MAX_DOUBLING_LEAF = max(row.max_leaf for row in SAFE_INVERSES if row.kind is InverseKind.DOUBLING)
