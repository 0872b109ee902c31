"""Running a kernel: arguments in, statements, outputs. The order here is the order of checks."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from backends.interpreter.axes import Array, Value, from_tensor, tensor_axes, to_tensor
from backends.interpreter.bind import Arguments, Bound, bind, declared_dtype
from backends.interpreter.check import check_assumes, check_lengths, check_ranges
from backends.interpreter.evaluate import Setting, evaluate
from backends.interpreter.execute import Execution, Names, execute
from backends.interpreter.live import Live, live_elements, select
from backends.interpreter.precision import ARITHMETIC, Arithmetic
from backends.interpreter.states import check_slots, initial, kept_rows, pool_after
from gdsl.ir.kernel import Kernel, Output
from gdsl.runner import RunOptions


def run_kernel(kernel: Kernel, arguments: Arguments, options: RunOptions) -> dict[str, Array]:
    """Return the outputs by name; arguments are never changed. Raises RunError."""
    call = _admitted(kernel, arguments, ARITHMETIC[options.precision])
    bound, live, names = call.bound, call.live, call.names
    execution = Execution(call.setting, bound.params, options)
    for item in kernel.inputs:
        execution.tell(item.name, item.symbol, names[item.symbol], item.span)
    for state in kernel.states:
        execution.tell(state.name, state.symbol, names[state.symbol], state.span)
    execute(kernel.body, names, execution)
    return {o.name: _output(o, kernel, names, bound, live, execution) for o in kernel.outputs}


@frozen(eq=False)
class _Call:
    """A call that keeps every promise of the kernel, and what its first statement sees."""

    bound: Bound
    setting: Setting
    live: Live
    names: Names


def _admitted(kernel: Kernel, arguments: Arguments, arithmetic: Arithmetic) -> _Call:
    """Check everything that a call can get wrong. Raises RunError."""
    bound = bind(kernel, arguments, arithmetic)
    setting = Setting(bound.sizes, {p.name: p for p in kernel.packed}, arithmetic)
    check_lengths(kernel, bound.names, bound.sizes)
    check_slots(kernel, bound.names, bound.sizes)
    rows = kept_rows(kernel, bound.names, bound.sizes)
    live = live_elements(kernel, bound.names, rows, bound.sizes)
    check_ranges(kernel, bound.names, live)
    names = _start(kernel, bound, live, arithmetic)
    check_assumes(kernel, names, setting, live)
    return _Call(bound, setting, live, names)


def _start(kernel: Kernel, bound: Bound, live: Live, arithmetic: Arithmetic) -> Names:
    """Return what the first statement sees: real inputs without padding, initial states."""
    names = dict(bound.names)
    for item in kernel.inputs:
        if names[item.symbol].array.dtype == arithmetic.compute:
            names[item.symbol] = live.cleared(names[item.symbol])
    for state in kernel.states:
        names[state.symbol] = initial(state, kernel, bound, arithmetic)
    return names


def _output(
    output: Output, kernel: Kernel, names: Names, bound: Bound, live: Live, execution: Execution
) -> Array:
    """Return an output as a tensor: 0 where it is dead, except that a state stays as it came."""
    arithmetic, sizes = execution.setting.arithmetic, bound.sizes
    value = evaluate(output.value, names, execution.setting)
    state = next((state for state in kernel.states if state.name == output.state), None)
    if state is not None and state.slots is not None:
        array = pool_after(state, state.slots, value, bound, arithmetic)
    else:
        axes = tensor_axes(output.dims)
        zero = Value((), np.asarray(0, value.array.dtype))
        before = zero if state is None else names[state.symbol]
        value = select(live.on(axes), value, before, axes)
        dtype = declared_dtype(output.dtype, bound.dtypes)
        array = arithmetic.stored(to_tensor(value, output.dims, sizes), dtype)
    execution.tell(output.name, None, from_tensor(array, output.dims, sizes), output.span)
    return array


class Interpreter:
    """The runner that defines the language."""

    name = "interpreter"

    def run(self, kernel: Kernel, arguments: Arguments, options: RunOptions) -> dict[str, Array]:
        """Return the outputs by name. Raises RunError when the arguments do not fit."""
        return run_kernel(kernel, arguments, options)

    def check(self, kernel: Kernel, arguments: Arguments) -> dict[str, int]:
        """Return the size of every axis. Raises RunError when the arguments do not fit."""
        return _admitted(kernel, arguments, ARITHMETIC["declared"]).bound.sizes
