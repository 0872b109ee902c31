"""Runs the tests of an nki-library checkout with the simulator in place of the device.

The tests build inputs and references; their orchestrator, which would compile and run on a device,
is replaced by `SimulatedDevice`. Modules for clouds and hosts that the test utilities import are
stubbed. Works in the process that calls it: that process's `nki` is the simulator from then on.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from backends.isa.dtypes import DTYPES, find_dtype
from backends.isa.targets import find_target
from backends.simulator import location
from backends.simulator.faults import Fault
from backends.simulator.jit import Kernel
from backends.simulator.modules import simulated_modules
from backends.simulator.options import SimOptions
from backends.simulator.run import SimResult, run_kernel
from examples.bench.public_kernels.report import OutOfTime, Row, relative_error, time_limit
from examples.bench.public_kernels.settings import Settings
from examples.bench.public_kernels.sweeps import expand
from gdsl.source import Source

_STUBBED = ("boto3", "botocore", "fabric2", "plotext", "pytest_html", "aws_embedded_metrics",
            "allpairspy", "filelock", "pandas", "paramiko")  # fmt: skip
_DEVICE_SIDE = "test.utils.test_orchestrator"
"""The module that compiles and runs on hosts; parts of it are not public."""
_ALIAS = ".must_alias_input"


class _Anything(ModuleType):
    """A module whose every attribute exists: classes that do nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {})


class _Stubs(MetaPathFinder, Loader):
    """Finds the stubbed modules."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] not in _STUBBED:
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Anything(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _element_types() -> ModuleType:
    """Return what the tests use of `neuron_dtypes`: casts and questions about element types."""
    module = ModuleType("neuron_dtypes")
    names: dict[str, Any] = {name: dtype.numpy for name, dtype in DTYPES.items()}

    def static_cast(values: Any, dtype: Any) -> Any:
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(find_dtype(dtype).numpy)

    names["static_cast"] = static_cast
    names["sizeinbytes"] = lambda dtype: find_dtype(dtype).bytes
    names["is_float_type"] = lambda dtype: find_dtype(dtype).is_float
    names["finfo"] = lambda dtype: find_dtype(dtype)
    vars(module).update(names)
    return module


def _install(checkout: Path, target: str) -> None:
    """Make `nki` the simulator and the checkout importable."""

    def no_direct_call(*_: Any) -> Any:
        raise RuntimeError("a kernel was called outside the device")

    modules = dict(simulated_modules(find_target(target), no_direct_call))
    del modules["dataclasses"]
    for name in ("neuronxcc", "neuronxcc.nki"):
        modules[name] = _Anything(name)
    sys.modules.update(modules)
    sys.modules["neuron_dtypes"] = _element_types()
    # The tests also reach the element types as a submodule, which kernels never do.
    sys.modules["nki.dtype"] = modules["nki"].dtype = _element_types()  # type: ignore[attr-defined]
    sys.meta_path.insert(0, _Stubs())
    sys.path[:0] = [str(checkout), str(checkout / "src"), str(checkout / "src" / "nkilib_src")]
    for name in [name for name in sys.modules if name.partition(".")[0] == "test"]:
        del sys.modules[name]
    sys.modules[_DEVICE_SIDE] = _Anything(_DEVICE_SIDE)


class SimulatedDevice:
    """Stands for the tests' orchestrator: runs a kernel and compares it with its reference."""

    def __init__(self, checkout: Path, settings: Settings, rows: list[Row], case: str) -> None:
        self._checkout = checkout
        self._settings = settings
        self._rows = rows
        self._case = case

    def execute(self, kernel_args: Any) -> None:
        """Run one kernel under test; raise what its test expects when it is refused."""
        self._register_sources()
        compiler = kernel_args.compiler_input
        target, lnc = str(compiler.platform_target.get_compile_target()), compiler.logical_nc_config
        name = getattr(kernel_args.kernel_func, "__name__", "kernel")
        gc.collect()  # the tests' references are large, and leave cycles behind
        start = time.perf_counter()
        outcome, error, note, count = "error", None, "", 0
        try:
            with time_limit(self._settings.seconds):
                result = _launch(kernel_args, target, lnc, self._settings.options)
            count = result.instructions
            error = _worst(kernel_args.validation_args, result)
            outcome = "ok" if error <= 1 else "differs"
        except OutOfTime:
            outcome = "timeout"
        except Fault as fault:
            own_assertion = fault.code == "S102" and "assertion failed" in fault.message
            outcome = "rejected" if own_assertion else "refused"
            note = f"{fault.code} {fault.location.file.rpartition('/')[2]}:{fault.location.line} "
            note += fault.message
            raise AssertionError(note) from fault
        except Exception as problem:
            note = f"{type(problem).__name__}: {problem}"[:160]
            raise
        finally:
            seconds = time.perf_counter() - start
            self._rows.append(
                Row(name, self._case, target, lnc, outcome, error, count, seconds, note)
            )

    def _register_sources(self) -> None:
        """Let faults name lines of every file of the checkout that is loaded."""
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if file is not None and file.startswith(str(self._checkout)) and file.endswith(".py"):
                location.register(Source(file, Path(file).read_text(encoding="utf-8")))


def _launch(kernel_args: Any, target: str, lnc: int, options: SimOptions) -> SimResult:
    values = kernel_args.kernel_input
    if not isinstance(values, Mapping):
        raise NotImplementedError("inputs per rank: collectives are not simulated")
    function = kernel_args.kernel_func
    kernel = function if isinstance(function, Kernel) else Kernel(function, lambda *_: None)
    arguments = {name.removesuffix(_ALIAS): value for name, value in values.items()}
    return run_kernel(kernel, arguments, find_target(target), lnc, options)


def _worst(validation: Any, result: SimResult) -> float:
    """Return the largest error of any output over what the test allows."""
    golden = validation.golden_output
    if isinstance(golden, dict):
        return _custom(golden, result)
    references = golden.golden
    if references is None:
        return 0.0
    errors = []
    by_name = {**dict(zip(references, result.outputs, strict=False)), **result.mutated}
    for name, reference in references.items():
        errors.append(
            relative_error(
                np.asarray(by_name[name]),
                np.asarray(reference),
                validation.relative_accuracy,
                validation.absolute_accuracy,
            )
        )
    return max(errors, default=0.0)


def _custom(golden: Mapping[str, Any], result: SimResult) -> float:
    """Apply the tests' own validators, which answer yes or no."""
    for check, value in zip(golden.values(), result.outputs, strict=False):
        validator = check.validator
        instance = validator() if isinstance(validator, type) else validator
        if not instance.validate(value):
            return float("inf")
    return 0.0


class _Plugin:
    """The fixtures that the tests ask for."""

    def __init__(self, checkout: Path, settings: Settings, rows: list[Row]) -> None:
        self._checkout = checkout
        self._settings = settings
        self._rows = rows

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep a few cases, evenly spread, of every test function."""
        groups: dict[str, list[pytest.Item]] = {}
        for item in items:
            groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
        for group in groups.values():
            step = max(1, len(group) // self._settings.cases)
            for item in set(group) - set(group[::step][: self._settings.cases]):
                items.remove(item)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Expand the sweeps that the tests declare."""
        expand(metafunc, self._settings.cases)

    @pytest.fixture
    def test_manager(self, request: pytest.FixtureRequest) -> SimulatedDevice:
        """The tests' device."""
        case = request.node.name.partition("[")[2].removesuffix("]") or request.node.name
        return SimulatedDevice(self._checkout, self._settings, self._rows, case)

    @pytest.fixture
    def collector(self) -> Any:
        """A collector of metrics that keeps nothing."""
        from test.utils.metrics_collector import (  # type: ignore[import-not-found]
            NoopMetricsCollector,
        )

        return NoopMetricsCollector()

    @pytest.fixture
    def platform_target(self) -> Any:
        """The target of tests that take one."""
        from test.utils.common_dataclasses import Platforms  # type: ignore[import-not-found]

        return Platforms.TRN2


def run_library(checkout: Path, settings: Settings) -> list[Row]:
    """Run the tests of a checkout that match and return a row for every kernel run."""
    checkout = checkout.resolve()
    _install(checkout, "trn2")
    rows: list[Row] = []
    options = ["-q", "--noconftest", "-p", "no:cacheprovider", "-o", "addopts=", "--no-header",
               "--tb=line", "--continue-on-collection-errors", "-W", "ignore",
               "--import-mode=importlib",
               "--rootdir", str(checkout), str(checkout / "test" / "integration")]  # fmt: skip
    if not settings.everything:
        options += ["-m", "fast"]
    if settings.expression:
        options += ["-k", settings.expression]
    before = Path.cwd()
    os.chdir(checkout)
    try:
        pytest.main(options, plugins=[_Plugin(checkout, settings, rows)])
    finally:
        os.chdir(before)
    return rows
