"""What each value that enters a recurrence is for, found by data flow, never by name.

A rule's parameters are read off its body: what multiplies the state is a decay, what it is
contracted with is a key (when the result goes back into the state) or a query, what is added to it
is made of keys, values and a beta. A kernel's roles are the expressions its runs put there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, assert_never, get_args

from attrs import frozen

from gdsl.ir.expr import Apply, Expr, Reduce, Ref
from gdsl.ir.kernel import Kernel, Let, Rule, Run
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import children, inline, symbols

Role = Literal["decay", "key", "query", "value", "beta"]


@frozen
class Roles:
    """The expressions over inputs, states and params that play each role in one run."""

    run: Run
    key_axis: str
    value_axis: str
    expressions: Mapping[Role, tuple[Expr, ...]]


def kernel_roles(kernel: Kernel) -> tuple[Roles, ...]:
    """Return the roles of every delta-rule run of the kernel, in body order.

    Arguments are written over inputs, states, params and the results of earlier runs. Runs of
    window rules (whose state has fewer than two axes of its own) are left out.
    """
    lets = {s.target: s.value for s in kernel.body if isinstance(s, Let)}
    found = []
    for statement in kernel.body:
        if isinstance(statement, Run):
            axes = _state_axes(statement.rule)
            if axes is not None:
                found.append(_roles_of(statement, axes, lets))
    return tuple(found)


def _roles_of(run: Run, axes: tuple[str, str], lets: Mapping[Symbol, Expr]) -> Roles:
    found: dict[Role, list[Expr]] = {role: [] for role in get_args(Role)}
    roles = rule_roles(run.rule)
    for param, arg in zip(run.rule.params, run.args, strict=True):
        for role in roles.get(param, ()):
            found[role].append(inline(arg, lets))
    return Roles(run, *axes, {role: tuple(exprs) for role, exprs in found.items()})


def rule_roles(rule: Rule) -> dict[Symbol, set[Role]]:
    """Return the roles of each parameter of a delta rule."""
    axes = _state_axes(rule)
    if axes is None:
        return {}
    return _RuleReader(rule, *axes).read()


def _state_axes(rule: Rule) -> tuple[str, str] | None:
    """The key and the value axis: the state's two own axes; the contracted one is the key."""
    own = [axis for axis in rule.axes if axis in rule.state_type.axes]
    if len(own) != 2:
        return None
    contracted = {axis for expr in _all_expressions(rule) for axis in _reduced_axes(expr)}
    key = next((axis for axis in own if axis in contracted), own[0])
    return key, next(axis for axis in own if axis != key)


def _all_expressions(rule: Rule) -> Iterator[Expr]:
    for statement in rule.body:
        match statement:
            case Let(value=value):
                yield value
            case Run(rule=inner):
                yield from _all_expressions(inner)
            case _:
                assert_never(statement)


def _reduced_axes(expr: Expr) -> Iterator[str]:
    if isinstance(expr, Reduce):
        yield from expr.axes
    for child in children(expr):
        yield from _reduced_axes(child)


class _RuleReader:
    def __init__(self, rule: Rule, key: str, value: str) -> None:
        self.rule, self.key, self.value = rule, key, value
        self.found: dict[Symbol, set[Role]] = {param: set() for param in rule.params}
        self.states: set[Symbol] = {rule.state}
        self.lets: dict[Symbol, Expr] = {}

    def read(self) -> dict[Symbol, set[Role]]:
        for statement in self.rule.body:
            match statement:
                case Let(target=target, value=value):
                    expr = inline(value, self.lets)
                    if self._is_state(expr):
                        self._update(expr)
                        self.states.add(target)
                    else:
                        self.lets[target] = expr
                case Run():
                    self._substeps(statement)
                case _:
                    assert_never(statement)
        for result in self.rule.results:
            self._readers(self.lets.get(result), "query")
        return self.found

    def _is_state(self, expr: Expr) -> bool:
        """Whether an expression is a new state: it holds the old one outside any contraction."""
        if isinstance(expr, Ref):
            return expr.symbol in self.states
        return not isinstance(expr, Reduce) and any(self._is_state(c) for c in children(expr))

    def _mentions_state(self, expr: Expr) -> bool:
        return any(symbol in self.states for symbol in symbols(expr))

    def _update(self, expr: Expr) -> None:
        """Read off `decay * S + key * value * beta` and the contractions inside."""
        self._readers(expr, "key")
        for term in _terms(expr):
            factors = tuple(_factors(term))
            if self._is_state(term):
                for factor in factors:
                    if not self._mentions_state(factor):
                        self._mark(symbols(factor), "decay")
            else:
                for factor in factors:
                    self._mark_write(factor)

    def _mark_write(self, expr: Expr) -> None:
        """Mark what an added term is made of by the axes it carries."""
        if isinstance(expr, Reduce) and self._mentions_state(expr):
            return
        if not isinstance(expr, Ref):
            for child in children(expr):
                self._mark_write(child)
            return
        axes = expr.type.axes
        both = self.key in axes and self.value in axes
        role: Role = "key" if self.key in axes else "value" if self.value in axes else "beta"
        if not both:
            self._mark((expr.symbol,), role)

    def _readers(self, expr: Expr | None, role: Role) -> None:
        """Mark the vectors the state is contracted with."""
        if expr is None:
            return
        if isinstance(expr, Reduce) and self.key in expr.axes and self._is_state(expr.arg):
            for factor in _factors(expr.arg):
                if not self._mentions_state(factor):
                    self._mark(symbols(factor), role)
        for child in children(expr):
            self._readers(child, role)

    def _substeps(self, run: Run) -> None:
        inner = rule_roles(run.rule)
        for param, arg in zip(run.rule.params, run.args, strict=True):
            for role in inner.get(param, ()):
                self._mark(symbols(inline(arg, self.lets)), role)
        self.states.add(run.state_out)

    def _mark(self, names: Iterable[Symbol], role: Role) -> None:
        for name in names:
            if name in self.found:
                self.found[name].add(role)


def _terms(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Apply(operator="add" | "sub", args=(left, right)):
            yield from _terms(left)
            yield from _terms(right)
        case Apply(operator="neg", args=(arg,)):
            yield from _terms(arg)
        case _:
            yield expr


def _factors(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Apply(operator="mul", args=(left, right)):
            yield from _factors(left)
            yield from _factors(right)
        case Apply(operator="neg", args=(arg,)):
            yield from _factors(arg)
        case _:
            yield expr
