"""A kernel in a few lines for its docstring: the canonical recurrence, arguments in place."""

from __future__ import annotations

from collections.abc import Iterator

from gdsl.algorithm.plan import Plan
from gdsl.canonical.build import Builder
from gdsl.canonical.form import DecayKind, Delta, ReadWhen, Window
from gdsl.canonical.substitute import bind_arguments
from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Let, Run
from gdsl.ir.text import expression_text


def pseudocode(plan: Plan) -> Iterator[str]:
    """Yield a kernel's statements and outputs, one or more lines each."""
    kernel = plan.kernel.kernel
    builder = Builder(tuple(axis.name for axis in kernel.axes))
    canonical = {id(run): form for run, form in plan.kernel.runs}
    for statement in kernel.body:
        match statement:
            case Let(target=target, value=value):
                yield f"{target.name} = {expression_text(value)}"
            case Run():
                form = canonical[id(statement)]
                match form:
                    case Delta():
                        yield from _delta(statement, form, builder)
                    case Window():
                        yield from _window(statement, form, builder)
    for output in kernel.outputs:
        yield f"{output.name} = {expression_text(output.value)}"


def _window(run: Run, window: Window, builder: Builder) -> Iterator[str]:
    def text(expr: Expr) -> str:
        return expression_text(bind_arguments(expr, run, builder))

    old, new = run.state.name, run.state_out.name
    slid = f"shift[{window.axis}]({old}, {text(window.value)})"
    named = dict(zip(run.rule.results, run.results, strict=True))
    for emit in window.emits:
        terms = []
        if emit.taps is not None:
            seen = slid if emit.after else old
            terms.append(f"sum[{window.axis}](({text(emit.taps)}) * {seen})")
        if emit.skip is not None:
            terms.append(text(emit.skip))
        yield f"{named[emit.result].name} = {' + '.join(terms)}"
    yield f"{new} = {slid}"


def _delta(run: Run, delta: Delta, builder: Builder) -> Iterator[str]:
    def text(expr: Expr) -> str:
        return expression_text(bind_arguments(expr, run, builder))

    old, new = run.state.name, run.state_out.name
    decayed = old
    if delta.decay.kind is not DecayKind.NONE and delta.decay.factor is not None:
        decayed = f"{text(delta.decay.factor)} * {old}"
    if delta.read is not None:
        seen = f"({decayed})" if delta.read.when is ReadWhen.POST and decayed != old else old
        yield f"r = sum[{delta.key_axis}]({text(delta.read.vector)} * {seen})"
    parts = [decayed]
    if delta.write is not None:
        parts.append(f"+ ({text(delta.write.key)}) * ({text(delta.write.value)})")
    if delta.erase is not None:
        parts.append(f"- ({text(delta.erase)}) * r")
    yield f"{new} = {' '.join(parts)}"
    named = dict(zip(run.rule.results, run.results, strict=True))
    for emit in delta.emits:
        terms = []
        if emit.query is not None:
            terms.append(f"sum[{emit.axis}](({text(emit.query)}) * {new if emit.after else old})")
        if emit.skip is not None:
            terms.append(text(emit.skip))
        yield f"{named[emit.result].name} = {' + '.join(terms)}"
