"""Running one trial: in the interpreter (the reference) and as NKI text in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from gdsl import registry
from gdsl.emitter import NkiProgram
from gdsl.ir.dims import Atom
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel, Output, Run
from gdsl.launch import launch
from gdsl.regimes.base import mapped_axes
from gdsl.regimes.parts import positions
from gdsl.regimes.trial import Trial, carried_states
from gdsl.regimes.typed import typed
from gdsl.runner import Array, Precision, RunOptions
from gdsl.shapes import checkpoint_axes, dim_size

Outputs = dict[str, Array]
Call = Callable[[Mapping[str, Any]], Outputs]

CALLS = "call"
"""Name of the axis along which the outputs of several calls are stacked."""


@frozen
class Result:
    """Outputs of a trial, axis by axis, and how many instructions its first call took."""

    outputs: Mapping[str, Array]
    axes: Mapping[str, tuple[str, ...]]
    instructions: int = 0


def interpret(
    kernel: Kernel, trial: Trial, bound: Mapping[str, Dtype], precision: Precision
) -> Result:
    """Run the trial in the interpreter: the whole at once where it is split into calls."""
    runner = registry.interpreter()
    options = RunOptions(precision)

    def call(arguments: Mapping[str, Any]) -> Outputs:
        return runner.run(kernel, arguments, options)

    return run_reference(kernel, trial, bound, call)


def run_reference(kernel: Kernel, trial: Trial, bound: Mapping[str, Dtype], call: Call) -> Result:
    """Run what the trial's calls are compared with."""
    if trial.whole is None:
        return _run_calls(kernel, trial, bound, call)
    outputs = call(typed(kernel, trial.whole, bound))
    return _by_axis(kernel, [outputs], trial, keep_all=False)


def simulate(
    kernel: Kernel,
    program: NkiProgram,
    trial: Trial,
    bound: Mapping[str, Dtype],
    lnc: int,
    widen: bool,
) -> Result:
    """Run the trial's calls in the simulator; each takes its states from the one before."""
    counts: list[int] = []

    def call(arguments: Mapping[str, Any]) -> Outputs:
        outputs, simulation = launch(program, kernel, arguments, lnc=lnc, widen=widen)
        counts.append(simulation.instructions)
        return outputs

    result = _run_calls(kernel, trial, bound, call)
    return Result(result.outputs, result.axes, counts[0])


def _run_calls(kernel: Kernel, trial: Trial, bound: Mapping[str, Dtype], call: Call) -> Result:
    carried = carried_states(kernel)
    done: list[Outputs] = []
    for arguments in trial.calls:
        given = typed(kernel, arguments, bound)
        if done:
            given |= {state: done[-1][output] for state, output in carried.items()}
        done.append(call(given))
        if len(trial.calls) > 1:
            for name in carried.values():
                for earlier in done[:-1]:
                    earlier.pop(name, None)
    return _by_axis(kernel, done, trial, keep_all=trial.whole is None)


def _by_axis(kernel: Kernel, done: list[Outputs], trial: Trial, *, keep_all: bool) -> Result:
    """Spell out the axes of every output, and put the calls side by side."""
    outputs: dict[str, Array] = {}
    axes: dict[str, tuple[str, ...]] = {}
    carried = set(carried_states(kernel).values())
    for output in kernel.outputs:
        names = output_axes(output)
        arrays = [
            _spelled_out(kernel, output, o[output.name], trial) for o in done if output.name in o
        ]
        if output.name in carried or len(done) == 1:
            outputs[output.name], axes[output.name] = arrays[-1], names
        elif keep_all:
            outputs[output.name] = np.stack(arrays)
            axes[output.name] = (CALLS, *names)
        elif trial.split_axis in names:
            along = names.index(str(trial.split_axis))
            outputs[output.name] = np.concatenate(arrays, axis=along)
            axes[output.name] = names
    return Result(outputs, axes)


def output_axes(output: Output) -> tuple[str, ...]:
    """The axes of an output once its products are spelled out; a packed axis is one."""
    return tuple(p.axis if isinstance(p, Atom) else p.name for p in positions(output.dims))


def group_axes(kernel: Kernel) -> tuple[str, ...]:
    """The axes along which heads and batch rows lie: each is judged for itself.

    An axis that some rule of the kernel has as its own is none, though a window maps over it: the
    values of a head are judged together.
    """
    runs = [statement for statement in kernel.body if isinstance(statement, Run)]
    own = {axis for run in runs for axis in run.rule.axes}
    found = [axis for run in runs for axis in mapped_axes(run) if axis not in own]
    found += [state.slots.axis for state in kernel.states if state.slots]
    return tuple(dict.fromkeys(found))


def _spelled_out(kernel: Kernel, output: Output, array: Array, trial: Trial) -> Array:
    """Reshape a tensor to one dimension per axis; the axis that is cut has what is there."""
    known = {**trial.sizes, **checkpoint_axes(kernel, trial.sizes)}
    sizes = [
        -1 if isinstance(p, Atom) and p.axis == trial.split_axis else dim_size(p, known)
        for p in positions(output.dims)
    ]
    return array.reshape(sizes)
