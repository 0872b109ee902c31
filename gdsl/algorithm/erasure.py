"""How the erase vector relates to the write key, and absorbing that ratio into both."""

from __future__ import annotations

from collections import Counter

from attrs import evolve, frozen

from gdsl.canonical.build import Builder, is_number
from gdsl.canonical.form import Delta, RankOne
from gdsl.canonical.terms import factors
from gdsl.ir.expr import Expr


@frozen
class Parallel:
    """erase = ratio * key, `ratio` free of the key axis (None for 1)."""

    ratio: Expr | None


def parallel(form: Delta, builder: Builder) -> Parallel | None:
    """Return the ratio of erase vector and write key, None when they are not parallel."""
    if form.erase is None or form.write is None:
        return None
    rest = quotient(form.erase, form.write.key, builder)
    if rest is None or form.key_axis in rest.type.axes:
        return None
    return Parallel(None if is_number(rest, 1.0) else rest)


def quotient(product: Expr, divisor: Expr, builder: Builder) -> Expr | None:
    """Return product / divisor when the divisor's factors are among the product's, else None."""
    negative, parts = factors(product)
    divisor_negative, divisor_parts = factors(divisor)
    wanted = Counter(divisor_parts)
    rest = []
    for part in parts:
        if wanted[part]:
            wanted[part] -= 1
        else:
            rest.append(part)
    if wanted.total():
        return None
    result = builder.product(rest)
    return builder.negate(result) if negative != divisor_negative else result


def absorbed(form: Delta, ratio: Expr, builder: Builder) -> Delta | None:
    """Return the form with the ratio moved into the write key, None where that is not exact.

    What is written is ratio k (x) (v - r): with w' = v - r solved for instead of ratio w', the key
    is ratio k, the value v and the erase vector the key. Read and value stay as they are, so heads
    that share a key share k k^T as well, and no sign of the ratio matters.
    """
    if form.write is None:
        return None
    value = quotient(form.write.value, ratio, builder)
    if value is None:
        return None
    key = builder.product((form.write.key, ratio), form.write.key.span)
    return evolve(form, write=RankOne(key, value, span=form.write.span), erase=key)
