"""How a regression test runs a text: `run(text, arrays...) -> outputs by name`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from backends.interpreter import RUNNER
from gdsl.ir.kernel import Kernel
from gdsl.runner import RunOptions

Run = Callable[..., dict[str, NDArray[Any]]]


@cache
def kernel_of(text: str) -> Kernel:
    definition = gdsl.loads(text) if "\n" in text else gdsl.load(text)
    return definition.kernel


@pytest.fixture
def kernel() -> Callable[[str], Kernel]:
    """Return the typed kernel of a text. Raises CompileError."""
    return kernel_of


@pytest.fixture
def run() -> Run:
    """Run the kernel of a text (or a library kernel) in the interpreter.

    Lists become float64 arrays.
    """

    def call(
        text: str,
        precision: Literal["float64", "float32", "declared"] = "float64",
        **arguments: Any,
    ) -> dict[str, NDArray[Any]]:
        arrays = {
            name: np.array(value, float) if isinstance(value, list) else value
            for name, value in arguments.items()
        }
        return RUNNER.run(kernel_of(text), arrays, RunOptions(precision))

    return call


SCAN = """
use delta_rule
kernel recurrence:
    axes B, Hk, G, Hv = (Hk G), T, K, V
    input q, k: f32[B, T, Hk, K]
    input v: f32[B, T, Hv, V]
    input g: f32[B, T, Hv] in (-inf, 0]
    input beta: f32[B, T, Hv]
    state S: f32[B, Hv, K, V] = s0 or zeros
    o, S = scan[T] gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, T, Hv, V] = o
    output s1: f32[B, Hv, K, V] = S
"""


@pytest.fixture
def scan_text() -> str:
    """Return gated delta rule over T tokens, unit scale: the REF of the case list."""
    return SCAN


@pytest.fixture
def scalar(run: Run) -> Callable[..., dict[str, NDArray[Any]]]:
    """Run REF with K = V = 1 and k = q = 1: `scalar(v, g, beta, s0=...)`, one number a token."""

    def call(
        v: list[float], g: Any, beta: Any, s0: float = 0.0, **options: Any
    ) -> dict[str, NDArray[Any]]:
        T = len(v)
        ones = np.ones((1, T, 1, 1))
        outputs = run(
            SCAN,
            q=ones,
            k=ones,
            v=np.reshape(v, (1, T, 1, 1)).astype(float),
            g=np.broadcast_to(np.asarray(g, float), T).reshape(1, T, 1),
            beta=np.broadcast_to(np.asarray(beta, float), T).reshape(1, T, 1),
            s0=np.full((1, 1, 1, 1), s0),
            **options,
        )
        return {name: array.ravel() for name, array in outputs.items()}

    return call
