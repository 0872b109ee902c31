"""The taps of a window rule: which tensor weighs the columns, and whether the newest is inside."""

from __future__ import annotations

from collections.abc import Callable

from backends.nki.refusal import refuse
from gdsl.canonical.build import Builder
from gdsl.canonical.form import Window
from gdsl.canonical.substitute import bind_arguments
from gdsl.ir.dims import Packed
from gdsl.ir.expr import Apply, Expr, Ref, Unpack
from gdsl.ir.kernel import Input, Kernel, Run


def read_taps(
    kernel: Kernel,
    run: Run,
    window: Window,
    builder: Builder,
    defined: Callable[[Expr], Expr],
) -> tuple[Input, bool]:
    """Return the weights, and whether the window they see holds the new column.

    It does in `sum[W](win * w)` after the shift; it does not in `sum[M](win * past) + x * now`
    with `past` and `now` the fields of one tensor. `defined` puts the values of the kernel's names
    in an expression. Raises CompileError for other sums.
    """
    emit = window.emits[0]

    def bound(expr: Expr) -> Expr:
        return defined(bind_arguments(expr, run, builder))

    taps = None if emit.taps is None else bound(emit.taps)
    if emit.after and emit.skip is None:
        return _tensor(kernel, taps, run), True
    token = bound(window.value)
    skip = None if emit.skip is None else bound(emit.skip)
    match taps, skip:
        case Unpack(arg=older) as past, Apply(operator="mul", args=(left, right)):
            weight = _tensor(kernel, older, run)
            now = right if left == token else left
            other = left if now is right else right
            if (
                not emit.after
                and isinstance(now, Unpack)
                and now.arg == older
                and other == token
                and _fields(weight, past.packed) == (past.field, now.field)
            ):
                return weight, False
    raise refuse(
        "a window needs one tensor of taps over its columns, the newest last, or over the columns "
        "before the newest token and that token",
        emit.span or run.span,
    )


def _tensor(kernel: Kernel, expr: Expr | None, run: Run) -> Input:
    if isinstance(expr, Ref):
        for item in kernel.inputs:
            if item.symbol == expr.symbol:
                return item
    raise refuse("the taps of a window must be an input tensor", run.span)


def _fields(weight: Input, packed: str) -> tuple[str, ...]:
    """The fields of a packed dimension of the weights, in order."""
    for dim in weight.dims:
        if isinstance(dim, Packed) and dim.name == packed:
            return tuple(name for name, _ in dim.fields)
    return ()
