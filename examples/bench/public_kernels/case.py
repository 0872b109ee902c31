"""One public kernel at one shape: what goes in, what must come out, and running it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from attrs import frozen
from numpy.random import Generator

from backends.simulator.faults import Fault
from backends.simulator.run import simulate
from examples.bench.public_kernels.references import Array
from examples.bench.public_kernels.report import OutOfTime, Row, relative_error, time_limit
from examples.bench.public_kernels.settings import Settings

BF16 = ml_dtypes.bfloat16
F32 = np.float32
C = 128
"""Chunk length and head size of the kernels here."""

Values = dict[str, Any]
References = Sequence[Array]


@frozen
class Case:
    """One kernel at one shape; `inputs` returns arguments by name, `expect` what must come out."""

    file: str
    kernel: str
    case: str
    inputs: Callable[[Generator], Values]
    expect: Callable[[Values], References]
    rtol: float
    atol: float
    target: str = "trn2"
    lnc: int = 1


def random_state(r: Generator, *shape: int) -> Array:
    """Return a small fp32 state."""
    return (0.1 * r.standard_normal(shape)).astype(F32)


def _run(case: Case, path: Path, roots: Sequence[Path], settings: Settings) -> Row:
    values = case.inputs(np.random.default_rng(42))
    outcome, error, note, count = "error", None, "", 0
    start = time.perf_counter()
    try:
        with time_limit(settings.seconds):
            result = simulate(
                path,
                case.kernel,
                values,
                target=case.target,
                lnc=case.lnc,
                roots=roots,
                options=settings.options,
            )
        count = result.instructions
        references = [np.asarray(reference) for reference in case.expect(values)]
        error = max(
            relative_error(value.reshape(reference.shape), reference, case.rtol, case.atol)
            for value, reference in zip(result.outputs, references, strict=True)
        )
        outcome = "ok" if error <= 1 else "differs"
    except OutOfTime:
        outcome = "timeout"
    except Fault as fault:
        outcome = "refused"
        file = fault.location.file.rpartition("/")[2]
        note = f"{fault.code} {file}:{fault.location.line} {fault.message}"
    spent = time.perf_counter() - start
    name = f"{path.stem}:{case.kernel}"
    return Row(name, case.case, case.target, case.lnc, outcome, error, count, spent, note)


def run_cases(cases: Sequence[Case], folder: Path, settings: Settings) -> list[Row]:
    """Run every case whose file the folder holds and whose name has all words asked for."""
    roots = [path.parent for path in folder.resolve().rglob("nkilib") if path.is_dir()]
    words = settings.expression.split()
    rows = []
    for case in cases:
        found = sorted(folder.resolve().glob(f"**/{case.file}"))
        if found and all(word in f"{case.file} {case.kernel}" for word in words):
            rows.append(_run(case, found[0], roots, settings))
    return rows
