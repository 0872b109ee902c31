"""What every schedule asks of states: rows to go through, and no use of them but by their rule."""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.refusal import refuse
from gdsl.algorithm.plan import Plan
from gdsl.canonical.form import Delta
from gdsl.ir.expr import Expr, Ref
from gdsl.ir.kernel import Kernel, Let, Run
from gdsl.ir.traverse import walk


def refuse_without_rows(plan: Plan) -> None:
    """Raise CompileError for a state that is a single matrix."""
    states = {state.symbol: state for state in plan.kernel.kernel.states}
    for run, form in plan.kernel.runs:
        state = states.get(run.state)
        if not isinstance(form, Delta) or state is None:
            continue
        if not {*state.type.axes} - {form.key_axis, form.value_axis}:
            raise refuse(
                f"the state `{state.name}` has no axis beside `{form.key_axis}` and "
                f"`{form.value_axis}`, and schedules go through heads",
                state.span,
                label="a single matrix",
                help="give it and the vectors of its rule an axis of heads, which may have size 1",
            )


def refuse_states_in_expressions(plan: Plan) -> None:
    """Raise CompileError for what is computed from a state outside of its rule."""
    kernel = plan.kernel.kernel
    states = {state.symbol for state in kernel.states}
    for run, _ in plan.kernel.runs:
        states |= {run.state_out} if run.states is None else {run.state_out, run.states}
    for expr, remedy in _computed(kernel):
        found = next((e for e in walk(expr) if isinstance(e, Ref) and e.symbol in states), None)
        if found is not None:
            raise refuse(
                f"a value that is computed from the state `{found.symbol.name}` is not emitted",
                expr.span,
                label="only a rule reads its state",
                help=remedy,
            )


def _computed(kernel: Kernel) -> Iterator[tuple[Expr, str]]:
    """Expressions of a kernel outside of rules, and what to do instead."""
    before = "compute it before the kernel and pass it as an input"
    for statement in kernel.body:
        match statement:
            case Let(value=value):
                yield value, before
            case Run(args=args):
                yield from ((arg, before) for arg in args)
    for output in kernel.outputs:
        if not isinstance(output.value, Ref):
            yield output.value, "return the state, and compute it after the kernel"
