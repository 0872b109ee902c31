"""Choosing the algorithm of a kernel: decode, recurrent or chunked, and the plan of each run."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from gdsl.algorithm.plan import Exposed, Form, Plan, Resolved, TokenRun
from gdsl.algorithm.schedule_keys import Value
from gdsl.algorithm.settings import resolve
from gdsl.canonical.form import CanonicalKernel
from gdsl.ir.kernel import Schedule


def choose(
    kernel: CanonicalKernel,
    settings: Mapping[str, Value],
    schedule: Schedule | None = None,
) -> Plan:
    """Return the plan of a kernel: every setting resolved, an algorithm for each run.

    `settings` (from `--set` or Python) win over `schedule`, the block of the file for the target.
    Raises CompileError on an unknown key, a value a key does not take, or an unsafe request.
    """
    resolved = resolve(schedule, settings)
    scans = any(run.axis is not None for run, _ in kernel.runs)
    form: Form = "recurrent" if scans else "decode"
    why = (
        "decode: every rule is run for one token (`step`)"
        if not scans
        else "recurrent: token by token",
    )
    resolved = tuple(_derive(setting, form) for setting in resolved)
    return Plan(
        kernel=kernel,
        form=form,
        resolved=resolved,
        runs=tuple(TokenRun(run, canonical) for run, canonical in kernel.runs),
        exposed=_exposed(kernel, resolved),
        why=why,
    )


def _derive(setting: Resolved, form: Form) -> Resolved:
    if setting.key == "form" and setting.value == "auto":
        return evolve(setting, value=form, origin="derived")
    return setting


def _exposed(kernel: CanonicalKernel, resolved: tuple[Resolved, ...]) -> tuple[Exposed, ...]:
    values = {setting.key: setting.value for setting in resolved}
    return tuple(
        Exposed(argument.name, argument.key, values[argument.key])
        for argument in kernel.kernel.call.arguments
        if argument.role == "schedule" and argument.key is not None
    )
