"""How a test compares an emitted convolution with the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from gdsl.api import Program

Arrays = dict[str, NDArray[Any]]


@cache
def program_of(text: str, target: str) -> Program:
    definition = gdsl.loads(text) if "\n" in text else gdsl.load(text)
    return gdsl.compile(definition, target=target)


@pytest.fixture
def both() -> Callable[..., tuple[Arrays, Arrays]]:
    """Return the interpreter's outputs and the simulated kernel's."""

    def call(
        text: str, arrays: Arrays, *, target: str = "trn2", lnc: int = 1
    ) -> tuple[Arrays, Arrays]:
        definition = gdsl.loads(text) if "\n" in text else gdsl.load(text)
        wanted = {n: np.asarray(a) for n, a in dict(gdsl.run(definition, arrays)).items()}
        found = dict(program_of(text, target).run(arrays, lnc=lnc))
        return wanted, {name: np.asarray(array) for name, array in found.items()}

    return call


@pytest.fixture
def arrays_of() -> Callable[..., Arrays]:
    """Return Gaussian arguments of a convolution: x, weight, and what else is asked for."""

    def call(
        batch: int,
        channels: int,
        tokens: int,
        taps: int,
        *,
        columns: int | None = None,
        bias: bool = False,
        lengths: tuple[int, ...] | None = None,
        dtype: Any = np.float32,
    ) -> Arrays:
        rng = np.random.default_rng([batch, channels, tokens, taps])
        arrays = {
            "x": rng.normal(size=(batch, channels, tokens)).astype(dtype),
            "weight": rng.normal(size=(channels, taps)).astype(np.float32),
        }
        if columns is not None:
            arrays["conv_state"] = rng.normal(size=(batch, channels, columns)).astype(dtype)
        if bias:
            arrays["bias"] = rng.normal(size=channels).astype(np.float32)
        if lengths is not None:
            arrays["valid_len"] = np.array(lengths, np.int32)
        return arrays

    return call
