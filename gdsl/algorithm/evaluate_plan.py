"""A plan evaluated on numpy arrays: the same algorithm, and on request the same rounding.

float64 shows that the algorithm is the recurrence (equal to the interpreter to 1e-10); "plan"
rounds every matmul operand as the plan does, and what a window hands on (`handed_on`), and gives
the bound that a bf16 kernel is judged by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gdsl.algorithm.evaluate_run import run_chunks
from gdsl.algorithm.handed_on import round_handed_on
from gdsl.algorithm.plan import ChunkedRun, Plan
from gdsl.algorithm.precision import EXACT, Precision
from gdsl.canonical.evaluate import RunInput, RunOutput, run_tokens
from gdsl.canonical.evaluate_kernel import DECLARED, FLOAT32, FLOAT64, evaluate_kernel
from gdsl.canonical.values import Named, Scope
from gdsl.canonical.values import evaluate as value_of
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Run
from gdsl.ir.node import Symbol

Array = NDArray[Any]
_ARITHMETIC = {"float64": FLOAT64, "float32": FLOAT32, "plan": DECLARED}


def evaluate(
    plan: Plan,
    arguments: Mapping[str, Array | float | int | bool],
    precision: Literal["float64", "float32", "plan"] = "float64",
    errors: np.random.Generator | None = None,
) -> dict[str, Array]:
    """Return the outputs by name, computed by the plan's algorithm.

    `precision` "float64" and "float32" round nothing but the arithmetic; "plan" computes in f32
    with matmul operands in the plan's operand dtype and casts and outputs as declared; with
    `errors` operands are rounded up or down at random. Raises SizeError when shapes do not
    fit.
    """
    runs = {run.run.state_out: run for run in plan.runs}
    operands = _operands(arguments) if precision == "plan" else None

    def run_one(
        run: Run, given: RunInput, values: Mapping[Symbol, Named], scope: Scope
    ) -> RunOutput:
        planned = runs[run.state_out]
        if not isinstance(planned, ChunkedRun):
            return run_tokens(run, planned.canonical, given, scope)
        segments = planned.chunk.segments
        log = value_of(segments.log, values, scope) if segments is not None else None
        rounding = Precision(scope.dtype, planned.chunk.operands or operands, errors)
        return run_chunks(
            run,
            planned.chunk,
            given,
            log,
            scope,
            rounding if precision == "plan" else _exact(scope),
        )

    kernel = plan.kernel.kernel
    if operands is not None and any(isinstance(run, ChunkedRun) for run in plan.runs):
        kernel = round_handed_on(plan, operands)
    return evaluate_kernel(kernel, arguments, run_one, _ARITHMETIC[precision])


def _exact(scope: Scope) -> Precision:
    return EXACT if scope.dtype == np.float64 else Precision(scope.dtype, None)


def _operands(arguments: Mapping[str, Array | float | int | bool]) -> Dtype:
    """The coarsest float dtype among the arrays of the call."""
    given = {value.dtype for value in arguments.values() if isinstance(value, np.ndarray)}
    for dtype in (Dtype.BF16, Dtype.F16):
        if dtype.numpy in given:
            return dtype
    return Dtype.F32
