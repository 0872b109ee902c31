"""Which names a value comes from, through the definitions of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Kernel, Let, Run
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import symbols

Dependencies = Mapping[Symbol, tuple[Expr, ...]]


def dependencies(kernel: Kernel) -> Dependencies:
    """Return, for each name a kernel defines, the expressions it is computed from.

    What a run returns comes from its arguments; the states are left out.
    """
    found: dict[Symbol, tuple[Expr, ...]] = {}
    for statement in kernel.body:
        match statement:
            case Let(target=target, value=value):
                found[target] = (value,)
            case Run(args=args):
                found |= dict.fromkeys((*statement.results, statement.state_out), args)
    return found


def sources(exprs: Iterable[Expr], known: Dependencies) -> frozenset[Symbol]:
    """Return every name that the expressions depend on, directly or not."""
    found: set[Symbol] = set()
    waiting = [name for expr in exprs for name in symbols(expr)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += (inner for expr in known.get(name, ()) for inner in symbols(expr))
    return frozenset(found)
