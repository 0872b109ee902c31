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


def absorbed(form: Delta, ratio: Expr, builder: Builder) -> tuple[Delta, Expr] | None:
    """Return the form with sqrt(ratio) moved into read, key and value, and that factor.

    With w = sqrt(ratio) w', the system for w' has read sqrt(ratio), key sqrt(ratio) and ratio 1:
    exact for ratio >= 0. None when the written value does not contain the ratio.
    """
    if form.read is None or form.write is None:
        return None
    value = quotient(form.write.value, ratio, builder)
    if value is None:
        return None
    root = builder.apply("sqrt", ratio, span=ratio.span)

    def times_root(expr: Expr) -> Expr:
        return builder.product((expr, root), expr.span)

    key = times_root(form.write.key)
    write = RankOne(key, times_root(value), span=form.write.span)
    read = evolve(form.read, vector=times_root(form.read.vector))
    return evolve(form, read=read, write=write, erase=key), root
