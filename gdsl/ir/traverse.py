"""The generic walks over expressions. Nothing here knows what an expression means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import assert_never

from attrs import evolve

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
from gdsl.ir.node import Symbol


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct subexpressions, in order."""
    match expr:
        case Ref() | Const() | Size() | Index():
            return ()
        case Apply(args=args):
            return args
        case Reduce(arg=arg) | Cast(arg=arg) | Rename(arg=arg) | Unpack(arg=arg):
            return (arg,)
        case Shift(window=window, value=value):
            return (window, value)
        case _:
            assert_never(expr)


def with_children(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """Return the same node over other subexpressions of the same types."""
    match expr:
        case Ref() | Const() | Size() | Index():
            return expr
        case Apply():
            return evolve(expr, args=new)
        case Reduce() | Cast() | Rename() | Unpack():
            return evolve(expr, arg=new[0])
        case Shift():
            return evolve(expr, window=new[0], value=new[1])
        case _:
            assert_never(expr)


def rewrite(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """Apply `rule` to every node, children first. The rule must keep the node's type."""
    old = children(expr)
    new = tuple(rewrite(child, rule) for child in old)
    same = all(a is b for a, b in zip(old, new, strict=True))
    return rule(expr if same else with_children(expr, new))


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield the expression and everything below it, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def symbols(expr: Expr) -> Iterator[Symbol]:
    """Yield the names an expression mentions, with repetitions."""
    return (node.symbol for node in walk(expr) if isinstance(node, Ref))


def inline(expr: Expr, values: Mapping[Symbol, Expr]) -> Expr:
    """Put expressions in place of names, and again inside what was put there."""

    def replace(node: Expr) -> Expr:
        if isinstance(node, Ref) and node.symbol in values:
            return inline(values[node.symbol], values)
        return node

    return rewrite(expr, replace)
