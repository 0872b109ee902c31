"""Choosing the algorithm of a kernel: decode, recurrent or chunked, and the plan of each run."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from gdsl.algorithm.chunk_plan import ChunkPlan, DeltaSolve, DualSolve
from gdsl.algorithm.chunked import Refused, plan_chunks
from gdsl.algorithm.plan import (
    ChunkedRun,
    Exposed,
    Form,
    Plan,
    Resolved,
    RunPlan,
    TokenRun,
    effective_forms,
)
from gdsl.algorithm.schedule_keys import SCHEDULE_KEYS, Value
from gdsl.algorithm.settings import refuse_reads_of_two_bytes, refuse_without_effect, resolve
from gdsl.algorithm.unsafe import FORM, Unsafe, fail
from gdsl.canonical.build import Builder
from gdsl.canonical.form import Canonical, CanonicalKernel, Delta
from gdsl.ir.kernel import Kernel, Run, Schedule

# A scan of at most this many tokens (or one that returns every few states) is not worth a chunk.
FEW_TOKENS = 16


def choose(
    kernel: CanonicalKernel,
    settings: Mapping[str, Value],
    schedule: Schedule | None = None,
) -> Plan:
    """Return the plan of a kernel: every setting resolved, an algorithm for each run.

    `settings` (from `--set` or Python) win over `schedule`, the block of the file for the target.
    Raises CompileError on an unknown key, a value a key does not take, or an unsafe request.
    """
    resolved = {setting.key: setting for setting in resolve(schedule, settings)}
    asked = str(resolved["form"].value)
    _check_form(kernel, resolved["form"])
    resolved["chunk"] = _between_states(kernel, resolved["chunk"])
    builder = Builder(tuple(axis.name for axis in kernel.kernel.axes))
    runs: list[RunPlan] = []
    why: list[str] = []
    for run, canonical in kernel.runs:
        plan, sentences = _plan_run(kernel.kernel, run, canonical, resolved, builder)
        runs.append(plan)
        why += sentences
    form = _form(asked, runs)
    refuse_without_effect(resolved, effective_forms(form, kernel), kernel.kernel.name, why)
    refuse_reads_of_two_bytes(resolved["reads"], kernel.kernel)
    final = tuple(_final(setting, form, runs) for setting in resolved.values())
    return Plan(
        kernel=kernel,
        form=form,
        resolved=final,
        runs=tuple(runs),
        exposed=_exposed(kernel, final),
        why=tuple(why),
        span=kernel.span,
    )


def _plan_run(
    kernel: Kernel,
    run: Run,
    canonical: Canonical,
    settings: Mapping[str, Resolved],
    builder: Builder,
) -> tuple[RunPlan, list[str]]:
    name = run.rule.name
    token = TokenRun(run, canonical, span=run.span)
    asked = settings["form"].value
    if run.axis is None:
        return token, [f"`{name}`: one token (`step`), read and update of the state in one pass"]
    if not isinstance(canonical, Delta):
        return token, [f"`{name}`: a sliding window, token by token"]
    if asked == "recurrent":
        return token, [f"`{name}`: token by token, as asked"]
    if asked == "auto" and (few := _few_tokens(kernel, run)):
        return token, [f"`{name}`: token by token, {few}"]
    chunk = plan_chunks(kernel, run, canonical, settings, builder)
    if isinstance(chunk, ChunkPlan):
        why = [f"`{name}`: in chunks of {chunk.chunk} tokens", *chunk.why]
        return ChunkedRun(run, canonical, chunk, span=run.span), why
    if chunk.asked or asked == "chunked":
        raise fail(*chunk.reasons)
    return token, [_fallback(name, chunk)]


def _fallback(name: str, refused: Refused) -> str:
    reasons = "; ".join(
        reason.message + (f" (to run in chunks: {reason.remedy})" if reason.remedy else "")
        for reason in refused.reasons
    )
    return f"`{name}`: token by token, because {reasons}"


def _few_tokens(kernel: Kernel, run: Run) -> str | None:
    """Why a scan is too short for chunks, None when it is not."""
    limits = {axis.name: axis.at_most for axis in kernel.axes}
    limit = limits.get(run.axis or "")
    if limit is not None and limit <= FEW_TOKENS:
        return f"at most {limit} of them"
    if isinstance(run.every, int) and 0 < run.every < FEW_TOKENS:
        return f"its states are returned every {run.every}"
    if isinstance(run.every, int) and not _dividing(run.every):
        return f"its states are returned every {run.every}, where no chunk ends"
    return None


def _between_states(kernel: CanonicalKernel, chunk: Resolved) -> Resolved:
    """The longest chunk after which states are due, unless somebody wrote one."""
    due = [run.every for run, _ in kernel.runs if isinstance(run.every, int) and run.every > 0]
    fits = _dividing(*due)
    if chunk.origin != "default" or not fits or fits[-1] == chunk.value:
        return chunk
    return evolve(chunk, value=fits[-1], origin="derived")


def _dividing(*numbers: int) -> list[int]:
    """Lengths of chunks that divide all of the numbers, shortest first."""
    choices = sorted(int(choice) for choice in SCHEDULE_KEYS["chunk"].choices or ())
    return [chunk for chunk in choices if all(number % chunk == 0 for number in numbers)]


def _check_form(kernel: CanonicalKernel, form: Resolved) -> None:
    scans = [run for run, _ in kernel.runs if run.axis is not None]
    asked = str(form.value)
    wrong = None
    if asked == "decode" and scans:
        wrong = f"`{scans[0].rule.name}` scans `{scans[0].axis}`"
    if asked in ("recurrent", "chunked") and not scans:
        wrong = "every rule is run for one token (`step`)"
    if wrong:
        raise fail(
            Unsafe(
                FORM,
                f"`form={asked}` is not possible for kernel `{kernel.kernel.name}`",
                form.span or kernel.span,
                label=wrong,
                notes=("decode kernels use `step`, recurrent and chunked ones `scan[T]`",),
                remedy="leave out `form`, or change the kernel",
            )
        )


def _form(asked: str, runs: list[RunPlan]) -> Form:
    if all(run.run.axis is None for run in runs):
        return "decode"
    return "chunked" if any(isinstance(run, ChunkedRun) for run in runs) else "recurrent"


def _final(setting: Resolved, form: Form, runs: list[RunPlan]) -> Resolved:
    """Put what was derived in place of an automatic value."""
    derived: dict[str, Value] = {"form": form}
    for run in runs:
        if isinstance(run, ChunkedRun):
            derived |= _derived(run.chunk)
    value = derived.get(setting.key, setting.value)
    return setting if value == setting.value else evolve(setting, value=value, origin="derived")


def _derived(chunk: ChunkPlan) -> dict[str, Value]:
    derived: dict[str, Value] = {}
    if isinstance(chunk.solve, DeltaSolve | DualSolve):
        inverse = chunk.solve.inverse
        derived |= {
            "inverse": inverse.name,
            "leaf": inverse.leaf,
            "corrections": inverse.corrections,
        }
    subblock = getattr(chunk.segments, "subblock", None)
    return derived if subblock is None else derived | {"subblock": subblock}


def _exposed(kernel: CanonicalKernel, resolved: tuple[Resolved, ...]) -> tuple[Exposed, ...]:
    values = {setting.key: setting.value for setting in resolved}
    return tuple(
        Exposed(argument.name, argument.key, values[argument.key])
        for argument in kernel.kernel.call.arguments
        if argument.role == "schedule" and argument.key in values
    )
