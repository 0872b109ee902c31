"""IR -> canonical form: every run of a kernel taken apart symbolically, never by name."""

from __future__ import annotations

from collections.abc import Mapping

from gdsl.canonical.body import Body, Substeps
from gdsl.canonical.build import Builder
from gdsl.canonical.contract import StateAxes
from gdsl.canonical.decay import decay_kind, decay_of
from gdsl.canonical.emits import emit
from gdsl.canonical.form import Canonical, CanonicalKernel, Delta, Emit
from gdsl.canonical.linear import pure_decay, version_pieces
from gdsl.canonical.refusal import DOES_NOT_FIT, NEVER_WRITTEN, SUBSTEPS, refuse
from gdsl.canonical.rewrites import rewritten
from gdsl.canonical.terms import Contraction, Linear, Value
from gdsl.canonical.update import Update, sort_update
from gdsl.canonical.window import window
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import CompileError
from gdsl.ir.expr import Ref
from gdsl.ir.kernel import Kernel, Rule, Run
from gdsl.ir.node import Symbol


def canonicalize(kernel: Kernel) -> CanonicalKernel:
    """Return the canonical form of each run of a kernel.

    Raises CompileError with one diagnostic per run that does not fit, at the term that does not.
    """
    builder = Builder(tuple(axis.name for axis in kernel.axes))
    runs: list[tuple[Run, Canonical]] = []
    found: list[Diagnostic] = []
    for statement in kernel.body:
        if isinstance(statement, Run):
            try:
                runs.append((statement, canonical_run(kernel, statement, builder)))
            except CompileError as error:
                found += (d for d in error.diagnostics if d not in found)
    if found:
        raise CompileError("; ".join(d.message for d in found), found)
    return CanonicalKernel(kernel, tuple(runs), span=kernel.span)


def canonical_run(kernel: Kernel, run: Run, builder: Builder) -> Canonical:
    """Return the canonical form of one run, after the exact rewrites."""
    rule = run.rule
    arguments = {
        symbol: Ref(symbol, kind)
        for symbol, kind in zip(rule.params, rule.param_types, strict=True)
    }
    return rewritten(_rule(kernel, run, rule, arguments, builder), builder)


def _rule(
    kernel: Kernel, run: Run, rule: Rule, arguments: Mapping[Symbol, Value], builder: Builder
) -> Canonical:
    own = tuple(axis for axis in rule.axes if axis in rule.state_type.axes)
    body = Body(builder, StateAxes(own, rule.state_type.axes))
    body.run(rule, arguments, 0)
    final = body.final_version(rule)
    if final == 0:
        refuse(
            NEVER_WRITTEN,
            f"rule `{rule.name}` never changes its state",
            rule.span,
            "the state at the end is the incoming one",
            "rebind the state, or use a `fn`",
        )
    match own:
        case [_]:
            return window(body, rule, final)
        case [first, second]:
            return _delta(kernel, run, rule, body, final, (first, second))
        case _:
            axes = ", ".join(f"`{axis}`" for axis in own) or "none"
            return refuse(
                DOES_NOT_FIT,
                f"the state of rule `{rule.name}` has {len(own)} axes of the rule ({axes})",
                rule.span,
                "expected two (a matrix state) or one (a window)",
                "give the state two axes, `state S[K, V]`",
            )


def _delta(
    kernel: Kernel, run: Run, rule: Rule, body: Body, final: int, axes: tuple[str, str]
) -> Delta:
    definition = body.definitions[final]
    if isinstance(definition, Substeps):
        return _with_substeps(kernel, run, rule, body, final, axes, definition)
    update = sort_update(
        version_pieces(body, final), axes, _output_axis(body, rule), body.builder, rule.span
    )
    return Delta(
        key_axis=update.key_axis,
        value_axis=update.value_axis,
        decay=decay_of(kernel, run, update.decay, update.kind, body.builder),
        read=update.read,
        write=update.write,
        erase=update.erase,
        emits=_emits(body, rule, final, axes),
        span=rule.span,
    )


def _with_substeps(
    kernel: Kernel,
    run: Run,
    rule: Rule,
    body: Body,
    final: int,
    axes: tuple[str, str],
    steps: Substeps,
) -> Delta:
    inner = _inner_update(steps, body.builder, axes, _output_axis(body, rule))
    decay = pure_decay(version_pieces(body, steps.version), body.builder)
    if decay is None:
        refuse(
            SUBSTEPS,
            "the state is written before its sub-steps",
            steps.run.span,
            "only a decay may come before them",
            "make the write one of the sub-steps",
        )
    kind = decay_kind(decay, inner.key_axis, inner.value_axis, rule.span)
    return Delta(
        key_axis=inner.key_axis,
        value_axis=inner.value_axis,
        decay=decay_of(kernel, run, decay, kind, body.builder),
        read=inner.read,
        write=inner.write,
        erase=inner.erase,
        emits=_emits(body, rule, final, axes),
        substeps=steps.run.axis,
        span=rule.span,
    )


def _inner_update(
    steps: Substeps, builder: Builder, axes: tuple[str, str], output_axis: str | None
) -> Update:
    rule = steps.run.rule
    body = Body(builder, StateAxes(axes, rule.state_type.axes))
    body.run(rule, dict(zip(rule.params, steps.arguments, strict=True)), 0)
    final = body.final_version(rule)
    update = sort_update(version_pieces(body, final), axes, output_axis, builder, rule.span)
    if update.decay:
        refuse(
            SUBSTEPS,
            "a sub-step decays the state",
            update.decay[0].span,
            "the decay belongs to the token, before the sub-steps",
            "move `S = decay * S` before the `scan[N]`",
            (steps.run.span, "the sub-steps"),
        )
    return update


def _emits(body: Body, rule: Rule, final: int, axes: tuple[str, str]) -> tuple[Emit, ...]:
    return tuple(emit(body, symbol, final, axes) for symbol in rule.results)


def _output_axis(body: Body, rule: Rule) -> str | None:
    """The axis that the first output contracts."""
    for symbol in rule.results:
        value = body.values[symbol]
        for term in value.terms if isinstance(value, Linear) else ():
            if isinstance(term.atom, Contraction):
                return term.atom.axis
    return None
