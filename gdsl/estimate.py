"""Estimated time of a kernel: compile, trace without data, profile. Nothing here is measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from gdsl import registry
from gdsl.capacity import explaining, require_elements
from gdsl.emitter import EmitOptions
from gdsl.errors import UsageError
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel
from gdsl.ir.work import work
from gdsl.launch import trace
from gdsl.nki_source import nki_source
from gdsl.pipeline import Definition
from gdsl.profiler import CostOptions, CostReport
from gdsl.regimes.typed import argument_dtypes, bind_dtypes
from gdsl.runner import Array
from gdsl.shapes import tensor_shape
from gdsl.suggest import did_you_mean

if TYPE_CHECKING:
    from gdsl.algorithm.schedule_keys import Value


@frozen
class Estimated:
    """A cost report, and the texts that its lines are in, by name."""

    report: CostReport
    sources: Mapping[str, str]


def estimate(
    definition: Definition,
    sizes: Mapping[str, int],
    *,
    target: str = "trn2",
    lnc: int = 1,
    settings: Mapping[str, Value] | None = None,
    prefer: Dtype = Dtype.BF16,
    without: Collection[str] = (),
    sweep: bool = False,
) -> Estimated:
    """Return the estimated time of a `.gdn` kernel at these sizes. Raises CompileError,
    UsageError for sizes of 0 and for names in `without` that the caller must give.

    `without` names the optional arguments that the caller leaves out; all others are given, which
    is what costs most. The roofline comes from the kernel's declaration, never from the trace.
    """
    compilation = definition.compilation(EmitOptions(target), settings or {})
    kernel = definition.kernel
    bound = bind_dtypes(kernel, prefer)
    _require_optional(kernel, without)
    given = shapes_only(kernel, sizes, bound)
    arguments = {name: array for name, array in given.items() if name not in without}
    require_elements(kernel, sizes)
    with explaining(compilation, sizes, lnc):
        simulation = trace(compilation.program, kernel, arguments, lnc=lnc)
    program = compilation.program
    sources = {
        simulation.traces[0].records[0].file if simulation.traces[0].records else "": program.text,
        definition.file.source.name: definition.file.source.text,
    }
    options = CostOptions(
        shape=dict(sizes),
        schedule={key: str(value) for key, value in compilation.plan.settings.items()},
        sources=sources,
        sweep=sweep,
    )
    contract = work(kernel, sizes, bound)
    report = registry.profiler().profile(simulation.traces, target, contract, options)
    return Estimated(report, sources)


def estimate_nki(
    kernel: str,
    arguments: Mapping[str, object],
    *,
    target: str = "trn2",
    lnc: int = 1,
    sweep: bool = False,
) -> Estimated:
    """Return the estimated time of `FILE.py:KERNEL`, on the same model as our own."""
    path, entry = nki_source(kernel)
    simulation = registry.simulator().simulate(
        path, entry, arguments, target=target, lnc=lnc, shape_only=True
    )
    sources = {str(path): path.read_text(encoding="utf-8")}
    options = CostOptions(sources=sources, sweep=sweep)
    report = registry.profiler().profile(simulation.traces, target, None, options)
    return Estimated(report, sources)


def _require_optional(kernel: Kernel, names: Collection[str]) -> None:
    """Raise UsageError for a name that no optional argument has."""
    optional = [item.name for item in kernel.inputs if item.default is not None]
    optional += [state.argument for state in kernel.states if state.optional]
    for name in names:
        if name not in optional:
            choices = f"optional: {', '.join(optional)}" if optional else "it has none"
            raise UsageError(
                f"`{name}` is no argument of `{kernel.name}` that may be left out"
                f"{did_you_mean(name, optional)}; {choices}"
            )


def shapes_only(
    kernel: Kernel, sizes: Mapping[str, int], bound: Mapping[str, Dtype]
) -> dict[str, Array]:
    """Return an argument of the right shape and dtype for every tensor; they take no memory."""
    dims = {item.name: item.dims for item in kernel.inputs}
    dims |= {state.argument: state.dims for state in kernel.states}
    dtypes = argument_dtypes(kernel, bound)
    return {
        name: np.broadcast_to(np.zeros((), dtypes[name].numpy), tensor_shape(shape, sizes))
        for name, shape in dims.items()
    }
