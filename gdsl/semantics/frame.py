"""Names and their meaning while a body is read: a kernel, one call of a rule, or of a function."""

from __future__ import annotations

from enum import Enum
from itertools import count, pairwise

from attrs import define, field, frozen

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr, Ref
from gdsl.ir.kernel import Let, Statement
from gdsl.ir.node import Symbol
from gdsl.ir.types import DtypeVar, Type
from gdsl.semantics.axes import AxisTable
from gdsl.semantics.report import Reporter
from gdsl.semantics.scope import Definition, Scope
from gdsl.source import Span

MOST_EXPANSIONS = 500
"""Calls of functions and rules in one kernel; those that call others can multiply them."""


class Kind(Enum):
    """What a name stands for; the value is how messages call it."""

    INPUT = "input"
    PARAM = "param"
    VALUE = "value"
    STATE = "state"
    ARGUMENT = "argument"
    DTYPE = "dtype"


@define(eq=False)
class StateCell:
    """A state while statements run: its type, its latest value, and whether it was written."""

    name: str
    type: Type
    latest: Symbol
    span: Span
    written: bool = False


@define(eq=False)
class Binding:
    """A name and its value. `value` None: its definition failed and was reported."""

    name: str
    kind: Kind
    span: Span
    value: Expr | None
    cell: StateCell | None = None
    used: bool = False
    unusable: str = ""
    """Why the name cannot be used, when it cannot."""
    stored_as: Dtype | DtypeVar | None = None
    """The dtype a state (or its states on the way) was declared to be stored in."""


@define
class Context:
    """What all bodies of one kernel share."""

    axes: AxisTable
    reporter: Reporter
    _uids: count[int] = field(factory=lambda: count(1))
    state_arguments: dict[str, str] = field(factory=dict)
    """Argument name -> the state that starts from it; such a name is no value."""
    expansions: int = 0
    """Functions and rules expanded so far."""

    def symbol(self, name: str) -> Symbol:
        """Return a new symbol."""
        return Symbol(name, next(self._uids))


@frozen
class Expansion:
    """One function call around the body being read."""

    definition: Definition
    span: Span


@define
class Frame:
    """One body. `axes` maps the axis names valid here to axes of the kernel."""

    context: Context
    scope: Scope
    axes: dict[str, str]
    bindings: dict[str, Binding] = field(factory=dict)
    statements: list[Statement] | None = None
    """Where new values go; None where only one expression may stand (`assume`)."""
    expansions: tuple[Expansion, ...] = ()
    caller: Span | None = None
    """The run that instantiates this rule body, shown with errors in it."""
    rules: tuple[Definition, ...] = ()
    """The rules whose bodies are being read, outermost first."""

    def place(self, span: Span) -> Span:
        """Return where to point for a piece of this body: the outermost function call, if any."""
        return self.expansions[0].span if self.expansions else span

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        label: str = "",
        labels: tuple[Label, ...] = (),
        notes: tuple[str, ...] = (),
        help: str | None = None,
    ) -> None:
        """Report a problem in this body; inside functions the whole chain of calls is shown."""
        if self.expansions:
            chain = [
                Label(inner.span, f"called by `{outer.definition.name}` here")
                for outer, inner in pairwise(self.expansions)
            ]
            inside = self.expansions[-1].definition.name
            chain.append(Label(span, label or f"in the body of `{inside}`"))
            labels = (*chain, *labels)
            label = f"in this call of `{self.expansions[0].definition.name}`"
        if self.caller is not None:
            labels = (*labels, Label(self.caller, "in this run of the rule"))
        self.context.reporter.error(
            code, message, self.place(span), label=label, labels=labels, notes=notes, help=help
        )

    def define(self, binding: Binding) -> bool:
        """Enter a name; a name that is taken is reported and the new meaning dropped."""
        earlier = self.bindings.get(binding.name)
        # A kernel's composite axes take names too; a rule sees its own axes only.
        is_axis = binding.name in self.axes or not self.rules
        axis = self.context.axes.spans.get(binding.name) if is_axis else None
        taken = earlier.span if earlier is not None else axis
        if taken is None:
            self.bindings[binding.name] = binding
            return True
        what = "an axis" if earlier is None else f"{_article(earlier.kind.value)}"
        self.context.reporter.error(
            "E0202",
            f"`{binding.name}` is already {what}",
            binding.span,
            label="assigned again",
            labels=(Label(taken, f"`{binding.name}` is declared here"),),
            notes=("a name is assigned once; only a state is rebound",),
            help="choose another name",
        )
        return False

    def may_expand(self, span: Span) -> bool:
        """Count one expansion; False, and reported once, when they have become too many."""
        self.context.expansions += 1
        if self.context.expansions == MOST_EXPANSIONS + 1:
            self.error(
                "E0107",
                f"more than {MOST_EXPANSIONS} calls of functions and rules are expanded here",
                span,
                help="give a repeated part a name of its own and use that name",
            )
        return self.context.expansions <= MOST_EXPANSIONS

    def let(self, name: str, value: Expr) -> Expr:
        """Add `name = value` to the body and return the reference; without a body, the value."""
        if self.statements is None:
            return value
        symbol = self.context.symbol(name)
        self.statements.append(Let(symbol, value, span=value.span))
        return Ref(symbol, value.type, span=value.span)


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
