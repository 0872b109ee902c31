"""Rows of a table that compares our kernels with anybody's, all on one cost model.

Every time is estimated (microseconds, no clock gate): in program order, list-scheduled (what the
compiler may make of it), the range of program order when the assumed numbers of the machine move to
either end of theirs, and program order over the time HBM needs for the bytes of the contract.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gdsl.cli import nki_arguments
from gdsl.errors import GdslError
from gdsl.estimate import estimate_nki, shapes_only
from gdsl.ir.dtypes import Dtype
from gdsl.nki_source import nki_source
from gdsl.pipeline import Definition
from gdsl.profiler import CostReport
from gdsl.regimes.typed import bind_dtypes
from gdsl.shapes import tensor_shape


def head(case: str) -> str:
    """Return the first two lines; `case` names the first column."""
    return (
        f"| {case} | kernel | program order | list-scheduled | range | / HBM | at most |\n"
        "|---:|---|---:|---:|---|---:|---:|"
    )


def row(case: str, label: str, report: CostReport, most: float | None) -> str:
    """Return the line of an estimated kernel; `most` is what its schedule was designed for."""
    time = report.estimate
    return (
        f"| {case} | {label} | {time.program_order:.2f} | {time.list_scheduled:.2f} "
        f"| {report.low:.2f} to {report.high:.2f} | {time.program_order / report.hbm:.2f} "
        f"| {'' if most is None else f'{most:.2f}'} |"
    )


def foreign(
    words: Sequence[str],
    case: str,
    given: Mapping[str, Any],
    sizes: Mapping[str, int],
    target: str,
    lnc: int,
) -> str:
    """Return the line of somebody's kernel, or of what the machine refused.

    `words`: FILE.py:KERNEL, then arguments as `gdsl cost --arg` takes them, in which {AXIS} stands
    for a size; `given` holds those that are left out.
    """
    path, entry = nki_source(words[0])
    label = f"{path.name}:{entry}"
    texts = [word.format(**sizes) for word in words[1:]]
    specs = argparse.Namespace(arg=texts, inputs=None, seed=0)
    arguments = {**given, **nki_arguments.arguments(specs, data=False)}
    try:
        report = estimate_nki(words[0], arguments, target=target, lnc=lnc).report
    except GdslError as error:
        found = error.diagnostics[0] if error.diagnostics else None
        reason = f"{found.code}: {found.message}" if found else str(error).splitlines()[0]
        return f"| {case} | {label} | refused: {reason} | | | | |"
    return row(case, label, report, None)


def arguments_of(definition: Definition, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the arguments of a kernel of ours, without data.

    Outputs that the caller brings are fp32, as in our contracts.
    """
    kernel = definition.kernel
    given: dict[str, Any] = shapes_only(kernel, sizes, bind_dtypes(kernel, Dtype.BF16))
    outputs = {output.name: output for output in kernel.outputs}
    for argument in kernel.call.arguments:
        if argument.role == "output":
            shape = tensor_shape(outputs[argument.name].dims, sizes)
            given[argument.name] = np.broadcast_to(np.float32(0), shape)
    return given
