"""Executing statements in order; running a rule once (`step`) or token by token (`scan`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import numpy as np
from attrs import evolve, frozen

from backends.interpreter.axes import Array, Value, aligned, at
from backends.interpreter.evaluate import Setting, evaluate
from backends.interpreter.live import select, tokens_within
from gdsl.ir.kernel import Let, Rule, Run, Statement
from gdsl.ir.node import Symbol
from gdsl.ir.types import Type
from gdsl.runner import Event, RunOptions
from gdsl.source import Span

Names = dict[Symbol, Value]


@frozen(eq=False)
class Execution:
    """What surrounds statements: sizes and arithmetic, trace-time parameters, who watches."""

    setting: Setting
    params: Mapping[Symbol, float | int | bool]
    options: RunOptions
    where: tuple[tuple[str, int], ...] = ()

    def tell(self, name: str, symbol: Symbol | None, value: Value, span: Span | None) -> None:
        """Report a defined name to the hook, which may raise. Outputs have no symbol."""
        hook = self.options.hook
        if hook is not None:
            hook(Event(name, symbol, value.axes, value.array, self.where, span))

    def inside(self, axis: str, index: int) -> Execution:
        """Return the same surroundings at one token of a scan."""
        if self.options.hook is None:
            return self
        return evolve(self, where=(*self.where, (axis, index)))


def execute(statements: tuple[Statement, ...], names: Names, execution: Execution) -> None:
    """Execute statements in order; each defines new names and changes none."""
    for statement in statements:
        match statement:
            case Let(target, value):
                names[target] = evaluate(value, names, execution.setting)
                execution.tell(target.name, target, names[target], statement.span)
            case Run():
                _run(statement, names, execution)
            case _:
                assert_never(statement)


def _run(run: Run, names: Names, execution: Execution) -> None:
    args = [evaluate(arg, names, execution.setting) for arg in run.args]
    if run.axis is None:
        results, state = _once(run.rule, args, names[run.state], execution)
        defined = dict(zip(run.results, results, strict=True))
    else:
        scan = _Scan(run, run.axis, args, names, execution)
        state = scan.final(names[run.state])
        defined = scan.results()
    defined[run.state_out] = state
    names.update(defined)
    for symbol, value in defined.items():
        execution.tell(symbol.name, symbol, value, run.span)


def _once(
    rule: Rule, args: list[Value], state: Value, execution: Execution
) -> tuple[list[Value], Value]:
    """Apply a rule to one token; a rule sees its parameters and its state, nothing else."""
    local: Names = dict(zip(rule.params, args, strict=True))
    local[rule.state] = state
    execute(rule.body, local, execution)
    return [local[symbol] for symbol in rule.results], local[rule.state_out]


class _Scan:
    """A rule over the tokens of an axis: its results token by token, and states on the way.

    A token at or past a row's `valid_len` is the identity: the row keeps its state, its results and
    its entry among `states` stay exactly 0.
    """

    def __init__(
        self, run: Run, axis: str, args: list[Value], names: Names, execution: Execution
    ) -> None:
        sizes = execution.setting.sizes
        self.run, self.axis, self.args, self.execution = run, axis, args, execution
        self.tokens = sizes[axis]
        self.valid = (
            tokens_within(names[run.valid_len], axis, sizes) if run.valid_len is not None else None
        )
        self.every = _every(run, execution.params)
        self.blocks = self.tokens // self.every if self.every else 0
        self.collected = [self._room(self.tokens, kind) for kind in run.rule.result_types]
        self.states = self._room(self.blocks, run.rule.state_type)

    def _room(self, length: int, kind: Type) -> Array:
        setting = self.execution.setting
        shape = (length, *(setting.sizes[axis] for axis in kind.axes))
        return np.zeros(shape, setting.arithmetic.compute)

    def final(self, state: Value) -> Value:
        """Run all tokens and return the state after the last one."""
        rule, state_axes = self.run.rule, self.run.rule.state_type.axes
        for t in range(self.tokens):
            token = [at(arg, self.axis, t) for arg in self.args]
            results, after = _once(rule, token, state, self.execution.inside(self.axis, t))
            alive = None if self.valid is None else at(self.valid, self.axis, t)
            state = select(alive, after, state, state_axes)
            for room, value, kind in zip(self.collected, results, rule.result_types, strict=True):
                _put(room[t], value, kind.axes, alive)
            if self.every and (t + 1) % self.every == 0:
                _put(self.states[(t + 1) // self.every - 1], state, state_axes, alive)
            self._progress(t + 1)
        return state

    def _progress(self, done: int) -> None:
        if self.execution.options.progress is not None and not self.execution.where:
            self.execution.options.progress(done, self.tokens)

    def results(self) -> Names:
        """Return the results along the scan axis, and the states along theirs."""
        defined = {
            symbol: Value((self.axis, *kind.axes), room)
            for symbol, kind, room in zip(
                self.run.results, self.run.rule.result_types, self.collected, strict=True
            )
        }
        if self.run.states is not None and self.run.states_axis is not None:
            axes = (self.run.states_axis, *self.run.rule.state_type.axes)
            defined[self.run.states] = Value(axes, self.states)
        return defined


def _every(run: Run, params: Mapping[Symbol, float | int | bool]) -> int:
    """Return after how many tokens a state is kept, 0 for never."""
    return int(params[run.every]) if isinstance(run.every, Symbol) else run.every or 0


def _put(room: Array, value: Value, axes: tuple[str, ...], alive: Value | None) -> None:
    """Store a token's value in its room, which is zero, where it is alive."""
    where = True if alive is None else aligned(alive, axes)
    np.copyto(room, aligned(value, axes), where=where)
