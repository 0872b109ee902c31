"""What the window schedule needs to know of a kernel: one causal filter per channel."""

from __future__ import annotations

from attrs import frozen

from backends.nki.refusal import refuse
from backends.nki.schedules.window.taps import read_taps
from gdsl.algorithm.plan import Plan
from gdsl.canonical.build import Builder
from gdsl.canonical.form import Window
from gdsl.canonical.substitute import bind_arguments, substitute
from gdsl.ir.expr import Apply, Expr, Ref
from gdsl.ir.kernel import Input, Kernel, Let, Output, Run, State
from gdsl.ir.node import Symbol
from gdsl.source import Span


@frozen
class Filter:
    """A window rule over raw tokens, and what is done to its sums.

    Row `batch` and channel `channel` have a window along `axis` of the state. `older` is the axis
    of the state's columns that the taps before the newest weigh: all of them, or (`newest_inside`)
    all but the first place after the shift.
    """

    kernel: Kernel
    run: Run
    state: State
    batch: str
    channel: str
    axis: str
    newest_inside: bool
    """Whether the window the taps see includes the new token (W columns), or not (W - 1)."""
    token: Input
    weight: Input
    bias: Input | None
    silu: bool
    length: Input | None
    unless: Input | None
    out: Output
    new_state: Output | None
    """The window after the last token; None where the call does not return it."""
    token_windows: Output | None = None
    """The window after each token."""

    @property
    def selects(self) -> bool:
        """Whether a flag selects zeros for windows that lie side by side, in no pool."""
        return self.unless is not None and self.state.slots is None


def has_window(plan: Plan) -> bool:
    """Whether a kernel consists of one window rule, and so is for this schedule."""
    return len(plan.kernel.runs) == 1 and isinstance(plan.kernel.runs[0][1], Window)


def filter_of(plan: Plan) -> Filter:
    """Read a plan. Raises CompileError for what the window schedule does not emit."""
    kernel = plan.kernel.kernel
    run, window = plan.kernel.runs[0]
    assert isinstance(window, Window)
    return _Reader(kernel, run, window, Builder(tuple(axis.name for axis in kernel.axes))).filter()


@frozen
class _Reader:
    """Recognises raw inputs behind a window rule."""

    kernel: Kernel
    run: Run
    window: Window
    builder: Builder

    def filter(self) -> Filter:
        run, kernel = self.run, self.kernel
        state = next(s for s in kernel.states if s.symbol == run.state)
        self._check(state)
        token = self._input(self._bound(self.window.value), "the new column")
        weight, inside = read_taps(kernel, run, self.window, self.builder, self._defined)
        channels = [a for a in weight.type.axes if a in state.type.axes and a != self.window.axis]
        batches = [a for a in state.type.axes if a not in (*channels, self.window.axis)]
        if len(channels) != 1 or len(batches) != 1 or channels[0] != weight.type.axes[0]:
            raise self._refuse(
                "a window with one batch axis and one channel axis, and weights [channel, window]",
                state.span,
            )
        out, new_state, token_windows = self._outputs()
        silu, bias = self._epilogue(out, channels[0])
        inputs = {item.symbol: item for item in kernel.inputs}
        return Filter(
            kernel=kernel,
            run=run,
            state=state,
            batch=batches[0],
            channel=channels[0],
            axis=self.window.axis,
            newest_inside=inside,
            token=token,
            weight=weight,
            bias=bias,
            silu=silu,
            length=None if run.valid_len is None else inputs[run.valid_len],
            unless=None if state.unless is None else inputs[state.unless],
            out=out,
            new_state=new_state,
            token_windows=token_windows,
        )

    def _check(self, state: State) -> None:
        wrong = None
        if self.run.every not in (None, 1):
            wrong = "windows after every few tokens"
        elif len(self.window.emits) != 1:
            wrong = "several sums over a window"
        if wrong:
            raise refuse(f"the window schedule does not emit {wrong} yet", self.run.span)

    def _outputs(self) -> tuple[Output, Output | None, Output | None]:
        """The output, the new window, the windows after each token."""

        def holding(symbol: Symbol | None) -> list[Output]:
            outputs = self.kernel.outputs
            return [o for o in outputs if isinstance(o.value, Ref) and o.value.symbol == symbol]

        last, each = holding(self.run.state_out), holding(self.run.states)
        others = [o for o in self.kernel.outputs if o not in (*last, *each)]
        if len(last) > 1 or len(each) > 1 or len(others) != 1:
            raise self._refuse("one output, and each window once", self.kernel.span)
        return others[0], next(iter(last), None), next(iter(each), None)

    def _epilogue(self, out: Output, channel: str) -> tuple[bool, Input | None]:
        """Whether silu ends the kernel, and the bias before it."""
        value, silu = self._defined(out.value), False
        match value:
            case Apply(operator="mul", args=(left, Apply(operator="sigmoid", args=(right,)))) if (
                left == right
            ):
                value, silu = left, True
            case Apply(operator="mul", args=(Apply(operator="sigmoid", args=(left,)), right)) if (
                left == right
            ):
                value, silu = left, True
        bias = None
        match value:
            case Apply(operator="add", args=(left, right)):
                value, other = (left, right) if self._is_sum(left) else (right, left)
                bias = self._input(other, "the bias")
                if bias.type.axes != (channel,):
                    raise self._refuse(f"a bias [{channel}]", bias.span)
        if not self._is_sum(value):
            raise self._refuse(
                "the sum over the window as it is, with a bias, or through silu",
                out.span or self.kernel.span,
            )
        return silu, bias

    def _is_sum(self, expr: Expr) -> bool:
        return isinstance(expr, Ref) and expr.symbol == self.run.results[0]

    def _bound(self, expr: Expr) -> Expr:
        """An expression of the rule over the kernel's inputs."""
        return self._defined(bind_arguments(expr, self.run, self.builder))

    def _defined(self, expr: Expr) -> Expr:
        """An expression with the values of the kernel's names in place."""
        values: dict[Symbol, Expr] = {}
        for statement in self.kernel.body:
            if isinstance(statement, Let):
                values[statement.target] = substitute(statement.value, values, self.builder)
        return substitute(expr, values, self.builder)

    def _input(self, expr: Expr | None, what: str) -> Input:
        if isinstance(expr, Ref):
            for item in self.kernel.inputs:
                if item.symbol == expr.symbol:
                    return item
        raise self._refuse(f"{what} as an input tensor", expr.span if expr else self.run.span)

    def _refuse(self, what: str, span: Span | None) -> Exception:
        return refuse(f"the window schedule needs {what}", span or self.run.span)
