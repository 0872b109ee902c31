"""`param` lines of a kernel: numbers that are known when it is traced."""

from __future__ import annotations

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir import interval as iv
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Ref
from gdsl.ir.kernel import Param
from gdsl.ir.types import Interval
from gdsl.semantics.dtypes import tensor_type
from gdsl.semantics.frame import Binding, Frame, Kind
from gdsl.semantics.measure import I32_MAX
from gdsl.semantics.numbers import number_value
from gdsl.semantics.ranges import interval, outside
from gdsl.syntax import ast

_KINDS = {"float": Dtype.F32, "int": Dtype.I32, "bool": Dtype.BOOL}


def read_params(items: tuple[ast.KernelItem, ...], frame: Frame) -> list[Param]:
    """Return the trace-time constants. One with an axis's name gives that axis its size."""
    found: list[Param] = []
    for item in items:
        if isinstance(item, ast.Param):
            param = _param(item, frame)
            if param is not None:
                found.append(param)
    return found


def _param(item: ast.Param, frame: Frame) -> Param | None:
    name = item.name.text
    dtype = _KINDS[item.kind]
    known = interval(item.limits, dtype, frame) if item.limits is not None else None
    default = _param_default(item, known, frame)
    type_ = tensor_type((), dtype, known, frame)
    doc = "" if item.doc is None else item.doc.text
    symbol = frame.context.symbol(name)
    param = Param(symbol, name, item.kind, default, type_, doc, span=item.span)
    if name in frame.context.axes.atomic:
        if item.kind != "int":
            frame.error(
                "E0308",
                f"the size of axis `{name}` must be an int",
                item.span,
                help=f"write `param {name}: int`",
            )
        return param
    reference = Ref(symbol, type_, span=item.name.span)
    return param if frame.define(Binding(name, Kind.PARAM, item.name.span, reference)) else None


def _param_default(
    item: ast.Param, known: Interval | None, frame: Frame
) -> float | int | bool | None:
    if item.default is None:
        return None
    value = item.default.value
    is_bool, is_int = isinstance(value, bool), isinstance(value, int)
    fits = {"bool": is_bool, "int": is_int and not is_bool, "float": not is_bool}[item.kind]
    if not fits:
        frame.error(
            "E0308",
            f"`{item.default.text}` is not of kind {item.kind}",
            item.default.span,
            labels=(Label(item.name.span, f"declared as {item.kind}"),),
        )
        return None
    if number_value(value) is None or (item.kind == "int" and abs(value) > I32_MAX):
        frame.error("E0108", "this default does not fit", item.default.span)
        return None
    if known is not None and not iv.contains(known, float(value)):
        outside(item.default, known, frame)
        return None
    return float(value) if item.kind == "float" else value
