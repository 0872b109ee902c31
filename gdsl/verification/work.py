"""The work of one verification, regime by regime.

Within a trial the reference is computed once for each binding of dtypes, the
bounds once for each plan, and every target, core count and variant is compared with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen

from gdsl.capacity import explaining, require_fit
from gdsl.emitter import EmitOptions, NkiProgram
from gdsl.errors import GdslError
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel
from gdsl.launch import output_dtype
from gdsl.pipeline import Compilation
from gdsl.regimes.catalogue import REGIMES
from gdsl.regimes.trial import Outcome, Setting, Skip, Trial
from gdsl.regimes.typed import bind_dtypes
from gdsl.verification.bounds import bounds
from gdsl.verification.conditioning import conditioned
from gdsl.verification.drawn import with_drawn_errors
from gdsl.verification.exact import Exact, run_exactly
from gdsl.verification.judge import Allowed, Verdict, grouped, judge
from gdsl.verification.precisions import Precision
from gdsl.verification.report import Case
from gdsl.verification.request import LNC_BITS, Request
from gdsl.verification.witnesses import Result, group_axes, simulate

if TYPE_CHECKING:
    from gdsl.algorithm.plan import Plan
    from gdsl.algorithm.schedule_keys import Value

Settings = Mapping[str, "Value"]


@frozen
class _Way:
    """One combination in which a trial runs."""

    precision: Precision
    target: str
    lnc: int
    settings: Settings


class Work:
    """What the regimes of one request share: what is compiled."""

    def __init__(self, request: Request) -> None:
        self.request = request

    def compilation(self, target: str, settings: Settings) -> Compilation:
        """Return the kernel of a variant on its way to a target; every precision is of one text."""
        chosen = {**self.request.settings, **settings}
        return self.request.definition.compilation(EmitOptions(target), chosen)

    def plan(self, target: str, settings: Settings) -> Plan:
        """Return the plan of a variant."""
        return self.compilation(target, settings).plan

    def require_fit(self) -> None:
        """Raise CompileError when the sizes asked for do not fit a target."""
        for target in self.request.targets:
            for lnc in self.request.lnc:
                require_fit(self.compilation(target, {}), self.request.sizes, lnc)

    def run(self, regime: str) -> list[Case] | Skip:
        """Run one regime; regimes share nothing but what is compiled."""
        if regime == LNC_BITS and set(self.request.lnc) != {1, 2}:
            return Skip("needs LNC 1 and LNC 2")
        trials = self._trials(regime)
        if isinstance(trials, Skip):
            return trials
        judged = self._bits if regime == LNC_BITS else self._trial
        return [case for trial in trials for case in judged(regime, trial)]

    def _trials(self, regime: str) -> Outcome:
        request = self.request
        setting = Setting(request.kernel, request.sizes, request.seed, request.chunk)
        if regime != LNC_BITS:
            return REGIMES[regime].trials(setting)
        shard = self.plan(request.targets[0], {}).settings["shard"]
        if shard != "heads":
            return Skip(f"the cores split {str(shard).replace('_', ' ')}, not heads")
        return REGIMES["gaussian"].trials(setting)

    def _trial(self, regime: str, trial: Trial) -> Iterator[Case]:
        """Compare every way with the reference, which is computed once for each dtype."""
        request, once = self.request, REGIMES[regime].once or trial.once
        trials: dict[tuple[object, ...], Exact] = {}
        admitted: dict[tuple[object, ...], Mapping[str, Allowed]] = {}
        wider: dict[tuple[object, ...], Mapping[str, Allowed]] = {}
        for way in self._ways(once=once):
            bound = bind_dtypes(request.kernel, way.precision.prefer)
            dtypes = tuple(bound.items())
            if dtypes not in trials:
                trials[dtypes] = run_exactly(request.kernel, trial, bound)
            exact = trials[dtypes]
            plan = self.plan(way.target, way.settings)
            same = (way.precision.name, *plan.settings.items())
            if same not in admitted:
                drifts = REGIMES[regime].once
                admitted[same] = bounds(exact, plan, way.precision, drifts=drifts)
            result = self._simulate(regime, way, trial, bound)
            verdicts = self._judge(way, exact, result, admitted[same])
            raised = not all(verdict.ok for verdict in verdicts)
            if raised:
                if same not in wider:
                    wider[same] = _raised(way.precision, exact, plan, admitted[same])
                verdicts = self._judge(way, exact, result, wider[same])
            yield self._case(regime, trial, way, result, verdicts, raised=raised)

    def _ways(self, *, once: bool) -> Iterator[_Way]:
        """Yield the combinations: all, or one target and one number of cores."""
        request = self.request
        for precision in request.chosen:
            for settings in request.variants:
                for target in request.targets[:1] if once else request.targets:
                    for lnc in request.lnc[:1] if once else request.lnc:
                        yield _Way(precision, target, lnc, settings)

    def _simulate(self, regime: str, way: _Way, trial: Trial, bound: Mapping[str, Dtype]) -> Result:
        request, program = self.request, self._program(way)
        try:
            with explaining(self.compilation(way.target, way.settings), trial.sizes, way.lnc):
                return simulate(request.kernel, program, trial, bound, way.lnc, way.precision.widen)
        except GdslError as error:
            what = f"{regime}, {way.precision.name}, {way.target}, LNC {way.lnc}"
            note = f"while verifying {what}; repeat: {self._repeat(regime, way)}"
            error.diagnostics = tuple(evolve(d, notes=(*d.notes, note)) for d in error.diagnostics)
            raise

    def _program(self, way: _Way) -> NkiProgram:
        return self.compilation(way.target, way.settings).program

    def _judge(
        self, way: _Way, exact: Exact, result: Result, allowed: Mapping[str, Allowed]
    ) -> tuple[Verdict, ...]:
        groups, reference = group_axes(self.request.kernel), exact.reference
        verdicts = []
        for output in self.request.kernel.outputs:
            name = output.name
            if name in reference.outputs:
                widen = way.precision.widen
                stored = Dtype.F32 if widen else output_dtype(output.dtype, exact.bound)
                got, expected = result.outputs[name], reference.outputs[name]
                axes = reference.axes[name]
                verdicts.append(judge(name, axes, groups, got, expected, allowed[name], stored))
        return tuple(verdicts)

    def _bits(self, regime: str, trial: Trial) -> Iterator[Case]:
        """Compare LNC 2 with LNC 1 bit for bit."""
        kernel = self.request.kernel
        for way in self._ways(once=False):
            if way.lnc != 2:
                continue
            bound = bind_dtypes(kernel, way.precision.prefer)
            one = self._simulate(regime, evolve(way, lnc=1), trial, bound)
            two = self._simulate(regime, way, trial, bound)
            verdicts = tuple(
                judge(
                    name,
                    one.axes[name],
                    group_axes(kernel),
                    two.outputs[name],
                    one.outputs[name].astype(np.float64),
                    _same_bits(one, name, kernel),
                    None,
                )
                for name in one.outputs
            )
            yield self._case(regime, trial, way, two, verdicts, raised=False)

    def _case(
        self,
        regime: str,
        trial: Trial,
        way: _Way,
        result: Result,
        verdicts: tuple[Verdict, ...],
        *,
        raised: bool,
    ) -> Case:
        return Case(
            regime,
            dict(trial.sizes),
            way.target,
            way.lnc,
            way.precision.name,
            dict(way.settings),
            result.instructions,
            verdicts,
            self._repeat(regime, way),
            raised,
        )

    def _repeat(self, regime: str, way: _Way) -> str:
        return self.request.repeat(regime, way.target, way.lnc, way.precision.name, way.settings)


def _raised(
    precision: Precision, exact: Exact, plan: Plan, allowed: Mapping[str, Allowed]
) -> Mapping[str, Allowed]:
    """The bounds raised to what no program can avoid, where that is more."""
    raised = conditioned(exact, allowed)
    if precision.is_fp32 or plan.form != "chunked":
        return raised
    return with_drawn_errors(exact, plan, raised)


def _same_bits(result: Result, name: str, kernel: Kernel) -> Allowed:
    """Not a bit may differ."""
    groups = len(grouped(result.outputs[name], result.axes[name], group_axes(kernel)))
    return Allowed(np.zeros(groups), np.zeros(groups))
