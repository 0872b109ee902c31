"""Nodes of the syntax tree as one line of canonical text each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from gdsl.syntax import ast


def expression(node: ast.Expr | ast.Keyword) -> str:
    """Return an expression; parentheses are kept as written."""
    match node:
        case ast.Keyword():
            return f"{node.name.text} = {expression(node.value)}"
        case ast.Number():
            return node.text
        case ast.NameUse():
            return node.name
        case ast.Binary():
            return f"{expression(node.left)} {node.operator} {expression(node.right)}"
        case ast.Negate():
            return f"-{expression(node.operand)}"
        case ast.Group():
            return f"({expression(node.inner)})"
        case ast.Call():
            return f"{node.function.text}{brackets(node.axes)}({arguments(node.arguments)})"
        case ast.Builtin():
            return f"{node.function.text}({arguments(node.arguments)})"
        case ast.Reduction():
            return f"{node.function.text}{brackets(node.axes)}({expression(node.operand)})"
        case ast.Index():
            return f"index{brackets(node.axes)}()"
        case ast.Shift():
            inside = f"{expression(node.window)}, {expression(node.value)}"
            return f"shift{brackets(node.axes)}({inside})"
        case ast.Unpack():
            return f"unpack{brackets(node.axes)}({expression(node.operand)})"
        case ast.Rename():
            axes = f"{node.source.text} -> {node.target.text}"
            return f"rename[{axes}]({expression(node.operand)})"
        case ast.Cast():
            return f"{node.dtype.text}({expression(node.operand)})"
        case _:
            assert_never(node)


def names(nodes: Iterable[ast.Name]) -> str:
    """Return `a, b, c`."""
    return ", ".join(node.text for node in nodes)


def brackets(nodes: tuple[ast.Name, ...]) -> str:
    """Return `[A, B]`, or nothing for no names."""
    return f"[{names(nodes)}]" if nodes else ""


def arguments(nodes: tuple[ast.Expr | ast.Keyword, ...]) -> str:
    """Return `x, eps = 1e-5`."""
    return ", ".join(expression(node) for node in nodes)


def dimension(node: ast.Dim) -> str:
    """Return `B`, `1` or `(Hk G)`."""
    match node:
        case ast.AxisDim(name=name):
            return name
        case ast.NumberDim(value=value):
            return str(value)
        case ast.ProductDim(parts=parts):
            return f"({' '.join(dimension(part) for part in parts)})"
        case _:
            assert_never(node)


def tensor(node: ast.Tensor) -> str:
    """Return `f32[B, K]`."""
    dims = ", ".join(dimension(dim) for dim in node.dims)
    return f"{node.dtype.text}[{dims}]" if dims else node.dtype.text


def axis(node: ast.Axis | ast.Composite | ast.Packed) -> str:
    """Return one declaration of an `axes` line."""
    match node:
        case ast.Axis():
            facts = "".join(f" {_fact(fact)}" for fact in node.facts)
            return f"{node.name.text}{facts}"
        case ast.Composite():
            return f"{node.name.text} = {dimension(node.product)}"
        case ast.Packed():
            fields = " | ".join(f"{f.name.text}:{dimension(f.dim)}" for f in node.fields)
            return f"{node.name.text} = {fields}"
        case _:
            assert_never(node)


def _fact(node: ast.Fact) -> str:
    if node.kind == "at_most":
        return f"<= {node.value}"
    return f"% {node.value} == {node.remainder}"


def interval(node: ast.Interval) -> str:
    """Return `in (-inf, 0]`."""
    left, right = "(" if node.lo_open else "[", ")" if node.hi_open else "]"
    return f"in {left}{node.lo_text}, {node.hi_text}{right}"


def _clause(node: ast.Interval | ast.Default) -> str:
    if isinstance(node, ast.Interval):
        return interval(node)
    return f"or {node.value.text}"


def doc(node: ast.Doc | None) -> str:
    """Return a doc string behind a declaration, with the space before it."""
    return "" if node is None else f"  {node.quotes}{node.text}{node.quotes}"


def _state(node: ast.State) -> str:
    match node.initial:
        case ast.Argument(name=name):
            start = name.text
        case ast.Slots() as slots:
            ends = f"{slots.read.text} -> {slots.write.text}"
            start = f"{slots.name.text}[{slots.axis.text} at {ends}]"
        case ast.Accepted() as accepted:
            start = f"{accepted.name.text}[{accepted.axis.text} at {accepted.accepted.text}]"
        case _:
            assert_never(node.initial)
    clauses = "".join(f" {_state_clause(clause)}" for clause in node.clauses)
    return f"state {node.name.text}: {tensor(node.tensor)} = {start}{clauses}{doc(node.doc)}"


def _state_clause(node: ast.Inplace | ast.OrZeros | ast.Unless) -> str:
    match node:
        case ast.Inplace():
            return "inplace"
        case ast.OrZeros():
            return "or zeros"
        case ast.Unless(flag=flag):
            return f"unless {flag.text}"
        case _:
            assert_never(node)


def run_head(node: ast.Step | ast.Scan) -> str:
    """Return a run up to the bracket of its arguments."""
    left = f"{names(node.targets)} = "
    called = f"{node.call.rule.text}{brackets(node.call.axes)}"
    if isinstance(node, ast.Step):
        return f"{left}step {called}"
    inside = node.axis.text
    if node.valid_len is not None:
        inside += f" < {node.valid_len.text}"
    if node.every is not None:
        inside += f" every {node.every.count.text}"
        if node.every.axis is not None:
            inside += f" -> {node.every.axis.text}"
    return f"{left}scan[{inside}] {called}"


def call_argument(node: ast.CallArgument) -> str:
    """Return one name of a call line."""
    if node.ignored:
        return f"{node.name.text} = ignored"
    return node.name.text if node.key is None else f"{node.name.text} = {node.key.text}"


def item(node: ast.KernelItem) -> str:
    """Return one line of a kernel or rule."""
    match node:
        case ast.Axes(axes=axes):
            return f"axes {', '.join(axis(each) for each in axes)}"
        case ast.Dtypes():
            return f"dtypes {node.name.text} in {names(node.choices)}"
        case ast.Input():
            clauses = "".join(f" {_clause(clause)}" for clause in node.clauses)
            return f"input {names(node.names)}: {tensor(node.tensor)}{clauses}{doc(node.doc)}"
        case ast.Param():
            default = "" if node.default is None else f" = {node.default.text}"
            limits = "" if node.limits is None else f" {interval(node.limits)}"
            return f"param {node.name.text}: {node.kind}{default}{limits}{doc(node.doc)}"
        case ast.Assume(condition=condition):
            return f"assume {expression(condition)}"
        case ast.State():
            return _state(node)
        case ast.Let():
            return f"{names(node.targets)} = {expression(node.value)}"
        case ast.Step() | ast.Scan():
            return f"{run_head(node)}({arguments(node.call.arguments)})"
        case ast.Output():
            type_ = "" if node.tensor is None else f": {tensor(node.tensor)}"
            return f"output {node.name.text}{type_} = {expression(node.value)}{doc(node.doc)}"
        case ast.CallLine():
            inside = ", ".join(call_argument(each) for each in node.arguments)
            return f"call ({inside}) -> {names(node.returns)}"
        case _:
            assert_never(node)


def head(node: ast.Declaration) -> str:
    """Return the line of a declaration, or the line that opens its block."""
    match node:
        case ast.Use(libraries=libraries):
            shown = (f'"{each.name}"' if each.quoted else each.name for each in libraries)
            return f"use {', '.join(shown)}"
        case ast.Fn():
            params = ", ".join(
                each.name.text
                if each.default is None
                else f"{each.name.text} = {expression(each.default)}"
                for each in node.params
            )
            return f"fn {node.name.text}{brackets(node.axes)}({params}) = {expression(node.body)}"
        case ast.Rule():
            arrow = ", ".join(f"{each.name.text}{brackets(each.axes)}" for each in node.results)
            results = f" -> {arrow}" if arrow else ""
            params = ", ".join(rule_param(each) for each in node.params)
            return f"rule {node.name.text}{brackets(node.axes)}({params}){results}:"
        case ast.Kernel():
            return f"kernel {node.name.text}:"
        case ast.Schedule():
            targets = f" on {names(node.targets)}" if node.targets else ""
            return f"schedule {node.kernel.text}{targets}:"
        case ast.Shapes():
            return f"shapes {node.kernel.text}:"
        case _:
            assert_never(node)


def rule_param(node: ast.RuleParam) -> str:
    """Return one parameter of a rule."""
    axes = ", ".join(f"{each.name}{'?' if each.optional else ''}" for each in node.axes)
    return f"{'state ' if node.is_state else ''}{node.name.text}{f'[{axes}]' if axes else ''}"


def setting(node: ast.Setting | ast.Shape) -> str:
    """Return one line of a `schedule` or `shapes` block."""
    match node:
        case ast.Setting():
            return f"{node.key.text} = {node.value.text}"
        case ast.Shape():
            sizes = ", ".join(f"{size.axis.text}: {size.value}" for size in node.sizes)
            return f"{node.name.text} = {{{sizes}}}"
        case _:
            assert_never(node)
