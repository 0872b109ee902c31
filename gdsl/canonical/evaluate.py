"""A run evaluated token by token from its canonical form, for comparison with the interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import numpy as np
from attrs import frozen

from gdsl.canonical.form import Canonical, Decay, Delta, Emit, ReadWhen, Window
from gdsl.canonical.values import (
    Named,
    Scope,
    Values,
    apply,
    contract,
    evaluate,
    shift,
    union,
)
from gdsl.ir.kernel import Run
from gdsl.ir.node import Symbol


@frozen(eq=False)
class RunInput:
    """What a run is given: its evaluated arguments by parameter, its state, and its limits.

    `valid` holds the number of live tokens per row (None: all); `every` the distance of
    checkpoints (0: none).
    """

    arguments: Mapping[Symbol, Named]
    state: Named
    valid: Named | None = None
    every: int = 0


@frozen(eq=False)
class RunOutput:
    """What a run returns. `results` follow the rule's results; all carry the scan axis, if any.

    `states` has a leading axis of checkpoints, which has no name yet.
    """

    results: tuple[Named, ...]
    state: Named
    states: tuple[Named, ...] = ()


def run_tokens(run: Run, form: Canonical, given: RunInput, scope: Scope) -> RunOutput:
    """Return outputs and final state of a step or scan, evaluated in `scope.dtype`.

    Tokens past `valid` leave the state alone and have outputs exactly 0.
    """
    if run.axis is None:
        state, outputs = token(form, given.arguments, given.state, scope)
        return RunOutput(outputs, state)
    axis = run.axis
    state, rows, states = given.state, [], []
    for t in range(scope.sizes[axis]):
        now = {symbol: value.at(axis, t) for symbol, value in given.arguments.items()}
        updated, outputs = token(form, now, state, scope)
        live = alive(given.valid, t)
        state = select(live, updated, state)
        rows.append(tuple(zeroed(live, output) for output in outputs))
        if given.every and (t + 1) % given.every == 0:
            states.append(zeroed(live, state))
    results = tuple(stacked(axis, [row[i] for row in rows]) for i in range(len(run.rule.results)))
    return RunOutput(results, state, tuple(states))


def token(
    form: Canonical, values: Values, state: Named, scope: Scope
) -> tuple[Named, tuple[Named, ...]]:
    """Return the state after one token, and the token's outputs."""
    match form:
        case Delta():
            return _delta(form, values, state, scope)
        case Window():
            return _window(form, values, state, scope)
        case _:
            assert_never(form)


def alive(valid: Named | None, t: int) -> Named | None:
    """Return where token t is live, None for everywhere."""
    return None if valid is None else Named(valid.axes, valid.data > t)


def select(live: Named | None, new: Named, old: Named) -> Named:
    """Return `new` where live and `old` elsewhere; never a product, NaN must not spread."""
    if live is None:
        return new
    axes = new.axes
    chosen = np.where(live.over(axes), new.data, old.over(axes))
    return Named(axes, chosen)


def zeroed(live: Named | None, value: Named) -> Named:
    """Return the value where live and exactly 0 elsewhere."""
    return select(live, value, Named((), np.zeros((), value.data.dtype)))


def stacked(axis: str, parts: list[Named]) -> Named:
    """Return values of successive tokens side by side along the scan axis."""
    axes = union(parts)
    return Named((axis, *axes), np.stack([part.over(axes) for part in parts]))


def _delta(
    form: Delta, values: Values, old: Named, scope: Scope
) -> tuple[Named, tuple[Named, ...]]:
    decayed = _decayed(form.decay, values, old, scope)
    state = decayed
    if form.substeps is None:
        state = _written(form, values, decayed, old, scope)
    else:
        for n in range(scope.sizes[form.substeps]):
            step = {symbol: value.at(form.substeps, n) for symbol, value in values.items()}
            state = _written(form, step, state, state, scope)
    return state, tuple(_emitted(emit, values, old, state, scope) for emit in form.emits)


def _decayed(decay: Decay, values: Values, state: Named, scope: Scope) -> Named:
    if decay.factor is None:
        return state
    return _aligned(apply("mul", [state, evaluate(decay.factor, values, scope)], scope), state)


def _written(form: Delta, values: Values, decayed: Named, old: Named, scope: Scope) -> Named:
    state = decayed
    if form.write is not None:
        parts = [evaluate(part, values, scope) for part in (form.write.key, form.write.value)]
        state = apply("add", [state, apply("mul", parts, scope)], scope)
    if form.read is not None and form.erase is not None:
        seen = decayed if form.read.when is ReadWhen.POST else old
        r = contract(form.key_axis, evaluate(form.read.vector, values, scope), seen, scope)
        erased = apply("mul", [evaluate(form.erase, values, scope), r], scope)
        state = apply("sub", [state, erased], scope)
    return _aligned(state, decayed)


def _emitted(emit: Emit, values: Values, old: Named, new: Named, scope: Scope) -> Named:
    parts = []
    if emit.query is not None:
        query = evaluate(emit.query, values, scope)
        parts.append(contract(emit.axis, query, new if emit.after else old, scope))
    if emit.skip is not None:
        parts.append(evaluate(emit.skip, values, scope))
    return parts[0] if len(parts) == 1 else apply("add", parts, scope)


def _window(
    form: Window, values: Values, old: Named, scope: Scope
) -> tuple[Named, tuple[Named, ...]]:
    window = _aligned(shift(form.axis, old, evaluate(form.value, values, scope)), old)
    outputs = []
    for emit in form.emits:
        parts = []
        if emit.taps is not None:
            seen = window if emit.after else old
            parts.append(contract(form.axis, evaluate(emit.taps, values, scope), seen, scope))
        if emit.skip is not None:
            parts.append(evaluate(emit.skip, values, scope))
        outputs.append(parts[0] if len(parts) == 1 else apply("add", parts, scope))
    return window, tuple(outputs)


def _aligned(value: Named, like: Named) -> Named:
    """The value with the axes of the state it replaces, in the same order and full size."""
    data = np.broadcast_to(value.over(like.axes), like.data.shape)
    return Named(like.axes, data)
