"""Decays that no value of the declared ranges makes sensible: legal, and most likely a mistake."""

from __future__ import annotations

from gdsl.algorithm.domain import value_range
from gdsl.algorithm.plan import Plan
from gdsl.canonical.build import Builder
from gdsl.canonical.form import Delta
from gdsl.diagnostics.diagnostic import Diagnostic, Severity
from gdsl.ir.interval import show
from gdsl.ir.types import Interval

SUSPECT = "W0502"


def suspect_decays(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return a warning for each run whose decay is never positive, or never below 1.

    A gate of the wrong space does that: a log decay where a factor is needed, or one with its sign
    turned.
    """
    builder = Builder(tuple(axis.name for axis in plan.kernel.kernel.axes))
    found: list[Diagnostic] = []
    for run, canonical in plan.kernel.runs:
        if not isinstance(canonical, Delta) or canonical.decay.factor is None:
            continue
        factor, log = canonical.decay.factor, canonical.decay.log
        wrong = _wrong(value_range(factor, run, builder), log.type.range if log else None)
        if wrong is not None:
            message, help = wrong
            found.append(
                Diagnostic(
                    SUSPECT,
                    f"the decay of `{run.rule.name}` {message}",
                    run.span,
                    help=help,
                    severity=Severity.WARNING,
                )
            )
    return tuple(found)


def _wrong(factor: Interval, log: Interval | None) -> tuple[str, str] | None:
    """What is wrong with a decay in this range, and what to do."""
    if log is not None and log.lo >= 0 and log.hi > 0:
        return (
            f"is never below 1, since its logarithm lies in {show(log)}: the state grows",
            "a log decay is at most 0; turn its sign, or declare its range `in (-inf, 0]`",
        )
    if factor.lo < 0 and factor.hi <= 0:
        return (
            f"lies in {show(factor)}: it is never positive",
            "a log decay g enters the rule as `exp(g)`",
        )
    if factor.lo >= 1 and factor.hi > 1:
        return (
            f"lies in {show(factor)}: it is never below 1, and the state grows",
            "a decay is at most 1, such as `exp(g)` of a log decay g in (-inf, 0]",
        )
    return None
