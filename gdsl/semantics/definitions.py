"""Functions and rules checked by themselves, once, before any call of them is looked at.

A function is checked for its names, since the axes of its arguments are known at calls only. A rule
is typed over its own axes, without and with the optional ones. What is found is reported at the
definition; calls of a broken definition stay silent.
"""

from __future__ import annotations

from collections.abc import Iterator

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.dims import Axis
from gdsl.ir.types import Type
from gdsl.semantics import rules
from gdsl.semantics.axes import AxisTable, unknown_axis
from gdsl.semantics.frame import Context
from gdsl.semantics.report import Reporter
from gdsl.semantics.scope import Definition, unknown_callable
from gdsl.source import Span
from gdsl.suggest import did_you_mean
from gdsl.syntax import ast
from gdsl.syntax.walk import axis_names, children


def is_sound(definition: Definition, reporter: Reporter) -> bool:
    """Return whether a definition is right in itself; reports what is not, the first time."""
    if definition.sound is None:
        # A definition that uses itself meets this answer; the recursion is reported where it is.
        definition.sound = True
        match definition.node:
            case ast.Fn():
                definition.sound = _check_fn(definition, definition.node, reporter)
            case ast.Rule():
                definition.sound = _check_rule(definition, definition.node, reporter)
    return definition.sound


def _check_fn(definition: Definition, fn: ast.Fn, reporter: Reporter) -> bool:
    names = _names_apart((*fn.axes, *(param.name for param in fn.params)), reporter)
    checker = _FnChecker(definition, fn, reporter)
    for param in fn.params:
        if param.default is not None:
            checker.check(param.default, frozenset())
    checker.check(fn.body, frozenset(param.name.text for param in fn.params))
    used = {node.name for node in _walk(fn.body) if isinstance(node, ast.NameUse)}
    for param in fn.params:
        if param.name.text not in used:
            reporter.error(
                "E0204",
                f"function `{fn.name.text}` does not use its argument `{param.name.text}`",
                param.name.span,
                label="never used in the body",
                help="use it, or remove it from the list",
            )
            checker.fits = False
    return names and checker.fits


def _walk(node: ast.Expr) -> Iterator[ast.Expr]:
    yield node
    for child in children(node):
        yield from _walk(child)


class _FnChecker:
    def __init__(self, definition: Definition, fn: ast.Fn, reporter: Reporter) -> None:
        self.definition, self.fn, self.reporter = definition, fn, reporter
        self.axes = {axis.text for axis in fn.axes}
        self.fits = True

    def check(self, root: ast.Expr, values: frozenset[str]) -> None:
        """Check every name in an expression."""
        for node in _walk(root):
            for axis in axis_names(node):
                if axis.text not in self.axes:
                    self._axis(axis)
            match node:
                case ast.NameUse(name=name) if name not in values and name not in self.axes:
                    self._name(node, values)
                case ast.Call():
                    self._call(node)
                case ast.Unpack():
                    self.reporter.error(
                        "E0313",
                        "`unpack` gives several values and cannot stand inside an expression",
                        node.span,
                        help="name its fields in the kernel: `q, k, v = unpack[C](x)`",
                    )
                    self.fits = False
                case _:
                    pass

    def _axis(self, axis: ast.Name) -> None:
        self.fits = False
        if self.axes:
            unknown_axis(axis.text, axis.span, self.axes, self.reporter)
            return
        name = self.fn.name.text
        self.reporter.error(
            "E0201",
            f"function `{name}` uses the axis `{axis.text}`, which it does not name",
            axis.span,
            label="not an axis of the function",
            help=f"name it in brackets: `fn {name}[{axis.text}](...)`",
        )

    def _name(self, node: ast.NameUse, values: frozenset[str]) -> None:
        self.fits = False
        known = sorted(values | self.axes)
        self.reporter.error(
            "E0201",
            f"unknown name `{node.name}`{did_you_mean(node.name, known)}",
            node.span,
            label=f"not an argument of `{self.fn.name.text}`",
            help="a function sees its arguments and axes only; pass the value as an argument",
        )

    def _call(self, node: ast.Call) -> None:
        called = self.definition.scope.find(node.function.text)
        if called is None:
            self.fits = False
            unknown_callable(self.reporter, self.definition.scope, node.function, ast.Fn)
        elif isinstance(called.node, ast.Fn):
            chain = _path_to(called, self.definition, (self.definition,))
            if chain is not None:
                self.fits = False
                if min(chain, key=_place) is not self.definition:
                    return
                names = " -> ".join(item.name for item in (*chain, self.definition))
                self.reporter.error(
                    "E0206",
                    f"function `{self.fn.name.text}` calls itself",
                    node.function.span,
                    notes=(f"the chain is {names}",),
                    help="a function is one formula; repetition over tokens is `scan`",
                )
            elif not is_sound(called, self.reporter):
                self.fits = False


def _place(definition: Definition) -> tuple[str, int]:
    """The first of a chain of functions tells of it."""
    span = definition.node.name.span
    return (span.source.name, span.start)


def _path_to(
    start: Definition, goal: Definition, path: tuple[Definition, ...]
) -> tuple[Definition, ...] | None:
    """Return the chain of calls from `goal` through `start` back to `goal`, if there is one."""
    if start is goal:
        return path
    if start in path or not isinstance(start.node, ast.Fn):
        return None
    for node in _walk(start.node.body):
        called = start.scope.find(node.function.text) if isinstance(node, ast.Call) else None
        found = called and _path_to(called, goal, (*path, start))
        if found:
            return found
    return None


def _check_rule(definition: Definition, rule: ast.Rule, reporter: Reporter) -> bool:
    if not _head_fits(rule, reporter):
        return False
    fits = True
    variants = (False, True) if any(a.optional for p in rule.params for a in p.axes) else (False,)
    for with_optional in variants:
        table = AxisTable()
        for axis in rule.axes:
            table.atomic[axis.text] = Axis(axis.text)
            table.spans[axis.text] = axis.span
            table.rank[axis.text] = len(table.rank)
        context = Context(table, reporter)
        types = {
            param.name.text: Type(
                table.ordered(
                    axis.name for axis in param.axes if with_optional or not axis.optional
                )
            )
            for param in rule.params
        }
        axes = {axis.text: axis.text for axis in rule.axes}
        fits &= rules.instantiate(definition, axes, types, context) is not None
        if not fits:
            break
    return fits


def _head_fits(rule: ast.Rule, reporter: Reporter) -> bool:
    """The head of a rule: names apart, axes declared, exactly one state."""
    fits = _names_apart((*rule.axes, *(param.name for param in rule.params)), reporter)
    declared = {axis.text for axis in rule.axes}
    listed = [(axis.name, axis.span) for param in rule.params for axis in param.axes]
    listed += [(axis.text, axis.span) for result in rule.results for axis in result.axes]
    for name, span in listed:
        if name not in declared:
            fits = False
            unknown_axis(name, span, declared, reporter)
    states = [param for param in rule.params if param.is_state]
    if len(states) != 1:
        fits = False
        reporter.error(
            "E0410",
            f"rule `{rule.name.text}` has {len(states) or 'no'} "
            f"state{'' if len(states) < 2 else 's'}; it needs exactly one",
            (states[1] if states else rule.name).span,
            labels=(Label(states[0].span, "the first one"),) if states else (),
            help=None if states else "mark the argument it updates: `state S[K, V]`",
        )
    for state in states[:1]:
        optional = [axis for axis in state.axes if axis.optional]
        if optional:
            fits = False
            reporter.error(
                "E0410",
                f"the state carries `{optional[0].name}` always or never",
                optional[0].span,
                help=f"write `{optional[0].name}` without `?`",
            )
    return fits


def _names_apart(names: tuple[ast.Name, ...], reporter: Reporter) -> bool:
    """Axes and arguments share one set of names."""
    seen: dict[str, Span] = {}
    firsts = [
        reporter.is_first(seen, name.text, name.span, f"`{name.text}` stands twice in this list")
        for name in names
    ]
    return all(firsts)
