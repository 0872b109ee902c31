"""Abstract evaluation of a rule's body: every value as a sum of terms in versions of the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from attrs import define, evolve, field, frozen

from gdsl.canonical.build import Builder
from gdsl.canonical.contract import StateAxes, contracted
from gdsl.canonical.refusal import DOES_NOT_FIT, NOT_AFFINE, SUBSTEPS, refuse
from gdsl.canonical.substitute import retyped
from gdsl.canonical.terms import (
    Linear,
    Term,
    Value,
    Version,
    added,
    times,
)
from gdsl.ir.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Reduce,
    Ref,
    Rename,
    Shift,
    Size,
    Unpack,
)
from gdsl.ir.kernel import Let, Rule, Run, Statement
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import children
from gdsl.source import Span


@frozen
class Incoming:
    """Version 0: the state the rule is given."""


@frozen
class Rebound:
    """A version defined as a sum of terms in earlier ones."""

    terms: tuple[Term, ...]
    span: Span | None


@frozen
class Shifted:
    """A version that appended `value` to the window `version`."""

    axis: str
    version: int
    value: Expr
    span: Span | None


@frozen
class Substeps:
    """A version after ordered sub-steps of an inner rule, given these arguments."""

    run: Run
    arguments: tuple[Expr, ...]
    version: int


Definition = Incoming | Rebound | Shifted | Substeps


@define
class Body:
    """What a rule's body does: the versions of its state, and the value of every name."""

    builder: Builder
    state: StateAxes
    definitions: list[Definition] = field(factory=lambda: [Incoming()])
    values: dict[Symbol, Value] = field(factory=dict)

    def run(self, rule: Rule, arguments: Mapping[Symbol, Value], version: int) -> None:
        """Evaluate a rule with its parameters bound and its state at a version."""
        self.values.update(arguments)
        self.values[rule.state] = _at(version)
        for statement in rule.body:
            self._statement(statement)

    def final_version(self, rule: Rule) -> int:
        """The version that the rule leaves behind."""
        value = self.values[rule.state_out]
        if isinstance(value, Linear) and (version := _is_version(value)) is not None:
            return version
        return refuse(
            DOES_NOT_FIT,
            f"the new state of rule `{rule.name}` is not an update of the old one",
            rule.span,
            "the state at its end does not come from the state at its start",
            "rebind the state from its old value: `S = decay * S + k * v`",
        )

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Let(target=target, value=expr):
                self.values[target] = self._named(self._value(expr), expr.span)
            case Run(axis=None):
                self._step(statement)
            case Run():
                self._substeps(statement)
            case _:
                assert_never(statement)

    def _named(self, value: Value, span: Span | None) -> Value:
        """A value that contains a state becomes a new version, unless it just renames one."""
        if not isinstance(value, Linear) or _is_version(value) is not None:
            return value
        if not any(isinstance(term.atom, Version) for term in value.terms):
            return value
        return self._define(Rebound(value.terms, span))

    def _define(self, definition: Definition) -> Linear:
        self.definitions.append(definition)
        return _at(len(self.definitions) - 1)

    def _step(self, run: Run) -> None:
        arguments = [self._value(arg) for arg in run.args]
        version = self._state_of(run)
        self.run(run.rule, dict(zip(run.rule.params, arguments, strict=True)), version)
        for result, inner in zip(run.results, run.rule.results, strict=True):
            self.values[result] = self.values[inner]
        self.values[run.state_out] = self.values[run.rule.state_out]

    def _substeps(self, run: Run) -> None:
        arguments: list[Expr] = []
        for arg in run.args:
            value = self._value(arg)
            if isinstance(value, Linear):
                refuse(
                    SUBSTEPS,
                    "an argument of sub-steps depends on the state",
                    arg.span,
                    "this would read the state before the sub-steps",
                    "read the state inside the inner rule",
                )
            arguments.append(value)
        if run.results or run.valid_len or run.every is not None:
            refuse(
                SUBSTEPS,
                "sub-steps return only their state",
                run.span,
                "outputs, `<` and `every` have no meaning here",
                "use a rule without `->` and a plain `scan[N]`",
            )
        version = self._state_of(run)
        self.values[run.state_out] = self._define(Substeps(run, tuple(arguments), version))

    def _state_of(self, run: Run) -> int:
        value = self.values[run.state]
        version = _is_version(value) if isinstance(value, Linear) else None
        if version is None:
            refuse(
                SUBSTEPS,
                "an inner rule runs on something that is not the state",
                run.span,
                "expected the state of this rule",
                "pass the state symbol itself",
            )
        return version

    def _value(self, expr: Expr) -> Value:
        match expr:
            case Ref(symbol=symbol):
                value = self.values.get(symbol, expr)
                # A term is underlined where it is used, not where its name was defined.
                return value if isinstance(value, Linear) else evolve(value, span=expr.span)
            case Const() | Size() | Index():
                return expr
            case Apply(operator=operator, args=args):
                return self._apply(expr, operator, [self._value(arg) for arg in args])
            case Reduce(operator=operator, axes=axes, arg=arg):
                value = self._value(arg)
                if not isinstance(value, Linear):
                    return retyped(expr, (value,), self.builder)
                return self._reduce(expr, operator, axes, value)
            case Shift(axis=axis, window=window, value=column):
                return self._shift(expr, axis, self._value(window), self._value(column))
            case Cast() | Rename() | Unpack():
                (inner,) = (self._value(child) for child in children(expr))
                if isinstance(inner, Linear):
                    return _not_affine(expr, "this is applied to the state")
                return retyped(expr, (inner,), self.builder)
            case _:
                assert_never(expr)

    def _apply(self, expr: Expr, operator: str, args: list[Value]) -> Value:
        plain = [arg for arg in args if not isinstance(arg, Linear)]
        if len(plain) == len(args):
            return retyped(expr, tuple(plain), self.builder)
        match operator, args:
            case (("add" | "sub"), [left, right]):
                return added(left, right, operator == "sub")
            case "neg", [Linear() as arg]:
                return Linear(tuple(evolve(t, negative=not t.negative) for t in arg.terms))
            case "mul", [Linear() as linear, factor] if not isinstance(factor, Linear):
                return times(linear, factor, expr.span)
            case "mul", [factor, Linear() as linear] if not isinstance(factor, Linear):
                return times(linear, factor, expr.span)
            case "div", [Linear() as linear, divisor] if not isinstance(divisor, Linear):
                inverse = self.builder.apply(
                    "div", self.builder.number(1.0), divisor, span=expr.span
                )
                return times(linear, inverse, expr.span)
            case _:
                return _not_affine(expr, f"`{operator}` of the state is not linear in it")

    def _reduce(self, expr: Expr, operator: str, axes: tuple[str, ...], value: Linear) -> Value:
        if operator not in ("sum", "mean"):
            return _not_affine(expr, f"`{operator}` of the state is not linear in it")
        result: Value = value
        for axis in axes:
            result = contracted(result, axis, self.state, self.builder, expr.span)
        if operator == "sum" or not isinstance(result, Linear):
            return result
        sizes = self.builder.product([self.builder.size(axis) for axis in axes])
        inverse = self.builder.apply("div", self.builder.number(1.0), sizes)
        return times(result, inverse, expr.span)

    def _shift(self, expr: Expr, axis: str, window: Value, column: Value) -> Value:
        if not isinstance(window, Linear) and not isinstance(column, Linear):
            return retyped(expr, (window, column), self.builder)
        version = _is_version(window) if isinstance(window, Linear) else None
        if version is None or isinstance(column, Linear):
            return refuse(
                DOES_NOT_FIT,
                "`shift` here is not a sliding window over a state",
                expr.span,
                "expected the window itself and a new column without the state in it",
                "write `win = shift[W](win, x)`",
            )
        return self._define(Shifted(axis, version, column, expr.span))


def _at(version: int) -> Linear:
    return Linear((Term(False, (), Version(version), None),))


def _is_version(value: Linear) -> int | None:
    match value.terms:
        case (Term(negative=False, factors=(), atom=Version(index=index)),):
            return index
        case _:
            return None


def _not_affine(expr: Expr, label: str) -> Value:
    return refuse(
        NOT_AFFINE,
        "the update is not affine in the state",
        expr.span,
        label,
        "keep the state inside sums, products with state-free factors and `sum[K](...)`",
    )
