"""How a test compares an emitted block with the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from gdsl.api import Program
from gdsl.pipeline import Definition
from gdsl.regimes.typed import random_arguments
from gdsl.shapes import resolve_sizes

Arrays = dict[str, NDArray[Any]]


@cache
def definition_of(text: str) -> Definition:
    return gdsl.loads(text) if "\n" in text else gdsl.load(text)


@cache
def program_of(text: str, target: str) -> Program:
    return gdsl.compile(definition_of(text), target=target)


@pytest.fixture
def agree() -> Callable[..., tuple[Arrays, Arrays]]:
    """Run a text (or a library kernel) both ways at some sizes and compare every output.

    The interpreter rounds where the text does, so that only the order of fp32 sums differs: `rtol`
    of the largest value of an output, with one unit of the dtype it is stored in.
    """

    def call(
        text: str,
        sizes: Mapping[str, int],
        *,
        target: str = "trn2",
        lnc: int = 1,
        seed: int = 0,
        rtol: float = 1e-5,
        change: Callable[[Arrays], None] = lambda _: None,
    ) -> tuple[Arrays, Arrays]:
        kernel = definition_of(text).kernel
        arrays = dict(random_arguments(kernel, resolve_sizes(kernel, (), dict(sizes)), seed))
        change(arrays)
        given = {name: array.copy() for name, array in arrays.items()}
        wanted = {n: np.asarray(a) for n, a in dict(gdsl.run(definition_of(text), arrays)).items()}
        found = {
            name: np.asarray(array)
            for name, array in program_of(text, target).run(given, lnc=lnc).items()
        }
        assert wanted.keys() == found.keys()
        for name, expected in wanted.items():
            _close(name, found[name], expected, rtol)
        return wanted, found

    return call


def _close(name: str, found: NDArray[Any], wanted: NDArray[Any], rtol: float) -> None:
    assert found.dtype == wanted.dtype, name
    got, expected = found.astype(np.float64), wanted.astype(np.float64)
    scale = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    unit = 2.0**-7 if found.dtype.itemsize == 2 else 0.0
    np.testing.assert_allclose(got, expected, rtol=unit, atol=rtol * scale, err_msg=name)
