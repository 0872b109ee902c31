"""`dtypes`, `input`, `param` and `assume` of a kernel."""

from __future__ import annotations

from attrs import evolve

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir import interval as iv
from gdsl.ir.dims import Dim
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Ref
from gdsl.ir.kernel import Assume, Input, Param
from gdsl.ir.types import ANY, DtypeVar, Interval, Type
from gdsl.semantics import expressions
from gdsl.semantics.axes import dimensions, unknown_axis, value_axes
from gdsl.semantics.frame import Binding, Frame, Kind
from gdsl.semantics.measure import I32_MAX
from gdsl.semantics.numbers import number_value
from gdsl.suggest import did_you_mean
from gdsl.syntax import ast

_KINDS = {"float": Dtype.F32, "int": Dtype.I32, "bool": Dtype.BOOL}


def dtype_vars(items: tuple[ast.KernelItem, ...], frame: Frame) -> dict[str, DtypeVar]:
    """Return the dtype variables by name."""
    found: dict[str, DtypeVar] = {}
    for item in items:
        if not isinstance(item, ast.Dtypes):
            continue
        choices = tuple(dict.fromkeys(Dtype(choice.text) for choice in item.choices))
        if len(choices) < len(item.choices):
            frame.error("E0210", "a dtype stands twice in this list", item.choices[-1].span)
        for choice in item.choices:
            dtype = Dtype(choice.text)
            if not dtype.is_float or dtype.only_read:
                frame.error(
                    "E0308",
                    f"a dtype variable stands for f32, bf16 or f16, not {choice.text}",
                    choice.span,
                    help=f"write `{choice.text}` at the tensors that have it",
                )
        if frame.define(Binding(item.name.text, Kind.DTYPE, item.name.span, None)):
            found[item.name.text] = DtypeVar(item.name.text, choices)
    return found


def element_type(
    node: ast.Tensor, variables: dict[str, DtypeVar], frame: Frame, *, written: bool = False
) -> Dtype | DtypeVar | None:
    """Return a tensor's dtype or dtype variable; `written`: of a tensor the kernel writes."""
    name = node.dtype.text
    dtypes = {dtype.value: dtype for dtype in Dtype}
    if written and name in dtypes and dtypes[name].only_read:
        frame.error(
            "E0308",
            f"{name} is a dtype of inputs only",
            node.dtype.span,
            label="expected f32, bf16 or f16",
            help=f"a value is rounded to it by `{name}(...)`",
        )
        return None
    if name in dtypes:
        return dtypes[name]
    if name in variables:
        frame.bindings[name].used = True
        return variables[name]
    known = (*dtypes, *variables)
    frame.error(
        "E0201",
        f"unknown dtype `{name}`{did_you_mean(name, known)}",
        node.dtype.span,
        label="not a dtype",
        notes=(f"known here: {', '.join(known)}",),
        help=f"to let the caller choose, declare `dtypes {name} in bf16, f16, f32`",
    )
    return None


def inputs(
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
    known = _interval(limits, dtype, frame) if isinstance(limits, ast.Interval) else None
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


def tensor_type(
    dims: tuple[Dim, ...], dtype: Dtype | DtypeVar, known: Interval | None, frame: Frame
) -> Type:
    """Return the type of a value read from a tensor."""
    axes = frame.context.axes.ordered(axis for dim in dims for axis in value_axes(dim))
    anything = iv.BOOLEAN if dtype is Dtype.BOOL else ANY
    return Type(axes, dtype, anything if known is None else known)


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


def _interval(node: ast.Interval, dtype: Dtype | DtypeVar | None, frame: Frame) -> Interval | None:
    if dtype is Dtype.BOOL:
        frame.error("E0308", "a bool has no range", node.span)
        return None
    empty = node.lo > node.hi or (node.lo == node.hi and (node.lo_open or node.hi_open))
    if empty:
        frame.error(
            "E0309",
            "no number lies in this range",
            node.span,
            help="the smaller bound comes first; `[` and `]` include it, `(` and `)` do not",
        )
        return None
    for text, value in ((node.lo_text, node.lo), (node.hi_text, node.hi)):
        written_inf = text.lstrip("-") == "inf"
        if not written_inf and number_value(value) is None:
            frame.error(
                "E0108",
                f"the bound {text[:24]} does not fit f32",
                node.span,
                help="for no bound write `-inf` or `inf`",
            )
            return None
    return Interval(node.lo, node.hi, node.lo_open, node.hi_open)


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
        _outside(value, known, frame)
        return None
    return number


def _outside(default: ast.Literal, known: Interval, frame: Frame) -> None:
    frame.error(
        "E0309",
        f"the default {default.text} lies outside the declared range",
        default.span,
        label=f"is {default.text}",
        notes=(f"declared range {iv.show(known)}, default [{default.text}, {default.text}]",),
        help="widen the range, or choose a default inside it",
    )


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


def params(items: tuple[ast.KernelItem, ...], frame: Frame) -> list[Param]:
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
    known = _interval(item.limits, dtype, frame) if item.limits is not None else None
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
        _outside(item.default, known, frame)
        return None
    return float(value) if item.kind == "float" else value


def assumes(items: tuple[ast.KernelItem, ...], frame: Frame) -> list[Assume]:
    """Return the stated facts."""
    found: list[Assume] = []
    single = evolve(frame, statements=None)
    for item in items:
        if not isinstance(item, ast.Assume):
            continue
        condition = expressions.elaborate_whole(item.condition, single)
        if condition is None:
            continue
        if condition.type.dtype is not Dtype.BOOL:
            frame.error(
                "E0308",
                "`assume` states a comparison",
                item.condition.span,
                label="this is a number",
                help="compare it: `assume sum[K](key * key) <= 1.01`",
            )
        elif condition.type.range.hi == 0 and not condition.type.range.may_be_nan:
            frame.error(
                "E0309",
                "this never holds",
                item.condition.span,
                notes=_sides(item.condition, single),
            )
        else:
            found.append(Assume(condition, span=item.span))
    return found


def _sides(node: ast.Expr, frame: Frame) -> tuple[str, ...]:
    if not isinstance(node, ast.Binary):
        return ()
    sides = [expressions.elaborate(side, frame) for side in (node.left, node.right)]
    left, right = (iv.show(side.type.range) for side in sides if side is not None)
    return (f"left side in {left}, right side in {right}",)
