"""The simulator's door: run NKI source text on numpy arrays.

A run loads the kernel's file anew, so module-level state never leaks from one run to the next.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from attrs import frozen
from numpy.typing import NDArray

from backends.isa.targets import Target, find_target
from backends.isa.trace import Trace
from backends.simulator import arguments
from backends.simulator.arguments import TensorSpec
from backends.simulator.faults import Fault
from backends.simulator.jit import Kernel
from backends.simulator.launch import Finished, as_fault, launch
from backends.simulator.loader import Loader, syntax_fault
from backends.simulator.modules import simulated_modules
from backends.simulator.options import SimOptions
from backends.simulator.trace_builder import build_trace
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import UsageError

KernelSource = Path | str | Callable[..., Any]
Array = NDArray[Any]


@frozen(slots=False)
class SimResult:
    """What a launch left behind."""

    outputs: tuple[Array, ...]
    """The returned tensors; none in shape-only mode."""
    returned: tuple[TensorSpec, ...]
    """Shapes and dtypes of the returned tensors."""
    mutated: Mapping[str, Array]
    """Arguments the kernel wrote, by name, as they are afterwards; none in shape-only mode."""
    warnings: tuple[Diagnostic, ...]
    single: bool
    """Whether the kernel returned one tensor rather than a tuple."""
    kernel: str
    finished: Finished

    @cached_property
    def traces(self) -> tuple[Trace, ...]:
        """One trace per program, made when first asked for."""
        return tuple(build_trace(machine, self.kernel) for machine in self.finished.machines)

    def copy_back(self) -> None:
        """Copy what the kernel wrote to its arguments into the caller's arrays."""
        if self.outputs or self.mutated:
            for argument in self.finished.arguments:
                arguments.copy_back(argument)

    @property
    def instructions(self) -> int:
        """Number of instructions executed by all programs."""
        return sum(len(machine.recorder.log) for machine in self.finished.machines)


def simulate(
    source: KernelSource,
    entry: str,
    values: Sequence[Any] | Mapping[str, Any],
    *,
    target: str = "trn2",
    lnc: int = 1,
    options: SimOptions | None = None,
    roots: Sequence[Path] = (),
) -> SimResult:
    """Run kernel `entry` of a file, a module's text or a function's own file.

    `values` are positional arguments or arguments by name: arrays (numpy, or torch on the CPU),
    `TensorSpec` and compile-time values. `roots` are directories for absolute imports.
    Raises Fault for whatever NKI or the machine would refuse, UsageError for a missing entry.
    """
    chosen = options or SimOptions()
    machine = find_target(target)
    kernel = load_kernel(source, entry, machine, chosen, roots)
    grid = kernel.grid if kernel.grid is not None else (lnc if lnc > 1 else None)
    return run_kernel(kernel, values, machine, grid, chosen)


def run_kernel(
    kernel: Kernel,
    values: Sequence[Any] | Mapping[str, Any],
    target: Target,
    grid: int | None,
    options: SimOptions,
) -> SimResult:
    """Launch a kernel that is already loaded; `grid` None is a launch without brackets."""
    finished = copy_context().run(
        launch,
        kernel.function,
        values,
        target=target,
        grid=grid,
        options=options,
        schedule=kernel.schedule,
    )
    with_data = not options.shape_only
    written = [arg for arg in finished.arguments if arg.storage.written]
    return SimResult(
        outputs=tuple(map(arguments.result_array, finished.returned)) if with_data else (),
        returned=tuple(TensorSpec(view.shape, view.dtype) for view in finished.returned),
        mutated={arg.name: arguments.storage_array(arg.storage) for arg in written}
        if with_data
        else {},
        warnings=tuple(w for machine in finished.machines for w in machine.warnings.values()),
        single=finished.single,
        kernel=kernel.function.__name__,
        finished=finished,
    )


def load_module(
    source: KernelSource, target: Target, options: SimOptions, roots: Sequence[Path] = ()
) -> ModuleType:
    """Execute the kernel file under the simulator's `nki`. Raises Fault S102, S103, S107."""

    def call_kernel(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        values = _named(kernel, args, kwargs) if kwargs else args
        result = run_kernel(kernel, values, target, kernel.grid, options)
        return result.outputs[0] if result.single else result.outputs

    loader = Loader(simulated_modules(target, call_kernel), [root.resolve() for root in roots])
    try:
        match source:
            case Path():
                return loader.load_file(source)
            case str():
                return loader.load_text(source, "<kernel>")
            case _:
                return loader.load_file(_file_of(source))
    except SyntaxError as error:
        raise syntax_fault(error) from None
    except OSError as error:
        raise UsageError(f"`{source}`: {error.strerror or error}") from None
    except Exception as error:
        raise as_fault(error) from None


def load_kernel(
    source: KernelSource,
    entry: str,
    target: Target,
    options: SimOptions,
    roots: Sequence[Path] = (),
) -> Kernel:
    """Return the kernel called `entry`; a plain function is taken as one."""
    module = load_module(source, target, options, roots)
    found = getattr(module, entry, None)
    if isinstance(found, Kernel):
        return found
    if callable(found):
        return Kernel(found, lambda *_: None)
    kernels = [name for name, value in vars(module).items() if isinstance(value, Kernel)]
    known = ", ".join(f"`{name}`" for name in kernels) or "none"
    raise UsageError(f"no kernel `{entry}` in the source; its kernels: {known}")


def _named(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return positional and keyword arguments by name."""
    try:
        return inspect.signature(kernel.function).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise Fault("S104", f"the kernel cannot be called so: {error}") from None


def _file_of(function: Callable[..., Any]) -> Path:
    """Return the file a function was defined in."""
    file = inspect.getsourcefile(inspect.unwrap(function))
    if file is None:
        raise UsageError(f"`{function!r}` has no source file; pass a path or the text")
    return Path(file)
