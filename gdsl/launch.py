"""Launch an emitted program in the simulator with arguments by name, and name what comes back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gdsl import registry
from gdsl.emitter import NkiProgram
from gdsl.errors import RunError
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel
from gdsl.ir.size_plan import FromTokens, size_plan
from gdsl.ir.sizes import SizeError, solve_sizes
from gdsl.ir.types import DtypeVar
from gdsl.runner import Array
from gdsl.shapes import tensor_shape
from gdsl.simulator import Simulation
from gdsl.suggest import did_you_mean

Arguments = Mapping[str, Any]
_NARROW = {dtype.numpy for dtype in Dtype if dtype.is_narrow}


def launch(
    program: NkiProgram,
    kernel: Kernel,
    arguments: Arguments,
    *,
    lnc: int = 1,
    widen: bool = False,
) -> tuple[dict[str, Array], Simulation]:
    """Run the program's text and return (outputs by name, what the simulator saw).

    Caller-allocated outputs are handed in full of NaN. A call too short for a checkpoint returns
    none, though the text, for which no tensor is empty, returns one entry of zeros. `widen` keeps
    every float in fp32. Nothing that the caller owns is written to. Raises RunError, and the
    simulator's faults.
    """
    known = {argument.name: argument for argument in kernel.call.arguments}
    for name in arguments:
        if name not in known:
            raise RunError(
                f"kernel `{kernel.name}` takes no argument `{name}`{did_you_mean(name, known)}; "
                f"its call: ({', '.join(known)})"
            )
    given = {name: _prepared(value, widen) for name, value in arguments.items()}
    given |= _allocated_outputs(kernel, given, widen)
    simulation = registry.simulator().simulate(
        program.text, program.entry, given, target=program.target, lnc=lnc, widen=widen
    )
    outputs = dict(zip(program.returns, simulation.outputs, strict=True))
    return _without_fillers(kernel, arguments, outputs), simulation


def _without_fillers(
    kernel: Kernel, arguments: Arguments, outputs: dict[str, Array]
) -> dict[str, Array]:
    """Return the outputs, those that have no elements by definition without any."""
    if all(step.every == 1 for step in size_plan(kernel).steps if isinstance(step, FromTokens)):
        return outputs
    sizes = argument_sizes(kernel, arguments)
    shapes = {output.name: tensor_shape(output.dims, sizes) for output in kernel.outputs}
    return {
        name: array if math.prod(shapes[name]) else np.empty(shapes[name], array.dtype)
        for name, array in outputs.items()
    }


def trace(program: NkiProgram, kernel: Kernel, arguments: Arguments, *, lnc: int = 1) -> Simulation:
    """Run the program by shapes alone: every rule is checked and recorded, nothing is computed."""
    given = {**arguments, **_allocated_outputs(kernel, arguments, widen=False)}
    return registry.simulator().simulate(
        program.text, program.entry, given, target=program.target, lnc=lnc, shape_only=True
    )


def output_dtype(dtype: Dtype | DtypeVar, bound: Mapping[str, Dtype]) -> Dtype:
    """The element type of a tensor, given what the caller's arrays bind dtype variables to."""
    return bound[dtype.name] if isinstance(dtype, DtypeVar) else dtype


def bound_dtypes(kernel: Kernel, arguments: Arguments) -> dict[str, Dtype]:
    """What the arrays bind the kernel's dtype variables to; the first choice where none does."""
    by_numpy = {dtype.numpy: dtype for dtype in Dtype}
    bound = {variable.name: variable.choices[0] for variable in kernel.dtype_vars}
    for item in kernel.inputs:
        array = arguments.get(item.name)
        if isinstance(item.dtype, DtypeVar) and isinstance(array, np.ndarray):
            bound[item.dtype.name] = by_numpy.get(array.dtype, bound[item.dtype.name])
    return bound


def _prepared(value: Any, widen: bool) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if widen and (value.dtype.kind == "f" or value.dtype in _NARROW):
        return value.astype(np.float32)
    return value.copy()


def _allocated_outputs(kernel: Kernel, arguments: Arguments, widen: bool) -> dict[str, Array]:
    """Return the outputs that the call line wants from the caller, full of NaN."""
    wanted = [a.name for a in kernel.call.arguments if a.role == "output"]
    if all(name in arguments for name in wanted):
        return {}
    bound = bound_dtypes(kernel, arguments)
    sizes = argument_sizes(kernel, arguments)
    outputs = {output.name: output for output in kernel.outputs}
    allocated: dict[str, Array] = {}
    for name in wanted:
        output = outputs[name]
        dtype = Dtype.F32 if widen else output_dtype(output.dtype, bound)
        poison = np.nan if dtype.is_float else 0
        allocated[name] = np.full(tensor_shape(output.dims, sizes), poison, dtype.numpy)
    return allocated


def argument_sizes(kernel: Kernel, arguments: Arguments) -> dict[str, int]:
    """Return the size of every axis, from the shapes of the arguments. Raises RunError."""
    shapes = {name: a.shape for name, a in arguments.items() if isinstance(a, np.ndarray)}
    params = {p.name: arguments.get(p.name, p.default) for p in kernel.params}
    numbers = {name: value for name, value in params.items() if value is not None}
    try:
        return solve_sizes(size_plan(kernel, shapes), shapes, numbers)
    except SizeError as error:
        raise RunError(str(error)) from error
