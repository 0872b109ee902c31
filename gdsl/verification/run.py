"""`verify`: every regime that applies, on every target, core count and precision asked for."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, field, frozen

from gdsl.capacity import require_fit
from gdsl.emitter import EmitOptions
from gdsl.errors import GdslError
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel
from gdsl.launch import output_dtype
from gdsl.options import TARGETS
from gdsl.pipeline import Compilation, Definition
from gdsl.regimes.catalogue import REGIMES
from gdsl.regimes.trial import Regime, Setting, Skip, Trial
from gdsl.regimes.typed import bind_dtypes
from gdsl.shapes import resolve_sizes
from gdsl.verification.bounds import bounds
from gdsl.verification.conditioning import conditioned
from gdsl.verification.judge import Allowed, Verdict, grouped, judge
from gdsl.verification.precisions import Precision, precisions
from gdsl.verification.report import Case, Skipped, VerifyReport
from gdsl.verification.witnesses import Result, group_axes, interpret, simulate

if TYPE_CHECKING:
    from gdsl.algorithm.plan import Plan
    from gdsl.algorithm.schedule_keys import Value

LNC_BITS = "lnc-bits"
"""The check that two cores give the bits of one; it compares two simulations."""
ALL_REGIMES: tuple[str, ...] = (*REGIMES, LNC_BITS)


@frozen
class Request:
    """What to verify, and in which combinations."""

    definition: Definition
    shape: str | Mapping[str, int] | None = None
    targets: Sequence[str] = TARGETS
    lnc: Sequence[int] = (1, 2)
    regimes: Sequence[str] = ALL_REGIMES
    precisions: Sequence[str] | None = None
    seed: int = 0
    settings: Mapping[str, Value] = field(factory=dict)
    file: str | None = None
    """What a user types for FILE, for the commands that repeat a case."""

    @cached_property
    def kernel(self) -> Kernel:
        """The object that semantics returned; the interpreter is given this and nothing later."""
        return self.definition.kernel

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The size of every axis."""
        return resolve_sizes(self.kernel, self.definition.shapes, self.shape)

    @cached_property
    def chosen(self) -> tuple[Precision, ...]:
        """The precisions that apply and are asked for."""
        schedule = self.definition.schedule(self.targets[0])
        written = {s.key: s.value for s in schedule.settings} if schedule else {}
        known = precisions(self.kernel, {**written, **self.settings})
        return tuple(p for name, p in known.items() if name in (self.precisions or known))


Progress = Callable[[int, int, str], None]


def verify(request: Request, progress: Progress | None = None) -> VerifyReport:
    """Run it all and return the verdict.

    `progress` is called with (regimes done, regimes in all, what runs now). Raises CompileError
    where the kernel does not compile, GdslError where the simulator refuses the emitted text.
    """
    work = _Work(request, progress)
    work.require_fit()
    ran: list[str] = []
    skipped: list[Skipped] = []
    cases: list[Case] = []
    for name in request.regimes:
        found = work.bits() if name == LNC_BITS else work.regime(REGIMES[name])
        if isinstance(found, Skip):
            skipped.append(Skipped(name, found.reason))
        else:
            ran.append(name)
            cases += found
        work.done += 1
    text = request.definition.file.source.text
    return VerifyReport(
        kernel=request.kernel.name,
        source_sha=hashlib.sha256(text.encode()).hexdigest(),
        seed=request.seed,
        schedule=work.plan(request.targets[0]).settings,
        run=tuple(ran),
        skipped=tuple(skipped),
        cases=tuple(cases),
    )


class _Work:
    """Compiles once per target and precision, and counts what is done."""

    def __init__(self, request: Request, progress: Progress | None) -> None:
        self.request = request
        self.done = 0
        self._progress = progress or (lambda done, total, what: None)
        self._compiled: dict[tuple[str, str], Compilation] = {}

    def compilation(self, target: str, precision: Precision | None) -> Compilation:
        name = precision.name if precision else ""
        if (target, name) not in self._compiled:
            given = precision.settings if precision else {}
            extra = {key: v for key, v in given.items() if self.plan(target).takes(key)}
            settings = {**self.request.settings, **extra}
            options = EmitOptions(target)
            self._compiled[target, name] = Compilation(self.request.definition, options, settings)
        return self._compiled[target, name]

    def require_fit(self) -> None:
        """Raise CompileError when the sizes asked for do not fit a target."""
        for target in self.request.targets:
            for lnc in self.request.lnc:
                require_fit(self.compilation(target, None), self.request.sizes, lnc)

    def plan(self, target: str) -> Plan:
        return self.compilation(target, None).plan

    def regime(self, regime: Regime) -> list[Case] | Skip:
        plan = self.plan(self.request.targets[0])
        chunk = int(plan.settings["chunk"]) if plan.form == "chunked" else None
        request = self.request
        setting = Setting(request.kernel, request.sizes, request.seed, chunk)
        trials = regime.trials(setting)
        if isinstance(trials, Skip):
            return trials
        return [case for trial in trials for case in self._trial(regime, trial)]

    def _trial(self, regime: Regime, trial: Trial) -> Iterator[Case]:
        request = self.request
        targets = request.targets[:1] if regime.once else request.targets
        cores = request.lnc[:1] if regime.once else request.lnc
        for precision in request.chosen:
            bound = bind_dtypes(request.kernel, precision.prefer)
            reference = interpret(request.kernel, trial, bound, "float64")
            for target in targets:
                compilation = self.compilation(target, precision)
                allowed = bounds(
                    request.kernel,
                    compilation.plan,
                    precision,
                    trial,
                    bound,
                    reference,
                    drifts=regime.once,
                )
                for lnc in cores:
                    result = self._simulate(regime.name, compilation, precision, trial, bound, lnc)
                    verdicts = self._judge(precision, bound, result, reference, allowed)
                    if precision.is_fp32 and not all(verdict.ok for verdict in verdicts):
                        raised = conditioned(request.kernel, trial, bound, reference, allowed)
                        verdicts = self._judge(precision, bound, result, reference, raised)
                    yield self._case(regime.name, trial, target, lnc, precision, result, verdicts)

    def _simulate(
        self,
        regime: str,
        compilation: Compilation,
        precision: Precision,
        trial: Trial,
        bound: Mapping[str, Dtype],
        lnc: int,
    ) -> Result:
        request, target = self.request, compilation.options.target
        what = f"{regime}, {precision.name}, {target}, LNC {lnc}"
        self._progress(self.done, len(request.regimes), what)
        program = compilation.program
        try:
            return simulate(request.kernel, program, trial, bound, lnc, precision.widen)
        except GdslError as error:
            note = f"while verifying {what}; repeat: {self._repro(regime, target, lnc, precision)}"
            error.diagnostics = tuple(evolve(d, notes=(*d.notes, note)) for d in error.diagnostics)
            raise

    def _judge(
        self,
        precision: Precision,
        bound: Mapping[str, Dtype],
        result: Result,
        reference: Result,
        allowed: Mapping[str, Allowed],
    ) -> tuple[Verdict, ...]:
        groups = group_axes(self.request.kernel)
        verdicts = []
        for output in self.request.kernel.outputs:
            name = output.name
            if name in reference.outputs:
                stored = Dtype.F32 if precision.widen else output_dtype(output.dtype, bound)
                got, expected = result.outputs[name], reference.outputs[name]
                axes = reference.axes[name]
                verdicts.append(judge(name, axes, groups, got, expected, allowed[name], stored))
        return tuple(verdicts)

    def bits(self) -> list[Case] | Skip:
        """Compare LNC 2 with LNC 1 bit for bit on Gaussian inputs."""
        request = self.request
        if set(request.lnc) != {1, 2}:
            return Skip("needs LNC 1 and LNC 2")
        shard = self.plan(request.targets[0]).settings["shard"]
        if shard != "heads":
            return Skip(f"the cores split {str(shard).replace('_', ' ')}, not heads")
        setting = Setting(request.kernel, request.sizes, request.seed)
        trials = REGIMES["gaussian"].trials(setting)
        if isinstance(trials, Skip):
            return trials
        return [case for trial in trials for case in self._bits(trial)]

    def _bits(self, trial: Trial) -> Iterator[Case]:
        request = self.request
        for precision in request.chosen:
            bound = bind_dtypes(request.kernel, precision.prefer)
            for target in request.targets:
                compilation = self.compilation(target, precision)
                one, two = (
                    self._simulate(LNC_BITS, compilation, precision, trial, bound, lnc)
                    for lnc in (1, 2)
                )
                verdicts = tuple(
                    judge(
                        name,
                        one.axes[name],
                        group_axes(request.kernel),
                        two.outputs[name],
                        one.outputs[name].astype(np.float64),
                        _exact(one, name, request.kernel),
                        None,
                    )
                    for name in one.outputs
                )
                yield self._case(LNC_BITS, trial, target, 2, precision, two, verdicts)

    def _case(
        self,
        regime: str,
        trial: Trial,
        target: str,
        lnc: int,
        precision: Precision,
        result: Result,
        verdicts: tuple[Verdict, ...],
    ) -> Case:
        repro = self._repro(regime, target, lnc, precision)
        return Case(
            regime,
            dict(trial.sizes),
            target,
            lnc,
            precision.name,
            result.instructions,
            verdicts,
            repro,
        )

    def _repro(self, regime: str, target: str, lnc: int, precision: Precision) -> str:
        request = self.request
        shape = ",".join(f"{axis}={size}" for axis, size in request.sizes.items())
        words = ["gdsl", "verify", request.file or request.kernel.name, "--regimes", regime]
        words += ["--shape", shape, "-t", target, "--precision", precision.name]
        words += [] if regime == LNC_BITS else ["--lnc", str(lnc)]
        words += ["--seed", str(request.seed)]
        for key, value in request.settings.items():
            words += ["--set", f"{key}={value}"]
        return shlex.join(words)


def _exact(result: Result, name: str, kernel: Kernel) -> Allowed:
    """Not a bit may differ."""
    groups = len(grouped(result.outputs[name], result.axes[name], group_axes(kernel)))
    return Allowed(np.zeros(groups), np.zeros(groups))
