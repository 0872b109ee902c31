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

from backends.nki.program.build import Names
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
from backends.nki.schedules.block.sources import Sources
from backends.nki.schedules.window.taps import read_taps
from gdsl.algorithm.plan import Plan
from gdsl.canonical.build import Builder
from gdsl.canonical.form import Delta, Window
from gdsl.canonical.substitute import bind_arguments, retyped, substitute
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Apply, Cast, Expr, Reduce, Ref, Unpack
from gdsl.ir.kernel import Input, Kernel, Let, Output, Run, Statement
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
    sources = Sources(kernel, rows, run.axis)
    return _Cutter(kernel, sources, (delta.key_axis, delta.value_axis), windows).sections()


@define(eq=False)
class _Cutter:
    """Walks the body once, statement by statement."""

    kernel: Kernel
    sources: Sources
    vectors: tuple[str, str]
    """The delta rule's key axis and its value axis."""
    windows: dict[Symbol, tuple[Run, Window]]
    """The window rules, by their states."""
    builder: Builder = field(init=False)
    projections: dict[tuple[Expr, Expr, Input | None], Projection] = field(factory=dict)
    """By what moves, the weight and its scale."""
    convolutions: dict[Symbol, Convolution] = field(factory=dict)
    """By the symbol of their sums."""
    values: dict[Port, Value] = field(factory=dict)
    known: dict[Symbol, Expr] = field(factory=dict)
    """Names whose value is put in their place: they have a packed axis, or are fields."""
    text: dict[Symbol, Expr] = field(factory=dict)
    """Definitions over the kernel's inputs, as they are written."""
    title: tuple[str, Expr] | None = None
    """The definition at hand: its name and its value."""
    fresh: count[int] = field(init=False)
    """Numbers of new symbols; those of the text are not negative."""

    def __attrs_post_init__(self) -> None:
        self.builder = Builder(tuple(axis.name for axis in self.kernel.axes))
        self.fresh = count(-1, -1)

    def sections(self) -> Sections:
        """Return the sections of the whole kernel."""
        body: list[Statement] = []
        for statement in self.kernel.body:
            match statement:
                case Let(target=target, value=value):
                    self.text[target] = substitute(value, self.text, self.builder)
                    self.title = (target.name, value)
                    new = self._rewritten(value)
                    if self.sources.is_packed(new) or isinstance(new, Ref):
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
            for output in self.kernel.outputs
            if output.name not in windows
        )
        early, shown = needed(body), mentioned(outputs)
        body = [s for s in body if isinstance(s, Run) or s.target in early | behind(body, shown)]
        shown = mentioned((*body, *outputs))
        # What is loaded is known by its name, and fields of two tensors may be called alike.
        names = Names({item.name for item in self.kernel.inputs})
        values = tuple(
            evolve(v, name=names.fresh(v.name), late=v.symbol not in early)
            for v in self.values.values()
            if v.symbol in shown
        )
        return Sections(
            kernel=self.kernel,
            entry=self.sources.entry,
            key_axis=self.vectors[0],
            projections=tuple(self.projections.values()),
            convolutions=tuple(self.convolutions.values()),
            values=values,
            body=tuple(body),
            outputs=outputs,
            mentioned=frozenset(shown | addresses(body, self.kernel.states)),
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
            ) if self._is_hidden(axis) and (scale := self.sources.scale(total, factor)) is not None:
                return self._projection(expr, total, axis, scale)
            case Unpack(packed=packed, field=name, arg=arg):
                return self._unpacked(self._rewritten(arg), packed, name, expr)
            case _:
                return self._over(expr, self._rewritten)

    def _finished(self, expr: Expr) -> Expr:
        """Return a rewritten expression over fields, for what is left of the text."""
        activated = silu_of(expr)
        if activated is not None and self.sources.is_convolved(activated):
            return self._value(self.sources.port(activated, (), silu=True), expr)
        if isinstance(expr, Ref):
            if isinstance(self.sources.of(expr), Projection | Convolution):
                return self._value(self.sources.port(expr, ()), expr)
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
        if activated is not None and self.sources.is_convolved(activated):
            return self._value(self.sources.port(activated, ((packed, name),), silu=True), whole)
        match arg:
            case Ref() if self.sources.of(arg) is not None:
                if self.sources.is_taps(arg, packed):
                    return retyped(whole, (arg,), self.builder)
                return self._value(self.sources.port(arg, ((packed, name),)), whole)
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
            axes = self.builder.axes(self.sources.axes(port))
            name = port.field.name
            symbol = Symbol(name, next(self.fresh))
            dtype = port.section.input.dtype if isinstance(port.section, Given) else Dtype.F32
            self.values[port] = Value(symbol, name, Type(axes, dtype), port)
        value = self.values[port]
        return Ref(value.symbol, value.type, span=like.span)

    # ---- sections

    def _projection(self, expr: Expr, total: Reduce, axis: str, scale: Input | None = None) -> Expr:
        """A contraction over a hidden axis, times the scale of each column."""
        factors = self._factors(self._rewritten(total.arg), axis)
        if factors is None:
            raise refuse(
                f"`sum[{axis}]` must be the product of one value per entry and a weight "
                f"[{axis}, ...]",
                expr.span,
                help="pass what is multiplied with the weight to this kernel as an input",
            )
        moving, weight = factors
        rounded, operand = rounding(moving)
        source, tensor = self.sources.moving(operand), self.sources.weight(weight, axis)
        key = moving, weight, scale
        if key not in self.projections:
            assert source is not None
            assert tensor is not None
            named = self.title is not None and self.title[1] is expr
            name = self.title[0] if self.title and named else f"{tensor.name}_sum"
            symbol = Symbol(name, next(self.fresh))
            found = Projection(symbol, axis, source, tensor, rounded, scale)
            self.projections[key] = found
            self.sources.by_symbol[symbol] = found
        return Ref(self.projections[key].symbol, expr.type, span=expr.span)

    def _factors(self, arg: Expr, axis: str) -> tuple[Expr, Expr] | None:
        """What moves and its weight, where a contraction over `axis` is one of these two."""
        if not (isinstance(arg, Apply) and arg.operator == "mul"):
            return None
        moving, weight = arg.args
        if self.sources.weight(moving, axis) is not None:
            moving, weight = weight, moving
        if self.sources.weight(weight, axis) is None:
            return None
        return (moving, weight) if self.sources.moving(rounding(moving)[1]) is not None else None

    def _convolution(self, run: Run, window: Window) -> None:
        state = next(s for s in self.kernel.states if s.symbol == run.state)
        if len(window.emits) != 1:
            raise refuse("several sums over a window are not emitted yet", run.span)
        if state.unless is not None and state.slots is None:
            raise refuse(
                "a flag that starts windows from zeros, in no pool, is not emitted beside a rule",
                state.span,
                help="keep windows in a pool of slots, or clear them before the call",
            )
        result = next(
            r
            for r, p in zip(run.results, run.rule.results, strict=True)
            if p == window.emits[0].result
        )
        value = self._rewritten(bind_arguments(window.value, run, self.builder))
        rounded, token = rounding(value)
        weight, inside = read_taps(self.kernel, run, window, self.builder, self._written)
        columns = {a for a in weight.type.axes if a not in state.type.axes}
        fields = self.sources.fields(weight, (window.axis, *columns), result.name)
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
        self.sources.by_symbol[result] = found

    def _token(self, token: Expr, part: Field, run: Run) -> Port:
        """Where the raw tokens of a field come from."""
        if isinstance(token, Ref):
            if self.sources.of(token) is not None:
                return self.sources.port(token, part.packed)
            for value in self.values.values():
                if value.symbol == token.symbol:
                    return value.port
        raise refuse("the new column of a window must be an input or a projection", run.span)

    def _outputs(self, symbol: Symbol | None) -> tuple[Output, ...]:
        return tuple(
            output
            for output in self.kernel.outputs
            if isinstance(output.value, Ref) and output.value.symbol == symbol
        )

    def _is_hidden(self, axis: str) -> bool:
        return axis not in (*self.sources.rows, *self.vectors, self.sources.token)
