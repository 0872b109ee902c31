"""`input` lines of a kernel."""

from __future__ import annotations

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir import interval as iv
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Ref
from gdsl.ir.kernel import Input
from gdsl.ir.types import DtypeVar, Interval
from gdsl.semantics.axes import dimensions, unknown_axis
from gdsl.semantics.dtypes import element_type, tensor_type
from gdsl.semantics.frame import Binding, Frame, Kind
from gdsl.semantics.measure import I32_MAX
from gdsl.semantics.numbers import number_value
from gdsl.semantics.ranges import interval, outside
from gdsl.syntax import ast


def read_inputs(
    items: tuple[ast.KernelItem, ...], variables: dict[str, DtypeVar], frame: Frame
) -> list[Input]:
    """Return the inputs in order; each name is bound, also when its declaration is wrong."""
    found: list[Input] = []
    for item in items:
        if isinstance(item, ast.Input):
            found.extend(_input(item, variables, frame))
    return found


def _input(item: ast.Input, variables: dict[str, DtypeVar], frame: Frame) -> list[Input]:
    dtype = element_type(item.tensor, variables, frame)
    dims = dimensions(item.tensor, frame.context.axes, frame.context.reporter)
    limits = _one_clause(item, ast.Interval, "range", frame)
    default = _one_clause(item, ast.Default, "default", frame)
    known = interval(limits, dtype, frame) if isinstance(limits, ast.Interval) else None
    value = None
    if isinstance(default, ast.Default) and dtype is not None:
        value = _default(default, dtype, known, frame)
    found: list[Input] = []
    for name in item.names:
        if dtype is None or dims is None:
            frame.define(Binding(name.text, Kind.INPUT, name.span, None))
            continue
        symbol = frame.context.symbol(name.text)
        type_ = tensor_type(dims, dtype, known, frame)
        reference = Ref(symbol, type_, span=name.span)
        binding = Binding(name.text, Kind.INPUT, name.span, reference, stored_as=dtype)
        if frame.define(binding):
            doc = "" if item.doc is None else item.doc.text
            found.append(
                Input(symbol, name.text, dtype, dims, type_, known, value, doc, span=item.span)
            )
    return found


def _one_clause(
    item: ast.Input, kind: type[ast.Interval] | type[ast.Default], word: str, frame: Frame
) -> ast.Interval | ast.Default | None:
    clauses = [clause for clause in item.clauses if isinstance(clause, kind)]
    if len(clauses) > 1:
        frame.error(
            "E0210",
            f"this input has two {word}s",
            clauses[1].span,
            labels=(Label(clauses[0].span, "the first one"),),
        )
    return clauses[0] if clauses else None


def _default(
    node: ast.Default, dtype: Dtype | DtypeVar, known: Interval | None, frame: Frame
) -> float | str | None:
    value = node.value
    if isinstance(value, ast.Name):
        return _size_default(value, dtype, frame)
    if isinstance(value.value, bool) != (dtype is Dtype.BOOL):
        wanted = "`true` or `false`" if dtype is Dtype.BOOL else "a number"
        frame.error("E0308", f"the default must be {wanted}", value.span)
        return None
    number = number_value(value.value)
    if number is None or (dtype is Dtype.I32 and abs(number) > I32_MAX):
        frame.error("E0108", "this default does not fit its dtype", value.span)
        return None
    if dtype is Dtype.I32 and number != int(number):
        frame.error("E0308", "the default of an i32 input must be a whole number", value.span)
        return None
    if known is not None and not iv.contains(known, number):
        outside(value, known, frame)
        return None
    return number


def _size_default(name: ast.Name, dtype: Dtype | DtypeVar, frame: Frame) -> str | None:
    table = frame.context.axes
    if name.text not in table.atomic:
        if name.text in table.spans:
            frame.error("E0311", "only the size of an atomic axis can be a default", name.span)
        else:
            unknown_axis(name.text, name.span, table.names(), frame.context.reporter)
        return None
    table.used.add(name.text)
    if dtype is Dtype.BOOL:
        frame.error("E0308", "the size of an axis cannot be the default of a bool", name.span)
        return None
    return name.text
