"""A canonical kernel as readable mathematics (`--emit canonical`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gdsl.canonical.form import (
    Canonical,
    CanonicalKernel,
    DecayKind,
    Delta,
    Emit,
    ReadWhen,
    Window,
)
from gdsl.ir.expr import Apply, Expr
from gdsl.ir.kernel import Run
from gdsl.ir.text import expression_text


def canonical_text(kernel: CanonicalKernel) -> str:
    """Return every run of the kernel in canonical form, one equation per line."""
    lines = [f"kernel {kernel.kernel.name}"]
    for run, form in kernel.runs:
        lines.append("")
        lines += (f"  {line}" if line else "" for line in _run(run, form))
    return "\n".join(lines) + "\n"


def _run(run: Run, form: Canonical) -> Iterator[str]:
    how = "step" if run.axis is None else f"scan[{run.axis}]"
    results = ", ".join(symbol.name for symbol in (*run.results, run.state_out))
    yield f"{results} = {how} {run.rule.name}"
    for parameter, argument in zip(run.rule.params, run.args, strict=True):
        yield f"  {parameter.name} := {expression_text(argument)}"
    yield ""
    match form:
        case Delta():
            yield from _delta(form, run.rule.state.name)
        case Window():
            yield from _window(form, run.rule.state.name)
        case _:
            assert_never(form)


def _delta(form: Delta, state: str) -> Iterator[str]:
    state_shape = f"{state}[{form.key_axis}, {form.value_axis}]"
    yield f"  delta rule on {state_shape}"
    yield from _decay(form, state)
    if form.substeps:
        yield f"  for each sub-step of {form.substeps}, in order"
    indent = "    " if form.substeps else "  "
    decayed = form.decay.kind is not DecayKind.NONE or form.substeps is not None
    old = f"{state}'" if decayed else state
    new = f"{state}'" if form.substeps else f"{state}_new"
    if form.read:
        seen = old if form.read.when is ReadWhen.POST else state
        note = ""
        if form.decay.kind is not DecayKind.NONE:
            note = f"    # {form.read.when.value}-decay read"
        yield f"{indent}r = {_contraction(form.key_axis, form.read.vector, seen)}{note}"
    yield f"{indent}{new} = {_update(form, old)}"
    for emit in form.emits:
        yield f"  {emit.result.name} = {_emit(emit, new if emit.after else state)}"


def _decay(form: Delta, state: str) -> Iterator[str]:
    decay = form.decay
    if decay.factor is None:
        if form.substeps:
            yield f"  {state}' = {state}"
        return
    constant = ", the same for every token" if decay.constant else ""
    kind = {
        DecayKind.SCALAR: "one factor per head",
        DecayKind.KEY_VECTOR: f"one factor per {form.key_axis}",
        DecayKind.VALUE_VECTOR: f"one factor per {form.value_axis}",
    }[decay.kind]
    yield f"  {state}' = {_factor(decay.factor)} * {state}    # {kind}{constant}"
    if decay.log is not None:
        yield f"    log decay: {expression_text(decay.log)}"


def _update(form: Delta, old: str) -> str:
    parts = [old]
    if form.write:
        parts.append(f"+ {_factor(form.write.key)} (x) {_factor(form.write.value)}")
    if form.erase is not None:
        parts.append(f"- {_factor(form.erase)} (x) r")
    return " ".join(parts)


def _emit(emit: Emit, seen: str) -> str:
    parts = []
    if emit.query is not None:
        parts.append(_contraction(emit.axis, emit.query, seen))
    if emit.skip is not None:
        parts.append(expression_text(emit.skip))
    return " + ".join(parts)


def _window(form: Window, state: str) -> Iterator[str]:
    yield f"  sliding window on {state}[{form.axis}]"
    yield f"  append {expression_text(form.value)}"
    for emit in form.emits:
        parts = []
        if emit.taps is not None:
            seen = state if emit.after else f"{state}_old"
            parts.append(_contraction(form.axis, emit.taps, seen))
        if emit.skip is not None:
            parts.append(expression_text(emit.skip))
        yield f"  {emit.result.name} = {' + '.join(parts)}"


def _contraction(axis: str, vector: Expr, state: str) -> str:
    return f"sum[{axis}]({_factor(vector)} * {state})"


def _factor(expr: Expr) -> str:
    """An expression as it stands inside a product."""
    text = expression_text(expr)
    loose = isinstance(expr, Apply) and expr.operator in ("add", "sub", "neg")
    return f"({text})" if loose else text
