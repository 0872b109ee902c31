"""Domain analysis: what is known about the values of one run, from declared and derived ranges.

Nothing is decided here; `chunked` decides. A bound of infinity means that nothing is known.
"""

from __future__ import annotations

import math

from attrs import frozen

from gdsl.algorithm.norms import facts_of, square_norm
from gdsl.canonical.build import Builder
from gdsl.canonical.form import DecayKind, Delta
from gdsl.canonical.sources import dependencies, sources
from gdsl.canonical.substitute import bind_arguments
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Kernel, Run
from gdsl.ir.types import DtypeVar, Interval


@frozen
class Domain:
    """Facts about one run of a delta rule.

    `log` is the log decay over the kernel's names (None: no decay, or no logarithm is known),
    `log_range` its range. `read`, `key`, `erase` are bounds on the Euclidean norms. `operands` is
    the coarsest dtype that the inputs of the run may have.
    """

    log: Expr | None
    log_range: Interval
    read: float
    key: float
    erase: float
    operands: Dtype


def domain_of(kernel: Kernel, run: Run, form: Delta, builder: Builder) -> Domain:
    """Return what is known about a run's decay, norms and operands."""
    facts = facts_of(kernel)
    log = _log(run, form, builder)

    def norm(expr: Expr | None) -> float:
        if expr is None:
            return 0.0
        bound = bind_arguments(expr, run, builder)
        return math.sqrt(square_norm(bound, form.key_axis, facts))

    return Domain(
        log=log,
        log_range=log.type.range if log is not None else Interval(),
        read=norm(form.read.vector if form.read else None),
        key=norm(form.write.key if form.write else None),
        erase=norm(form.erase),
        operands=_operands(kernel, run),
    )


def value_range(expr: Expr | None, run: Run, builder: Builder) -> Interval:
    """Return the range of an expression over a rule's parameters; [1, 1] for None."""
    if expr is None:
        return Interval(1.0, 1.0)
    return bind_arguments(expr, run, builder).type.range


def _log(run: Run, form: Delta, builder: Builder) -> Expr | None:
    """The log decay: as the text shows it, or the logarithm of a factor that is never 0."""
    decay = form.decay
    if decay.kind is DecayKind.NONE or decay.factor is None:
        return None
    if decay.log is not None:
        return decay.log
    factor = bind_arguments(decay.factor, run, builder)
    low = factor.type.range
    if low.lo > 0 or (low.lo == 0 and low.lo_open):
        return builder.apply("log", factor, span=factor.span)
    return None


def _operands(kernel: Kernel, run: Run) -> Dtype:
    """The coarsest float dtype among the inputs that the run's arguments come from."""
    used = sources(run.args, dependencies(kernel))
    choices: set[Dtype] = set()
    for item in kernel.inputs:
        if item.symbol in used:
            choices |= set(item.dtype.choices) if isinstance(item.dtype, DtypeVar) else {item.dtype}
    for coarse in (Dtype.BF16, Dtype.F16):
        if coarse in choices:
            return coarse
    return Dtype.F32
