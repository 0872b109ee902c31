"""`verify`: every regime that applies, on every target, core count and precision asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from gdsl.regimes.trial import Skip
from gdsl.verification.parallel import run_regimes
from gdsl.verification.report import Case, Skipped, VerifyReport
from gdsl.verification.request import Request
from gdsl.verification.work import Work

Progress = Callable[[int, int, str], None]
"""Called with (regimes done, regimes in all, what runs now)."""


def verify(request: Request, progress: Progress | None = None, jobs: int = 1) -> VerifyReport:
    """Run it all and return the verdict, the same whatever the number of `jobs` (processes).

    Raises CompileError where the kernel does not compile or the sizes do not fit a target,
    GdslError where the simulator refuses the emitted text, UsageError for a precision that the
    kernel does not have.
    """
    show = progress or (lambda done, total, what: None)
    work = Work(request)
    _ = request.chosen
    work.require_fit()
    found: dict[str, list[Case] | Skip] = {}
    if jobs > 1 and len(request.regimes) > 1:
        found = run_regimes(request, jobs, show)
    else:
        for regime in request.regimes:
            show(len(found), len(request.regimes), regime)
            found[regime] = work.run(regime)
    return _report(request, work, found)


def _report(
    request: Request, work: Work, found: Mapping[str, Sequence[Case] | Skip]
) -> VerifyReport:
    skipped = [Skipped(name, r.reason) for name, r in found.items() if isinstance(r, Skip)]
    ran = {name: r for name, r in found.items() if not isinstance(r, Skip)}
    text = request.definition.file.source.text
    return VerifyReport(
        kernel=request.kernel.name,
        source_sha=hashlib.sha256(text.encode()).hexdigest(),
        seed=request.seed,
        schedule=work.plan(request.targets[0], {}).settings,
        run=tuple(ran),
        skipped=tuple(skipped),
        cases=tuple(case for cases in ran.values() for case in cases),
    )
