"""The typed recurrence as text (`--emit ir`): what semantics understood, one line per fact.

It is for reading, not for parsing: names that were rebound carry a number (`S.1`), every value
shows its axes and the range it lies in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import assert_never

from gdsl.ir.dims import Atom, Axis, Dim, Packed, Product, Unit
from gdsl.ir.dtypes import Dtype
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
from gdsl.ir.interval import show
from gdsl.ir.kernel import Input, Kernel, Let, Output, Rule, Run, State, Statement
from gdsl.ir.node import Symbol
from gdsl.ir.types import DtypeVar, Type

# operator: (written as, binding strength); a larger number binds tighter.
_INFIX: dict[str, tuple[str, int]] = {
    "lt": ("<", 1),
    "le": ("<=", 1),
    "gt": (">", 1),
    "ge": (">=", 1),
    "eq": ("==", 1),
    "ne": ("!=", 1),
    "add": ("+", 2),
    "sub": ("-", 2),
    "mul": ("*", 3),
    "div": ("/", 3),
    "pow": ("**", 5),
}
_NEG = 4
_ATOM = 6
Names = Mapping[Symbol, str]


def expression_text(expr: Expr, names: Names | None = None) -> str:
    """Return an expression as the language would write it, with no parenthesis it does not need."""
    return _expr(expr, names or {})[0]


def _expr(expr: Expr, names: Names) -> tuple[str, int]:
    match expr:
        case Ref(symbol=symbol):
            return names.get(symbol, symbol.name), _ATOM
        case Const(value=value):
            return f"{value:.10g}", _ATOM if value >= 0 else _NEG
        case Size(axis=axis):
            return axis, _ATOM
        case Apply(operator="neg", args=(arg,)):
            return f"-{_at_least(arg, _NEG, names)}", _NEG
        case Apply(operator=operator, args=(left, right)) if operator in _INFIX:
            return _infix(operator, left, right, names)
        case Apply(operator=operator, args=args):
            inner = ", ".join(expression_text(arg, names) for arg in args)
            return f"{operator}({inner})", _ATOM
        case Reduce(operator=operator, axes=axes, arg=arg):
            return f"{operator}[{', '.join(axes)}]({expression_text(arg, names)})", _ATOM
        case Index(axis=axis):
            return f"index[{axis}]()", _ATOM
        case Cast(dtype=dtype, arg=arg):
            return f"{dtype.value}({expression_text(arg, names)})", _ATOM
        case Rename(source=source, target=target, arg=arg):
            return f"rename[{source} -> {target}]({expression_text(arg, names)})", _ATOM
        case Shift(axis=axis, window=window, value=value):
            inner = f"{expression_text(window, names)}, {expression_text(value, names)}"
            return f"shift[{axis}]({inner})", _ATOM
        case Unpack(packed=packed, field=name, arg=arg):
            return f"unpack[{packed}.{name}]({expression_text(arg, names)})", _ATOM
        case _:
            assert_never(expr)


def _infix(operator: str, left: Expr, right: Expr, names: Names) -> tuple[str, int]:
    sign, strength = _INFIX[operator]
    # `**` groups to the right, comparisons not at all, the others to the left.
    left_needs = strength if operator in ("add", "sub", "mul", "div") else strength + 1
    right_needs = strength if operator == "pow" else strength + 1
    text = f"{_at_least(left, left_needs, names)} {sign} {_at_least(right, right_needs, names)}"
    return text, strength


def _at_least(expr: Expr, strength: int, names: Names) -> str:
    text, own = _expr(expr, names)
    return text if own >= strength else f"({text})"


def dim_text(dim: Dim) -> str:
    """Return one dimension of a tensor: `1`, `K`, `(Hk G)`, `C`."""
    match dim:
        case Unit():
            return "1"
        case Atom(axis=axis):
            return axis
        case Product(parts=parts):
            return f"({' '.join(dim_text(part) for part in parts)})"
        case Packed(name=name):
            return name
        case _:
            assert_never(dim)


def tensor_text(dtype: Dtype | DtypeVar, dims: tuple[Dim, ...]) -> str:
    """Return a tensor type: `bf16[(B Hv), K]`."""
    name = dtype.name if isinstance(dtype, DtypeVar) else dtype.value
    return f"{name}[{', '.join(dim_text(dim) for dim in dims)}]"


def type_text(kind: Type) -> str:
    """Return axes, dtype and range of a value: `[B, Hv] in (0, 1]`."""
    dtype = "" if kind.dtype == Dtype.F32 else _dtype_name(kind.dtype)
    unbounded = kind.range.lo == -math.inf and kind.range.hi == math.inf
    interval = "" if unbounded else f" in {show(kind.range)}"
    return f"{dtype}[{', '.join(kind.axes)}]{interval}"


def kernel_text(kernel: Kernel) -> str:
    """Return the whole kernel, declarations first, then statements in order."""
    return "\n".join(_kernel_lines(kernel)) + "\n"


def _kernel_lines(kernel: Kernel) -> Iterator[str]:
    names = _numbered(kernel)
    yield f"kernel {kernel.name}"
    yield f"  axes {', '.join(_axis(axis) for axis in kernel.axes)}"
    for name, dim in kernel.composites:
        yield f"  axis {name} = {dim_text(dim)}"
    for packed in kernel.packed:
        fields = " | ".join(f"{name}:{dim_text(dim)}" for name, dim in packed.fields)
        yield f"  axis {packed.name} = {fields}"
    for variable in kernel.dtype_vars:
        yield f"  dtype {variable.name} in {', '.join(c.value for c in variable.choices)}"
    for item in kernel.inputs:
        yield f"  input {_input(item)}"
    for param in kernel.params:
        default = "" if param.default is None else f" = {param.default}"
        yield f"  param {param.name} : {param.kind}{default}"
    for assume in kernel.assumes:
        yield f"  assume {expression_text(assume.condition, names)}"
    for state in kernel.states:
        yield f"  state {_state(state, names)}"
    for statement in kernel.body:
        yield from _statement(statement, names, "  ")
    for output in kernel.outputs:
        yield f"  output {_output(output, names)}"
    arguments = (
        f"{a.name} = {a.key or a.role}" if a.role in ("schedule", "ignored") else a.name
        for a in kernel.call.arguments
    )
    yield f"  call ({', '.join(arguments)}) -> {', '.join(kernel.call.returns)}"


def _axis(axis: Axis) -> str:
    limit = "" if axis.at_most is None else f" <= {axis.at_most}"
    multiple = "" if axis.multiple_of == 1 else f" % {axis.multiple_of} == 0"
    return f"{axis.name}{limit}{multiple}"


def _dtype_name(dtype: Dtype | DtypeVar) -> str:
    return dtype.name if isinstance(dtype, DtypeVar) else dtype.value


def _input(item: Input) -> str:
    interval = "" if item.range is None else f" in {show(item.range)}"
    default = "" if item.default is None else f" or {item.default}"
    return f"{item.name} : {tensor_text(item.dtype, item.dims)}{interval}{default}"


def _state(state: State, names: Names) -> str:
    source = state.argument
    if state.slots:
        slots = state.slots
        write = f" -> {slots.write.name}" if slots.write else ""
        source = f"{source}[{slots.axis} at {slots.read.name}{write}]"
    if state.accepted:
        source = f"{source}[{state.accepted.axis} at {state.accepted.symbol.name}]"
    words = (
        " inplace" if state.inplace else "",
        " or zeros" if state.optional else "",
        f" unless {state.unless.name}" if state.unless else "",
    )
    name = names.get(state.symbol, state.name)
    return f"{name} : {tensor_text(state.dtype, state.dims)} = {source}{''.join(words)}"


def _output(output: Output, names: Names) -> str:
    value = expression_text(output.value, names)
    updates = f"   (state {output.state})" if output.state else ""
    return f"{output.name} : {tensor_text(output.dtype, output.dims)} = {value}{updates}"


def _statement(statement: Statement, names: Names, indent: str) -> Iterator[str]:
    match statement:
        case Let(target=target, value=value):
            name = names.get(target, target.name)
            text = expression_text(value, names)
            yield f"{indent}{name} : {type_text(value.type)} = {text}"
        case Run():
            yield from _run(statement, names, indent)
        case _:
            assert_never(statement)


def _run(run: Run, names: Names, indent: str) -> Iterator[str]:
    targets = (*run.results, run.state_out, *((run.states,) if run.states else ()))
    left = ", ".join(names.get(symbol, symbol.name) for symbol in targets)
    how = "step" if run.axis is None else f"scan[{run.axis}{_scan_options(run)}]"
    args = (*run.args, Ref(run.state, run.rule.state_type))
    right = ", ".join(expression_text(arg, names) for arg in args)
    yield f"{indent}{left} = {how} {run.rule.name}({right})"
    yield from _rule(run.rule, indent + "  ")


def _scan_options(run: Run) -> str:
    length = f" < {run.valid_len.name}" if run.valid_len else ""
    if run.every is None:
        return length
    every = run.every.name if isinstance(run.every, Symbol) else str(run.every)
    onto = f" -> {run.states_axis}" if run.states_axis else ""
    return f"{length} every {every}{onto}"


def _rule(rule: Rule, indent: str) -> Iterator[str]:
    names = _number([rule.state, *rule.params, *_defined(rule.body)])
    params = ", ".join(
        f"{symbol.name}: {type_text(kind)}"
        for symbol, kind in zip(rule.params, rule.param_types, strict=True)
    )
    results = "".join(f", {names.get(s, s.name)}" for s in rule.results)
    state = names.get(rule.state, rule.state.name)
    yield f"{indent}rule {rule.name}({params}, state {state}: {type_text(rule.state_type)})"
    for statement in rule.body:
        yield from _statement(statement, names, indent + "  ")
    yield f"{indent}  -> {names.get(rule.state_out, rule.state_out.name)}{results}"


def _numbered(kernel: Kernel) -> Names:
    declared = [
        *(item.symbol for item in kernel.inputs),
        *(param.symbol for param in kernel.params),
        *(state.symbol for state in kernel.states),
    ]
    return _number([*declared, *_defined(kernel.body)])


def _defined(body: tuple[Statement, ...]) -> Iterator[Symbol]:
    for statement in body:
        match statement:
            case Let(target=target):
                yield target
            case Run():
                yield from statement.results
                yield statement.state_out
                if statement.states:
                    yield statement.states
            case _:
                assert_never(statement)


def _number(symbols: list[Symbol]) -> Names:
    """Give each symbol a name of its own: `S`, then `S.1`, `S.2` for what rebinds it."""
    seen: dict[str, int] = {}
    names: dict[Symbol, str] = {}
    for symbol in symbols:
        if symbol in names:
            continue
        count = seen.get(symbol.name, 0)
        seen[symbol.name] = count + 1
        names[symbol] = f"{symbol.name}.{count}" if count else symbol.name
    return names
