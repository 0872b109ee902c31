"""How a regression test runs an emitted kernel: `launch(text, arrays...) -> outputs by name`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from gdsl.api import Program

Outputs = dict[str, NDArray[Any]]
Launch = Callable[..., Outputs]


@cache
def program_of(text: str, target: str) -> Program:
    definition = gdsl.loads(text) if "\n" in text else gdsl.load(text)
    return gdsl.compile(definition, target=target)


def _narrow(value: Any) -> Any:
    """The array as the machine takes it; numbers are trace-time constants and stay."""
    if isinstance(value, int | float | str):
        return value
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


@pytest.fixture
def launch() -> Launch:
    """Compile a text (or a library kernel's name) to NKI and run that in the simulator.

    Lists and float64 arrays become float32, which is what the machine has.
    """

    def call(
        text: str, *, target: str = "trn2", lnc: int = 1, **arguments: Any
    ) -> dict[str, NDArray[Any]]:
        narrow = {name: _narrow(value) for name, value in arguments.items()}
        return dict(program_of(text, target).run(narrow, lnc=lnc))

    return call


@pytest.fixture
def both() -> Callable[..., tuple[Outputs, Outputs]]:
    """Run a text on random inputs: (what its emitted kernel gives, what it means in float64)."""

    def call(
        text: str, sizes: dict[str, int], settings: dict[str, Any] | None = None
    ) -> tuple[Outputs, Outputs]:
        definition = gdsl.loads(text)
        given = gdsl.random_inputs(definition, sizes, 0)
        right = gdsl.run(definition, given, precision="float64")
        got = gdsl.run(definition, given, backend="simulator", settings=settings)
        return dict(got), dict(right)

    return call


STEP = """
use delta_rule
kernel step_once:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input g: f32[B, H] in (-inf, 0]
    input beta: f32[B, H]
    state S: f32[B, H, K, V] = s0
    o, S = step gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, H, V] = o
    output s1 = S
"""

TOKENS = """
use delta_rule
kernel tokens:
    axes B, T, H, K, V
    input q, k: f32[B, T, H, K]
    input v: f32[B, T, H, V]
    input g: f32[B, T, H] in (-inf, 0]
    input beta: f32[B, T, H]
    input valid_len: i32[B]
    state S: f32[B, H, K, V] = s0
    o, S, Ss = scan[T < valid_len every 1] gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, T, H, V] = o
    output s1 = S
    output states: f32[B, T, H, K, V] = Ss
"""


@pytest.fixture
def step_text() -> str:
    """Return one token of the gated delta rule, unit scale, gates as they enter the rule."""
    return STEP


@pytest.fixture
def tokens_text() -> str:
    """Return the rule over T tokens with lengths, and the state after each token."""
    return TOKENS


@pytest.fixture
def scalar_tokens(launch: Launch) -> Callable[..., dict[str, NDArray[Any]]]:
    """Run TOKENS with K = V = 1, k = q = 1, beta = 0.5: `scalar_tokens(v, g=0, s0=0)`."""

    def call(v: list[float], g: float = 0.0, s0: float = 0.0) -> dict[str, NDArray[Any]]:
        T = len(v)
        one = np.ones((1, T, 1, 1))
        outputs = launch(
            TOKENS,
            q=one, k=one, v=np.reshape(v, (1, T, 1, 1)), g=np.full((1, T, 1), g),
            beta=np.full((1, T, 1), 0.5), valid_len=np.array([T], np.int32),
            s0=np.full((1, 1, 1, 1), s0),
        )  # fmt: skip
        return {name: array.ravel() for name, array in outputs.items()}

    return call
