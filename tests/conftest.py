"""Fixtures for all tests. Nothing can be imported from `tests`, so what is shared is a fixture."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from attrs import frozen

# The threads of a BLAS spin on a small machine; pytest imports this file before any of ours.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

ROOT = Path(__file__).parents[1]
ADD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def add(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=y)
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
    nisa.dma_copy(dst=out, src=a)
    return out
"""


@frozen
class Finished:
    """What a command line left behind."""

    code: int
    out: str
    err: str


Cli = Callable[..., Finished]


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def foreign_kernel() -> str:
    """NKI source that is not ours: `add(x, y)` of two tensors that fit one tile."""
    return ADD


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command line in this process: `cli("check", "gdn_tkg")`."""
    from gdsl.cli.main import main

    for name in ("GDSL_DEBUG", "NEURON_PLATFORM_TARGET_OVERRIDE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Finished:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 2
        captured = capsys.readouterr()
        return Finished(code, captured.out, captured.err)

    return run


@pytest.fixture
def process() -> Cli:
    """Run Python in a process of its own that sees this checkout: `process("-m", "gdsl", ...)`."""

    def run(
        *arguments: str,
        input: str | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Finished:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
        done = subprocess.run(
            [sys.executable, *arguments],
            input=input,
            cwd=cwd or ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    return run
