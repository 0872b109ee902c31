"""Statements: assignments, and runs of a rule for one token or along an axis."""

from __future__ import annotations

from typing import assert_never

from attrs import evolve

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr, Ref
from gdsl.ir.kernel import Let
from gdsl.semantics import expressions, reorder, runs
from gdsl.semantics.axes import show
from gdsl.semantics.frame import Binding, Frame, Kind, StateCell
from gdsl.syntax import ast


def elaborate(node: ast.Statement, frame: Frame) -> bool:
    """Add a statement to the body; False when something in it was reported."""
    match node:
        case ast.Let(value=ast.Unpack() as unpack):
            return _unpack(node, unpack, frame)
        case ast.Let():
            return _let(node, frame)
        case ast.Step() | ast.Scan():
            return runs.elaborate(node, frame)
        case _:
            assert_never(node)


def _let(node: ast.Let, frame: Frame) -> bool:
    value = expressions.elaborate_whole(node.value, frame)
    if len(node.targets) != 1:
        frame.error(
            "E0209",
            f"{len(node.targets)} names for one value",
            node.targets[1].span,
            label="nothing is left for this name",
            help="only `unpack[C](x)`, `step` and `scan` give several values",
        )
        for target in node.targets:
            define_value(target, None, frame)
        return False
    (target,) = node.targets
    binding = frame.bindings.get(target.text)
    if binding is not None and binding.cell is not None:
        return _rebind(target, binding, value, node, frame)
    return define_value(target, value, frame)


def define_value(target: ast.Name, value: Expr | None, frame: Frame) -> bool:
    """Give a new name to a value (None: it failed, and uses of the name stay silent)."""
    binding = Binding(target.text, Kind.VALUE, target.span, None)
    if not frame.define(binding) or value is None:
        return False
    binding.value = frame.let(target.text, value)
    return True


def _unpack(node: ast.Let, unpack: ast.Unpack, frame: Frame) -> bool:
    fields = reorder.elaborate_unpack(unpack, frame)
    if fields is not None and len(fields) != len(node.targets):
        packed = frame.context.axes.packed[frame.axes[unpack.axes[0].text]]
        names = ", ".join(name for name, _ in packed.fields)
        frame.error(
            "E0209",
            f"`{packed.name}` has {len(fields)} fields, got {len(node.targets)} names",
            node.targets[0].span,
            label="one name for each field",
            labels=(Label(packed.span, f"its fields are {names}"),) if packed.span else (),
            help=f"write `{names} = unpack[{packed.name}](...)`",
        )
        fields = None
    if fields is None:
        for target in node.targets:
            define_value(target, None, frame)
        return False
    shared = fields[0].arg
    if not isinstance(shared, Ref):
        shared = frame.let(f"{unpack.axes[0].text}_packed", shared)
    fits = True
    for target, field in zip(node.targets, fields, strict=True):
        fits &= define_value(target, evolve(field, arg=shared), frame)
    return fits


def _rebind(
    target: ast.Name, binding: Binding, value: Expr | None, node: ast.Let, frame: Frame
) -> bool:
    cell = binding.cell
    assert cell is not None
    cell.written = True
    if value is None or not _keeps_axes(target, cell, value, node, frame):
        return False
    symbol = frame.context.symbol(target.text)
    assert frame.statements is not None
    frame.statements.append(Let(symbol, value, span=node.span))
    rebind_state(binding, Ref(symbol, evolve(value.type, dtype=Dtype.F32), span=target.span))
    return True


def rebind_state(binding: Binding, value: Ref) -> None:
    """Make `value` the latest value of the binding's state."""
    assert binding.cell is not None
    binding.cell.latest = value.symbol
    binding.cell.written = True
    binding.value = value


def _keeps_axes(
    target: ast.Name, cell: StateCell, value: Expr, node: ast.Let, frame: Frame
) -> bool:
    old, new = set(cell.type.axes), set(value.type.axes)
    if old == new:
        return True
    wrong = []
    if new - old:
        wrong.append(f"gains {show(frame.context.axes.ordered(new - old))}")
    if old - new:
        wrong.append(f"loses {show(frame.context.axes.ordered(old - new))}")
    frame.error(
        "E0409",
        f"state `{target.text}` {' and '.join(wrong)}",
        node.value.span,
        label=f"carries {show(value.type.axes)}",
        labels=(Label(cell.span, f"`{cell.name}` carries {show(cell.type.axes)}"),),
        help=f"sum the new axis away: `sum{show(frame.context.axes.ordered(new - old))}(...)`"
        if new - old
        else None,
    )
    return False
