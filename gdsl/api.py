"""What a Python user calls: load, loads, check, compile, run, verify, simulate.

Arrays are numpy or anything with `__array__`, or torch CPU tensors; what comes back is of the
caller's kind. Errors are `GdslError`s with `.diagnostics`. Nothing here keeps state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from gdsl import registry
from gdsl.arrays import from_caller, is_torch, to_caller
from gdsl.capacity import explaining
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.emitter import EmitOptions, NkiProgram
from gdsl.errors import CompileError, RunError, UsageError
from gdsl.library import locate
from gdsl.nki_source import nki_source
from gdsl.options import TARGETS, default_target
from gdsl.pipeline import STAGES, Compilation, KernelFile
from gdsl.pipeline import Definition as Definition
from gdsl.runner import Array, Event, Precision, RunOptions
from gdsl.shapes import empty_axes, resolve_sizes
from gdsl.source import Source
from gdsl.suggest import did_you_mean

if TYPE_CHECKING:
    from gdsl.algorithm.schedule_keys import Value
    from gdsl.verification.report import VerifyReport

Sizes = str | Mapping[str, int] | None


def load(file: str | Path) -> Definition:
    """Return a kernel: a library kernel's name, a path, or `path:KERNEL`.

    Raises UsageError when there is no such file or kernel, CompileError when the text has errors.
    """
    located = locate(str(file))
    return _checked(Definition(KernelFile(located.source, located.folder), located.kernel))


def loads(text: str, kernel: str | None = None, name: str = "<string>") -> Definition:
    """Return the kernel of a text; `kernel` names one where it holds several. Raises as `load`."""
    return _checked(Definition(KernelFile(Source(name, text)), kernel))


def _checked(definition: Definition) -> Definition:
    _ = definition.kernel
    return definition


def check(text: str | Path | Definition) -> tuple[Diagnostic, ...]:
    """Return everything that is wrong with a `.gdn` text, warnings included; errors do not raise.

    `text` is FILE as `load` takes it, a text (it has line breaks), or a loaded kernel's file.
    """
    if isinstance(text, Definition):
        file = text.file
    elif "\n" in str(text):
        file = KernelFile(Source("<string>", str(text)))
    else:
        located = locate(str(text))
        file = KernelFile(located.source, located.folder)
    try:
        module, warnings = file.elaborated
        for kernel in module.kernels:
            warnings += Definition(file, kernel.name).compilation(EmitOptions(), {}).warnings
    except CompileError as error:
        return error.diagnostics
    return warnings


@frozen
class Program:
    """A compiled kernel: NKI text, and every level it went through."""

    compilation: Compilation = field(repr=False)
    nki: NkiProgram

    @property
    def text(self) -> str:
        """The NKI module."""
        return self.nki.text

    @property
    def stages(self) -> dict[str, str]:
        """Every level as text, in order: ast, ir, canonical, plan, program, nki."""
        return {name: text(self.compilation) for name, text in STAGES.items()}

    @property
    def settings(self) -> dict[str, Value]:
        """The schedule, resolved: every key with its value."""
        return dict(self.compilation.plan.settings)

    def run(self, arguments: Mapping[str, Any], *, lnc: int = 1) -> dict[str, Any]:
        """Run the text in the simulator; outputs by name."""
        return _simulated(self, arguments, lnc)


def compile(
    kernel: Definition,
    target: str | None = None,
    *,
    settings: Mapping[str, Value] | None = None,
    nki_version: str | None = None,
    origin: bool = True,
) -> Program:
    """Return the NKI program of a kernel for a target. Raises CompileError.

    `settings` are schedule keys. `target` defaults as `-t` does. Raises UsageError for a target or
    an NKI release that does not exist.
    """
    if nki_version is not None:
        _known((nki_version,), registry.emitter().versions, "NKI release")
    options = EmitOptions(_target(target), nki_version, origin)
    compilation = kernel.compilation(options, settings or {})
    return Program(compilation, compilation.program)


def _target(name: str | None) -> str:
    target = name or default_target()
    _known((target,), TARGETS, "target")
    return target


def run(
    kernel: Definition,
    arguments: Mapping[str, Any],
    *,
    backend: str = "interpreter",
    precision: Precision = "declared",
    target: str | None = None,
    lnc: int = 1,
    settings: Mapping[str, Value] | None = None,
    hook: Callable[[Event], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Run a kernel on arrays by argument name and return its outputs by name.

    `backend` is "interpreter" (the definition; `precision`, `hook` and `progress` are its) or
    "simulator" (the emitted NKI text; `target`, `lnc` and `settings` are its). The caller's arrays
    are never written to. Raises RunError when the arguments do not fit the contract.
    """
    if backend == "simulator":
        return compile(kernel, target, settings=settings).run(arguments, lnc=lnc)
    if backend != "interpreter":
        raise UsageError(f"there is no backend `{backend}`; use `interpreter` or `simulator`")
    options = RunOptions(precision, hook, progress)
    given = {name: from_caller(name, value) for name, value in arguments.items()}
    outputs = registry.interpreter().run(kernel.kernel, _numbers(given), options)
    return _returned(outputs, arguments)


def _numbers(given: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        if isinstance(value, str):
            raise RunError(
                f"argument `{name}` is the text `{value}`; expected an array or a number"
            )
    return dict(given)


def _simulated(program: Program, arguments: Mapping[str, Any], lnc: int) -> dict[str, Any]:
    from gdsl.launch import launch

    kernel = program.compilation.definition.kernel
    given = {name: from_caller(name, value) for name, value in arguments.items()}
    plain = {name: value for name, value in given.items() if not isinstance(value, str)}
    # The emitted text cannot see lengths, slots and ranges that break the contract.
    sizes = registry.interpreter().check(kernel, plain)
    if empty_axes(kernel, sizes):
        # No token or no row: the definition says what comes back, and nothing is launched.
        return _returned(registry.interpreter().run(kernel, plain, RunOptions()), arguments)
    with explaining(program.compilation, sizes, lnc):
        outputs, _ = launch(program.nki, kernel, given, lnc=lnc)
    return _returned(outputs, arguments)


def _returned(outputs: Mapping[str, Array], arguments: Mapping[str, Any]) -> dict[str, Any]:
    torch = any(is_torch(value) for value in arguments.values())
    return {name: to_caller(array, torch) for name, array in outputs.items()}


def random_inputs(kernel: Definition, shape: Sizes = None, seed: int = 0) -> dict[str, Array]:
    """Return Gaussian arrays that fit the kernel's contract, by argument name.

    `shape` is a named shape, "B=1,Hv=32,..." or a mapping; None is the first named one.
    """
    from gdsl.regimes.typed import random_arguments

    sizes = resolve_sizes(kernel.kernel, kernel.shapes, shape)
    return random_arguments(kernel.kernel, sizes, seed)


def verify(
    kernel: Definition,
    *,
    shape: Sizes = None,
    targets: Sequence[str] = TARGETS,
    lnc: Sequence[int] = (1, 2),
    regimes: Sequence[str] | str = "all",
    precisions: Sequence[str] | None = None,
    seed: int = 0,
    settings: Mapping[str, Value] | None = None,
    jobs: int = 1,
) -> VerifyReport:
    """Compare the simulated kernel with the interpreter in float64 and return the verdict.

    Every combination of `regimes`, `targets`, core counts `lnc` and `precisions` (None: all that
    apply) runs, in `jobs` processes (more than 1 needs a main module that can be imported); see
    `gdsl.verification`. Raises UsageError for names that do not exist.
    """
    from gdsl.verification.precisions import PRECISIONS
    from gdsl.verification.request import ALL_REGIMES, Request
    from gdsl.verification.run import verify as run_request

    names = ALL_REGIMES if regimes == "all" else regimes
    names = (names,) if isinstance(names, str) else tuple(names)
    _known(names, ALL_REGIMES, "regime")
    _known(precisions or (), PRECISIONS, "precision")
    _known(targets, TARGETS, "target")
    request = Request(kernel, shape, targets, lnc, names, precisions, seed, dict(settings or {}))
    return run_request(request, jobs=jobs)


def _known(names: Sequence[str], known: Sequence[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise UsageError(
                f"there is no {what} `{name}`{did_you_mean(name, known)}; known: {', '.join(known)}"
            )


def simulate(
    kernel: Callable[..., object] | str, *, target: str | None = None, lnc: int = 1
) -> Callable[..., Any]:
    """Return a function that runs an NKI kernel in the simulator, as `nki.simulate` does.

    `kernel` is a `@nki.jit` function or "FILE.py:KERNEL". The function takes the kernel's arguments
    and returns what it returns: one array, or a tuple of arrays. Arguments are arrays, or what else
    a kernel takes (numbers, `None`, tuples); what the kernel writes to an array is in that array
    afterwards.
    """
    source, entry = nki_source(kernel) if isinstance(kernel, str) else (kernel, kernel.__name__)

    def call(*arrays: Any, **named: Any) -> Any:
        if arrays and named:
            raise UsageError("give the arguments all by position or all by name")
        by_name = {f"argument {i}": value for i, value in enumerate(arrays)} | named
        for name, value in by_name.items():
            if hasattr(value, "dtype") and hasattr(value, "shape"):
                from_caller(name, value)  # refuses what says nothing about its values
        given: Any = named or arrays
        result = registry.simulator().simulate(
            source, entry, given, target=_target(target), lnc=lnc
        )
        result.copy_back()
        torch = any(is_torch(value) for value in (*arrays, *named.values()))
        outputs = tuple(to_caller(array, torch) for array in result.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    return call
