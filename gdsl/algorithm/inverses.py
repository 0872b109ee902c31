"""Choosing the inverse of I + A inside its safe domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from gdsl.algorithm.chunk_plan import Inverse, InverseKind
from gdsl.algorithm.inverse_domain import (
    MAX_DOUBLING_LEAF,
    SafeInverse,
    corrections_needed,
    safe_inverse,
)
from gdsl.algorithm.plan import Resolved
from gdsl.algorithm.unsafe import INVERSE, Unsafe
from gdsl.ir.dtypes import Dtype

NAMES = ("schur", "neumann")
AUTO_LEAF = 0
AUTO_CORRECTIONS = -1


def inverse_named(
    name: str,
    chunk: int,
    operands: Dtype,
    leaf: int = AUTO_LEAF,
    corrections: int = AUTO_CORRECTIONS,
) -> Inverse:
    """Return the inverse that the schedule keys name, their automatic values filled in.

    A leaf longer than the chunk is the chunk.
    """
    if name == "schur":
        leaf = min(leaf or 1, chunk)
        kind = InverseKind.SUBSTITUTION if leaf > 1 else InverseKind.MERGE
        return Inverse(name, kind, leaf, 0, _merges(leaf, chunk))
    leaf = min(leaf or MAX_DOUBLING_LEAF, chunk)
    if corrections == AUTO_CORRECTIONS:
        corrections = corrections_needed(operands)
    return Inverse(name, InverseKind.DOUBLING, leaf, corrections, _merges(leaf, chunk))


def choose_inverse(
    settings: Mapping[str, Resolved], operands: Dtype, product: float
) -> tuple[Inverse, SafeInverse] | Unsafe:
    """Return the inverse that the settings ask for and the row that makes it safe, or why not.

    `inverse=auto` is the safe one with the fewest passes.
    """
    asked = str(settings["inverse"].value)
    chunk, leaf = int(settings["chunk"].value), int(settings["leaf"].value)
    corrections = int(settings["corrections"].value)
    found = [
        inverse_named(name, chunk, operands, leaf, corrections)
        for name in (NAMES if asked == "auto" else (asked,))
    ]
    rows = [(inverse, safe_inverse(inverse, operands, product)) for inverse in found]
    safe = [(inverse, row) for inverse, row in rows if row is not None]
    if safe:
        return min(safe, key=lambda choice: passes(choice[0]))
    return _unsafe(found[0], settings, operands, product)


def passes(inverse: Inverse) -> int:
    """Return the passes over a [C, C] matrix that an inverse takes, matmuls not counted.

    They bound a chunk on every machine with a fast matmul. A merge masks A and rounds -A X, X and
    X^T; a correction rounds the residual twice and X and X^T; the rows of a substitution wait for
    one another.
    """
    merges = 4 * len(inverse.merges)
    match inverse.kind:
        case InverseKind.MERGE:
            # The first merge, of single rows, is I - A: nothing is multiplied.
            return merges - 1
        case InverseKind.SUBSTITUTION:
            return 2 * inverse.leaf + merges
        case InverseKind.DOUBLING:
            squarings = inverse.leaf.bit_length() - 2
            return 4 + 4 * squarings + 4 * inverse.corrections + merges
        case _:
            assert_never(inverse.kind)


def _unsafe(
    inverse: Inverse, settings: Mapping[str, Resolved], operands: Dtype, product: float
) -> Unsafe:
    needed = corrections_needed(operands)
    too_long = inverse.leaf > MAX_DOUBLING_LEAF
    message = (
        f"`inverse={inverse.name}` with `leaf={inverse.leaf}` and "
        f"`corrections={inverse.corrections}` is unsafe"
    )
    grown = (
        f"the powers of a leaf of {inverse.leaf} rows grow to "
        f"{_largest_power(inverse.leaf, product):.0e} before they cancel (|A_ij| <= {product:g})"
    )
    limit = (
        f"a doubling leaf may have at most {MAX_DOUBLING_LEAF} rows and needs {needed} "
        f"correction{'s' if needed > 1 else ''} with {operands.value} operands"
    )
    places = [settings[key].span for key in ("leaf", "corrections", "inverse")]
    return Unsafe(
        INVERSE,
        message,
        next((span for span in places if span), None),
        label="correlated keys would give a wrong inverse without any NaN",
        notes=(grown, limit),
        remedy=f"use `leaf={MAX_DOUBLING_LEAF}` or less, or `inverse=schur`"
        if too_long
        else f"use `corrections={needed}`, or `inverse=schur`",
    )


def _largest_power(leaf: int, product: float) -> float:
    """The largest entry of any power of the strictly lower matrix with all entries `product`.

    Entry (leaf - 1, 0) of the n-th power counts the paths of n steps: binomial(leaf - 2, n - 1).
    """
    largest, term = product, product
    for n in range(1, leaf - 1):
        term = term * product * (leaf - 1 - n) / n
        largest = max(largest, term)
    return largest


def _merges(leaf: int, chunk: int) -> tuple[int, ...]:
    widths = []
    while leaf < chunk:
        widths.append(leaf)
        leaf *= 2
    return tuple(widths)
