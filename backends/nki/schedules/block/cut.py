"""Cutting a kernel into sections: what is computed over channels before the delta rule sees it.

The text is rewritten from the top. A contraction over an axis that the delta rule does not have
becomes a `Projection`, a window rule a `Convolution`; `unpack` of such a value becomes one of its
fields, and moves inside what is elementwise (`unpack[C](silu(y))` is the silu of fields). What is
left mentions fields by fresh names, as if they were inputs. Nothing goes by the name of a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from attrs import define, evolve, field

from backends.nki.refusal import refuse
from backends.nki.schedules.block.expressions import (
    addresses,
    behind,
    mentioned,
    needed,
    rounding,
    silu_of,
)
from backends.nki.schedules.block.sections import (
    Convolution,
    Field,
    Given,
    Port,
    Projection,
    Sections,
    Value,
)
from backends.nki.schedules.window.taps import read_taps
from backends.nki.select.addressing import axes_of
from gdsl.algorithm.plan import Plan
from gdsl.canonical.build import Builder
from gdsl.canonical.form import Delta, Window
from gdsl.canonical.substitute import bind_arguments, retyped, substitute
from gdsl.ir.dims import Packed
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Apply, Cast, Expr, Reduce, Ref, Unpack
from gdsl.ir.kernel import Input, Let, Output, Run, Statement
from gdsl.ir.node import Symbol
from gdsl.ir.traverse import children
from gdsl.ir.types import Type


def cut(plan: Plan) -> Sections:
    """Return the sections of a kernel with one delta rule. Raises CompileError."""
    kernel, runs = plan.kernel.kernel, plan.kernel.runs
    deltas = [(run, form) for run, form in runs if isinstance(form, Delta)]
    if len(deltas) != 1:
        raise refuse(
            f"the decode schedule emits one delta rule per kernel; `{kernel.name}` has "
            f"{len(deltas)}",
            deltas[1][0].span if deltas else kernel.span,
            help="write a kernel for each" if deltas else None,
        )
    run, delta = deltas[0]
    state = next(s for s in kernel.states if s.symbol == run.state)
    rows = tuple(a for a in state.type.axes if a not in (delta.key_axis, delta.value_axis))
    windows = {run.state: (run, form) for run, form in runs if isinstance(form, Window)}
    cutter = _Cutter(plan, rows, (delta.key_axis, delta.value_axis), run.axis, windows)
    return cutter.sections()


@define(eq=False)
class _Cutter:
    """Walks the body once, statement by statement."""

    plan: Plan
    rows: tuple[str, ...]
    """The axes the delta rule maps over: the entry, then its heads."""
    vectors: tuple[str, str]
    """Its key axis and its value axis."""
    token: str | None
    windows: dict[Symbol, tuple[Run, Window]]
    builder: Builder = field(init=False)
    projections: dict[tuple[Expr, Expr, Input | None], Projection] = field(factory=dict)
    """By what moves, the weight and its scale."""
    convolutions: dict[Symbol, Convolution] = field(factory=dict)
    """By the symbol of their sums."""
    values: dict[Port, Value] = field(factory=dict)
    known: dict[Symbol, Expr] = field(factory=dict)
    """Names whose value is put in their place: they have a packed axis, or are fields."""
    sources: dict[Symbol, Given | Projection | Convolution] = field(factory=dict)
    """What a name stands for: an input, or the result of a section."""
    text: dict[Symbol, Expr] = field(factory=dict)
    """Definitions over the kernel's inputs, as they are written."""
    title: tuple[str, Expr] | None = None
    """The definition at hand: its name and its value."""
    fresh: count[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        kernel = self.plan.kernel.kernel
        self.builder = Builder(tuple(axis.name for axis in kernel.axes))
        self.fresh = count(-1, -1)
        self.sources |= {item.symbol: Given(item) for item in kernel.inputs}

    def sections(self) -> Sections:
        """Return the sections of the whole kernel."""
        kernel = self.plan.kernel.kernel
        body: list[Statement] = []
        for statement in kernel.body:
            match statement:
                case Let(target=target, value=value):
                    self.text[target] = substitute(value, self.text, self.builder)
                    self.title = (target.name, value)
                    new = self._rewritten(value)
                    if self._is_packed(new) or isinstance(new, Ref):
                        self.known[target] = new
                    else:
                        body.append(evolve(statement, value=self._finished(new)))
                case Run(state=state) if state in self.windows:
                    self._convolution(*self.windows[state])
                case Run(args=args):
                    new_args = tuple(self._finished(self._rewritten(arg)) for arg in args)
                    body.append(evolve(statement, args=new_args))
        windows = {
            o.name for c in self.convolutions.values() for o in (*c.windows, *c.token_windows)
        }
        outputs = tuple(
            evolve(output, value=self._finished(self._rewritten(output.value)))
            for output in kernel.outputs
            if output.name not in windows
        )
        early, shown = needed(body), mentioned(outputs)
        body = [s for s in body if isinstance(s, Run) or s.target in early | behind(body, shown)]
        shown = mentioned((*body, *outputs))
        values = (evolve(v, late=v.symbol not in early) for v in self.values.values())
        return Sections(
            kernel=kernel,
            entry=self.rows[0],
            key_axis=self.vectors[0],
            projections=tuple(self.projections.values()),
            convolutions=tuple(self.convolutions.values()),
            values=tuple(v for v in values if v.symbol in shown),
            body=tuple(body),
            outputs=outputs,
            mentioned=frozenset(shown | addresses(body, kernel.states)),
        )

    # ---- expressions

    def _rewritten(self, expr: Expr) -> Expr:
        """Return an expression in which sections stand for what they compute."""
        match expr:
            case Ref(symbol=symbol):
                return self.known.get(symbol, expr)
            case Reduce(operator="sum", axes=(axis,)) if self._is_hidden(axis):
                return self._projection(expr, expr, axis)
            case (
                Apply(operator="mul", args=(Reduce(operator="sum", axes=(axis,)) as total, factor))
                | Apply(
                    operator="mul", args=(factor, Reduce(operator="sum", axes=(axis,)) as total)
                )
            ) if self._is_hidden(axis) and (scale := self._scale(total, factor)) is not None:
                return self._projection(expr, total, axis, scale)
            case Unpack(packed=packed, field=name, arg=arg):
                return self._unpacked(self._rewritten(arg), packed, name, expr)
            case _:
                return self._over(expr, self._rewritten)

    def _finished(self, expr: Expr) -> Expr:
        """Return a rewritten expression over fields, for what is left of the text."""
        activated = silu_of(expr)
        if activated is not None and self._is_convolved(activated):
            return self._value(self._port(activated, (), silu=True), expr)
        if isinstance(expr, Ref):
            section = self.sources.get(expr.symbol)
            if isinstance(section, Projection | Convolution):
                return self._value(self._port(expr, ()), expr)
            return expr
        return self._over(expr, self._finished)

    def _written(self, expr: Expr) -> Expr:
        return substitute(expr, self.text, self.builder)

    def _over(self, expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
        """The same node over changed operands."""
        old = children(expr)
        new = tuple(change(child) for child in old)
        same = all(a is b for a, b in zip(old, new, strict=True))
        return expr if same else retyped(expr, new, self.builder)

    def _unpacked(self, arg: Expr, packed: str, name: str, whole: Expr) -> Expr:
        """One field of an expression: the expression over that field of its operands."""
        if packed not in arg.type.axes:
            return arg
        activated = silu_of(arg)
        if activated is not None and self._is_convolved(activated):
            return self._value(self._port(activated, ((packed, name),), silu=True), whole)
        match arg:
            case Ref(symbol=symbol) if symbol in self.sources:
                if self._is_taps(arg, packed):
                    return retyped(whole, (arg,), self.builder)
                return self._value(self._port(arg, ((packed, name),)), whole)
            case Apply(args=args):
                new = tuple(self._unpacked(a, packed, name, a) for a in args)
                return retyped(arg, new, self.builder)
            case Cast(arg=inner):
                return retyped(arg, (self._unpacked(inner, packed, name, inner),), self.builder)
        raise refuse(
            f"`unpack[{packed}]` of what is neither an input nor the result of a section",
            whole.span or arg.span,
        )

    def _value(self, port: Port, like: Expr) -> Expr:
        """A name for a port in what is left of the text."""
        if port not in self.values:
            axes = self._port_axes(port)
            name = port.field.name
            symbol = Symbol(name, next(self.fresh))
            dtype = port.section.input.dtype if isinstance(port.section, Given) else Dtype.F32
            self.values[port] = Value(symbol, name, Type(axes, dtype), port)
        value = self.values[port]
        return Ref(value.symbol, value.type, span=like.span)

    def _port_axes(self, port: Port) -> tuple[str, ...]:
        part, section = port.field, port.section
        own = (*part.heads, *((part.wide,) if part.wide else ()))
        around = {self.rows[0]}
        if self.token is not None:
            around.add(self.token)
        if isinstance(section, Given):
            around &= set(section.input.type.axes)
        return self.builder.axes((*around, *own))

    # ---- sections

    def _projection(self, expr: Expr, total: Reduce, axis: str, scale: Input | None = None) -> Expr:
        """A contraction over a hidden axis, times the scale of each column."""
        arg = self._rewritten(total.arg)
        if isinstance(arg, Apply) and arg.operator == "mul":
            moving, weight = arg.args
            if self._weight(moving, axis) is not None:
                moving, weight = weight, moving
            tensor = self._weight(weight, axis)
            if tensor is not None:
                rounded, operand = rounding(moving)
                source = self._moving(operand)
                if source is not None:
                    key = moving, weight, scale
                    if key not in self.projections:
                        named = self.title is not None and self.title[1] is expr
                        name = self.title[0] if self.title and named else f"{tensor.name}_sum"
                        symbol = Symbol(name, next(self.fresh))
                        found = Projection(symbol, axis, source, tensor, rounded, scale)
                        self.projections[key] = found
                        self.sources[symbol] = found
                    return Ref(self.projections[key].symbol, expr.type, span=expr.span)
        raise refuse(
            f"`sum[{axis}]` must be the product of one value per entry and a weight [{axis}, ...]",
            expr.span,
            help="pass what is multiplied with the weight to this kernel as an input",
        )

    def _weight(self, expr: Expr, axis: str) -> Input | None:
        """The tensor that is the weight of a contraction: it has no entry axis."""
        section = self.sources.get(expr.symbol) if isinstance(expr, Ref) else None
        if not isinstance(section, Given) or self.rows[0] in section.input.type.axes:
            return None
        return section.input if axis in section.input.type.axes else None

    def _scale(self, total: Reduce, factor: Expr) -> Input | None:
        """The tensor with a number for each column of a projection, if `factor` is one.

        Columns that are heads alone have no place on partitions where it would apply: there the
        product stays in the text.
        """
        section = self.sources.get(factor.symbol) if isinstance(factor, Ref) else None
        columns = {*total.type.axes} - {self.rows[0], self.token}
        if not isinstance(section, Given) or {*section.input.type.axes} != columns:
            return None
        return section.input if columns - {*self.rows} else None

    def _moving(self, expr: Expr) -> Input | Port | None:
        section = self.sources.get(expr.symbol) if isinstance(expr, Ref) else None
        if isinstance(section, Given):
            return section.input
        if isinstance(expr, Ref) and isinstance(section, Projection):
            return self._port(expr, ())
        return None

    def _convolution(self, run: Run, window: Window) -> None:
        kernel = self.plan.kernel.kernel
        state = next(s for s in kernel.states if s.symbol == run.state)
        if len(window.emits) != 1:
            raise refuse("several sums over a window are not emitted yet", run.span)
        result = next(
            r
            for r, p in zip(run.results, run.rule.results, strict=True)
            if p == window.emits[0].result
        )
        value = self._rewritten(bind_arguments(window.value, run, self.builder))
        rounded, token = rounding(value)
        weight, inside = read_taps(kernel, run, window, self.builder, self._written)
        columns = {a for a in weight.type.axes if a not in state.type.axes}
        fields = self._fields(weight, (window.axis, *columns), result.name)
        self.convolutions[result] = found = Convolution(
            symbol=result,
            run=run,
            state=state,
            axis=window.axis,
            newest_inside=inside,
            weight=weight,
            token=tuple(self._token(token, part, run) for part in fields),
            fields=fields,
            rounded=rounded,
            windows=self._outputs(run.state_out),
            token_windows=self._outputs(run.states),
        )
        self.sources[result] = found

    def _token(self, token: Expr, part: Field, run: Run) -> Port:
        """Where the raw tokens of a field come from."""
        section = self.sources.get(token.symbol) if isinstance(token, Ref) else None
        if isinstance(token, Ref) and section is not None:
            return self._port(token, part.packed)
        port = next(
            (
                v.port
                for v in self.values.values()
                if isinstance(token, Ref) and v.symbol == token.symbol
            ),
            None,
        )
        if port is None:
            raise refuse("the new column of a window must be an input or a projection", run.span)
        return port

    def _outputs(self, symbol: Symbol | None) -> tuple[Output, ...]:
        return tuple(
            output
            for output in self.plan.kernel.kernel.outputs
            if isinstance(output.value, Ref) and output.value.symbol == symbol
        )

    # ---- fields

    def _port(self, ref: Ref, packed: tuple[tuple[str, str], ...], *, silu: bool = False) -> Port:
        """One field of the result a name stands for."""
        section = self.sources[ref.symbol]
        match section:
            case Given(input=item):
                fields = self._fields(item, (self.rows[0], self.token), ref.symbol.name)
            case Projection(weight=item, axis=axis):
                fields = self._fields(item, (axis,), ref.symbol.name)
            case Convolution(fields=fields):
                pass
        for part in fields:
            if part.packed == packed:
                return Port(section, part, silu)
        raise refuse(f"`{ref.symbol.name}` has no such field", ref.span)

    def _fields(
        self, tensor: Input, around: tuple[str | None, ...], name: str
    ) -> tuple[Field, ...]:
        """The fields of the channels of a tensor: of all its axes but those `around` them."""
        packed = {dim.name: dim for dim in self.plan.kernel.kernel.packed}
        parts: list[tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]] = [(name, (), ())]
        for axis in (axis for axis in tensor.type.axes if axis not in around):
            dim = packed.get(axis)
            if dim is None:
                parts = [(n, p, (*axes, axis)) for n, p, axes in parts]
            else:
                parts = _split(parts, dim)
        return tuple(self._field(n, p, axes, tensor) for n, p, axes in parts)

    def _field(
        self, name: str, packed: tuple[tuple[str, str], ...], axes: tuple[str, ...], tensor: Input
    ) -> Field:
        heads = tuple(axis for axis in self.rows if axis in axes)
        wide = [axis for axis in axes if axis not in heads]
        if len(wide) > 1:
            raise refuse(
                f"`{tensor.name}` has the axes `{wide[0]}` and `{wide[1]}` beside heads; a section "
                "has room for one",
                tensor.span,
            )
        return Field(name, heads, wide[0] if wide else None, packed)

    # ---- questions

    def _is_hidden(self, axis: str) -> bool:
        return axis not in (*self.rows, *self.vectors, self.token)

    def _is_taps(self, ref: Ref, packed: str) -> bool:
        """Whether a packed axis is that of a weight's taps, whose fields only windows use."""
        section = self.sources[ref.symbol]
        beside = {*ref.type.axes} - {packed, *self.rows}
        return isinstance(section, Given) and self.rows[0] not in ref.type.axes and bool(beside)

    def _is_convolved(self, ref: Ref) -> bool:
        return isinstance(self.sources.get(ref.symbol), Convolution)

    def _is_packed(self, expr: Expr) -> bool:
        names = {dim.name for dim in self.plan.kernel.kernel.packed}
        return any(axis in names for axis in expr.type.axes)


def _split(
    parts: list[tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]], dim: Packed
) -> list[tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]]:
    """Each part, for each field of a packed axis."""
    return [
        (name, (*packed, (dim.name, name)), (*axes, *axes_of((inner,))))
        for _, packed, axes in parts
        for name, inner in dim.fields
    ]
