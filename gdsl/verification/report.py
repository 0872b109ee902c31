"""The verdict as a value: cases, what was skipped, and how it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import asdict, field, frozen

from gdsl.errors import GdslError
from gdsl.verification.judge import Verdict
from gdsl.version import __version__

SCHEMA = 1
_SHOWN = 6
"""Cases that disagree and are described in the text."""


@frozen
class Skipped:
    """A regime that did not run, and why."""

    name: str
    reason: str


@frozen
class Case:
    """One trial on one target, number of cores and precision."""

    regime: str
    shape: Mapping[str, int]
    target: str
    lnc: int
    precision: str
    settings: Mapping[str, Any]
    """Schedule keys of this variant, where the kernel lets its caller choose."""
    instructions: int
    outputs: tuple[Verdict, ...]
    repro: str
    raised: bool
    """Whether the bounds were raised to what conditioning, or drawn errors, leave open."""

    @property
    def ok(self) -> bool:
        """Whether every output is within its bounds."""
        return all(verdict.ok for verdict in self.outputs)


@frozen(repr=False)
class VerifyReport:
    """What `gdsl verify` found."""

    kernel: str
    source_sha: str
    seed: int
    schedule: Mapping[str, Any]
    run: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    cases: tuple[Case, ...] = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether all cases agree, and there is at least one."""
        return bool(self.cases) and all(case.ok for case in self.cases)

    def __repr__(self) -> str:
        failed = sum(not case.ok for case in self.cases)
        verdict = f"{failed} of {len(self.cases)} cases disagree" if failed else "ok"
        return f"<gdsl verify {self.kernel}: {verdict}, {len(self.cases)} cases>"

    def assert_ok(self) -> None:
        """Raise GdslError with the failures when the witnesses disagree."""
        if not self.ok:
            raise GdslError("\n".join(failure_lines(self)) or f"{self!r}: nothing ran")

    def to_json(self) -> dict[str, Any]:
        """Return the document that `gdsl/schemas/verify.schema.json` describes."""
        return {
            "schema": SCHEMA,
            "gdsl": __version__,
            "kernel": self.kernel,
            "source_sha": self.source_sha,
            "ok": self.ok,
            "seed": self.seed,
            "schedule": dict(self.schedule),
            "regimes": {
                "run": list(self.run),
                "skipped": [asdict(skip) for skip in self.skipped],
            },
            "cases": [_case_json(case) for case in self.cases],
        }


def _case_json(case: Case) -> dict[str, Any]:
    return {
        "regime": case.regime,
        "shape": dict(case.shape),
        "target": case.target,
        "lnc": case.lnc,
        "precision": case.precision,
        "settings": dict(case.settings),
        "instructions": case.instructions,
        "outputs": [_verdict_json(verdict) for verdict in case.outputs],
        "repro": case.repro,
        "raised": case.raised,
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "name": verdict.name,
        "e_rms": _number(verdict.e_rms),
        "e_max": _number(verdict.e_max),
        "bound_rms": verdict.bound_rms,
        "bound_max": verdict.bound_max,
        "vendor": _number(verdict.vendor),
        "at": {
            **verdict.at,
            "value": _number(verdict.value),
            "expected": _number(verdict.expected),
        },
        "ok": verdict.ok,
    }


def _number(value: float) -> float | str:
    """JSON has no NaN and no infinity: they are written as "nan", "inf", "-inf"."""
    return value if value - value == 0 else str(value)


# ---- as text


def to_text(report: VerifyReport) -> str:
    """Return a line per regime, what was skipped, the failures, and the verdict.

    Of every regime: the error nearest its bound, the largest single error, and the largest share of
    what the comparator of the vendor's tests admits.
    """
    return "\n".join(_lines(report)) + "\n"


def _lines(report: VerifyReport) -> Iterator[str]:
    width = max((len(name) for name in (*report.run, *_skipped_names(report))), default=0)
    yield f"{'regime':<{width}}  cases  worst e_rms of bound   worst e_max  vendor  output, where"
    for name in report.run:
        yield from _regime_line(name, [c for c in report.cases if c.regime == name], width)
    for skip in report.skipped:
        yield f"{skip.name:<{width}}  skipped: {skip.reason}"
    yield from failure_lines(report)
    raised = [case.precision for case in report.cases if case.raised]
    if raised:
        counts = ", ".join(f"{raised.count(name)} {name}" for name in dict.fromkeys(raised))
        yield f"judged by what inputs or rounding leave open, one bit up or down: {counts}"
    targets = ", ".join(dict.fromkeys(case.target for case in report.cases))
    cores = " and ".join(dict.fromkeys(str(case.lnc) for case in report.cases))
    failed = sum(not case.ok for case in report.cases)
    if failed:
        yield f"{report.kernel}: {failed} of {len(report.cases)} cases disagree"
    elif not report.cases:
        yield f"{report.kernel}: nothing ran"
    else:
        yield f"{report.kernel}: {len(report.cases)} cases agree ({targets}; LNC {cores})"


def _skipped_names(report: VerifyReport) -> list[str]:
    return [skip.name for skip in report.skipped]


def _regime_line(name: str, cases: list[Case], width: int) -> Iterator[str]:
    worst = max(
        ((case, verdict) for case in cases for verdict in case.outputs),
        key=lambda pair: _share(pair[1]),
        default=None,
    )
    if worst is None:
        return
    case, verdict = worst
    largest = max(v.e_max for c in cases for v in c.outputs)
    vendor = max(v.vendor for c in cases for v in c.outputs)
    mark = "" if all(c.ok for c in cases) else "  DISAGREES"
    yield (
        f"{name:<{width}}  {len(cases):5d}  {verdict.e_rms:11.1e} of {verdict.bound_rms:<7.1e}"
        f"  {largest:11.1e}  {vendor:6.2f}  {verdict.name} ({', '.join(_way(case))}){mark}"
    )


def _way(case: Case) -> tuple[str, ...]:
    return (case.precision, case.target, *map(str, case.settings.values()))


def _share(verdict: Verdict) -> float:
    if verdict.e_rms == 0:
        return 0.0
    return verdict.e_rms / verdict.bound_rms if verdict.bound_rms else float("inf")


def failure_lines(report: VerifyReport) -> Iterator[str]:
    """Yield what is wrong with the first cases that disagree, and the commands that repeat them."""
    failed = [case for case in report.cases if not case.ok]
    for case in failed[:_SHOWN]:
        for verdict in case.outputs:
            if not verdict.ok:
                yield from _verdict_lines(case, verdict)
        yield f"  repeat: {case.repro}"
    if len(failed) > _SHOWN:
        yield f"and {len(failed) - _SHOWN} more cases; `--json` lists them all"


def _verdict_lines(case: Case, verdict: Verdict) -> Iterator[str]:
    place = ", ".join(f"{axis} {index}" for axis, index in verdict.at.items())
    limit = "" if verdict.bound_max is None else f" (bound {verdict.bound_max:.1e})"
    yield (
        f"{case.regime}, LNC {case.lnc}, {', '.join(_way(case))}: "
        f"`{verdict.name}` is {verdict.value:.9g} at {place}, expected {verdict.expected:.9g}"
    )
    yield (
        f"  e_rms {verdict.e_rms:.2e} (bound {verdict.bound_rms:.1e}), "
        f"e_max {verdict.e_max:.2e}{limit}, vendor's comparator {verdict.vendor:.2f} of 1"
    )
