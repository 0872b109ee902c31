"""Questions about statements and expressions that cutting a kernel asks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backends.nki.refusal import not_rounded
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Apply, Cast, Expr, Ref
from gdsl.ir.kernel import Let, Output, Run, State, Statement
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import symbols


def mentioned(items: Iterable[Statement | Output]) -> set[Symbol]:
    """Every name in statements and outputs."""
    found: set[Symbol] = set()
    for item in items:
        for expr in item.args if isinstance(item, Run) else (item.value,):
            found |= set(symbols(expr))
    return found


def addresses(body: Sequence[Statement], states: Sequence[State]) -> set[Symbol]:
    """The inputs that say where the state of a run lies, and where its sequences end."""
    run = next(statement for statement in body if isinstance(statement, Run))
    state = next(s for s in states if s.symbol == run.state)
    slots, accepted = state.slots, state.accepted
    found = [state.unless, run.valid_len, accepted.symbol if accepted else None]
    found += [slots.read, slots.write] if slots else []
    return {symbol for symbol in found if symbol is not None}


def needed(body: Sequence[Statement]) -> set[Symbol]:
    """The names that the run needs, through definitions."""
    run = next(statement for statement in body if isinstance(statement, Run))
    return behind(body, mentioned((run,)))


def behind(body: Sequence[Statement], names: set[Symbol]) -> set[Symbol]:
    """The names, and those that their definitions mention."""
    found = set(names)
    for statement in reversed(body):
        if isinstance(statement, Let) and statement.target in found:
            found |= mentioned((statement,))
    return found


def silu_of(expr: Expr) -> Ref | None:
    """The name x where an expression is x * sigmoid(x)."""
    match expr:
        case Apply(operator="mul", args=(Ref() as x, Apply(operator="sigmoid", args=(y,)))) if (
            x == y
        ):
            return x
        case Apply(operator="mul", args=(Apply(operator="sigmoid", args=(y,)), Ref() as x)) if (
            x == y
        ):
            return x
    return None


def rounding(expr: Expr) -> tuple[Dtype | None, Expr]:
    """The dtype an expression is rounded to, and what is rounded; CompileError for 8 bits."""
    if isinstance(expr, Cast):
        if expr.dtype.only_read:
            raise not_rounded(expr.dtype, expr.span)
        return expr.dtype, expr.arg
    return None, expr
