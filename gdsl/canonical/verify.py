"""The invariants of a canonical form. Runs after every pass in the tests."""

from __future__ import annotations

from collections.abc import Iterator

from gdsl.canonical.form import Canonical, DecayKind, Delta, Window
from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Run
from gdsl.ir.traverse import symbols


def broken_invariants(run: Run, form: Canonical) -> tuple[str, ...]:
    """Return what does not hold, empty when all is well."""
    checks = _window(form) if isinstance(form, Window) else _delta(form)
    return (*checks, *_scope(run, form))


def _delta(form: Delta) -> Iterator[str]:
    key, value = form.key_axis, form.value_axis
    read = form.read.vector if form.read else None
    yield from _without("read", read, value)
    yield from _without("erase", form.erase, value)
    yield from _without("write key", form.write.key if form.write else None, value)
    yield from _without("write value", form.write.value if form.write else None, key)
    for emit in form.emits:
        other = value if emit.axis == key else key
        yield from _without(f"query of {emit.result.name}", emit.query, other)
    if (form.read is None) != (form.erase is None):
        yield "read and erase come together"
    if (form.decay.factor is None) != (form.decay.kind is DecayKind.NONE):
        yield "a decay has a factor unless its kind is NONE"
    expected = {
        DecayKind.NONE: set(),
        DecayKind.SCALAR: set(),
        DecayKind.KEY_VECTOR: {key},
        DecayKind.VALUE_VECTOR: {value},
    }[form.decay.kind]
    axes = set(form.decay.factor.type.axes) if form.decay.factor else set()
    if axes & {key, value} != expected:
        yield f"decay of kind {form.decay.kind.value} carries {sorted(axes & {key, value})}"


def _window(form: Window) -> Iterator[str]:
    yield from _without("appended column", form.value, form.axis)
    for emit in form.emits:
        yield from _without(f"skip of {emit.result.name}", emit.skip, form.axis)


def _without(what: str, expr: Expr | None, axis: str) -> Iterator[str]:
    if expr is not None and axis in expr.type.axes:
        yield f"{what} carries {axis}"


def _scope(run: Run, form: Canonical) -> Iterator[str]:
    allowed = set(run.rule.params)
    for expr in _expressions(form):
        for symbol in symbols(expr):
            if symbol not in allowed:
                yield f"{symbol.name} is not a parameter of {run.rule.name}"


def _expressions(form: Canonical) -> Iterator[Expr]:
    """Every expression over the rule's parameters (the log decay is over the kernel's names)."""
    if isinstance(form, Window):
        parts = [form.value, *(part for emit in form.emits for part in (emit.taps, emit.skip))]
    else:
        parts = [
            form.decay.factor,
            form.read.vector if form.read else None,
            form.erase,
            *((form.write.key, form.write.value) if form.write else ()),
            *(e for emit in form.emits for e in (emit.query, emit.skip)),
        ]
    yield from (part for part in parts if part is not None)
