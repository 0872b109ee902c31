"""Exact rewrites of a canonical form: same real numbers, fewer operations. Run in this order."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from gdsl.canonical.build import Builder, is_number
from gdsl.canonical.form import Canonical, Delta, Window
from gdsl.canonical.substitute import retyped
from gdsl.ir.expr import Apply, Const, Expr
from gdsl.ir.traverse import children

Pass = Callable[[Canonical, Builder], Canonical]
_FOLDED = ("add", "sub", "mul", "neg")


def simplify(form: Canonical, builder: Builder) -> Canonical:
    """Drop factors 1, summands 0 and double signs; fold arithmetic on constants."""
    return map_expressions(form, lambda expr: simplified(expr, builder))


def drop_unused_read(form: Canonical, builder: Builder) -> Canonical:
    """A read that is erased with factor 0 is no read."""
    if isinstance(form, Delta) and form.erase is not None and is_number(form.erase, 0.0):
        return evolve(form, read=None, erase=None)
    return form


def drop_empty_write(form: Canonical, builder: Builder) -> Canonical:
    """A write of 0 is no write."""
    if isinstance(form, Delta) and form.write is not None and is_number(form.write.value, 0.0):
        return evolve(form, write=None)
    return form


PASSES: tuple[Pass, ...] = (simplify, drop_unused_read, drop_empty_write)


def rewritten(form: Canonical, builder: Builder) -> Canonical:
    """Return the form after all passes."""
    for rewrite in PASSES:
        form = rewrite(form, builder)
    return form


def simplified(expr: Expr, builder: Builder) -> Expr:
    """Return the expression without neutral elements, constants folded."""
    old = children(expr)
    new = tuple(simplified(child, builder) for child in old)
    changed = any(a is not b for a, b in zip(old, new, strict=True))
    expr = retyped(expr, new, builder) if changed else expr
    match expr:
        case Apply(operator=operator, args=args) if operator in _FOLDED and all(
            isinstance(arg, Const) for arg in args
        ):
            return _folded(operator, args, builder)
        case Apply(operator="mul", args=(left, right)):
            return right if is_number(left, 1.0) else left if is_number(right, 1.0) else expr
        case Apply(operator="div", args=(left, right)) if is_number(right, 1.0):
            return left
        case Apply(operator="add", args=(left, right)):
            return right if is_number(left, 0.0) else left if is_number(right, 0.0) else expr
        case Apply(operator="sub", args=(left, right)) if is_number(right, 0.0):
            return left
        case Apply(operator="neg", args=(Apply(operator="neg", args=(inner,)),)):
            return inner
        case _:
            return expr


def _folded(operator: str, args: tuple[Expr, ...], builder: Builder) -> Expr:
    values = [arg.value for arg in args if isinstance(arg, Const)]
    match operator, values:
        case "neg", [x]:
            return builder.number(-x)
        case "add", [x, y]:
            return builder.number(x + y)
        case "sub", [x, y]:
            return builder.number(x - y)
        case _:
            return builder.number(values[0] * values[1])


def map_expressions(form: Canonical, change: Callable[[Expr], Expr]) -> Canonical:
    """Return the form with every expression replaced."""

    def maybe(expr: Expr | None) -> Expr | None:
        return None if expr is None else change(expr)

    match form:
        case Window():
            windows = tuple(evolve(e, taps=maybe(e.taps), skip=maybe(e.skip)) for e in form.emits)
            return evolve(form, value=change(form.value), emits=windows)
        case Delta(decay=decay, read=read, write=write):
            return evolve(
                form,
                decay=evolve(decay, factor=maybe(decay.factor), log=maybe(decay.log)),
                read=read and evolve(read, vector=change(read.vector)),
                write=write and evolve(write, key=change(write.key), value=change(write.value)),
                erase=maybe(form.erase),
                emits=tuple(
                    evolve(emit, query=maybe(emit.query), skip=maybe(emit.skip))
                    for emit in form.emits
                ),
            )
