"""A flag selects zeros for rows that start anew, also for states in no pool (cases B28, B71)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from gdsl.errors import CompileError

TEXT = """
use delta_rule
kernel flagged:
    axes {axes}
    input q, k: f32[B, {T}H, K]
    input v: f32[B, {T}H, V]
    input g: f32[B, {T}H] in (-inf, 0]
    input beta: f32[B, {T}H] in [0, 1]
    input keep: bool[{flag}]
    assume sum[K](k * k) <= 1.01
    state S: f32[{state}] = s0 {start}unless keep
    o, S = {run} gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, {T}H, V] = o
    output s0 = S
"""
SIZES = {"B": 3, "H": 2, "K": 8, "V": 12}


def text(state: str = "B, H, K, V", flag: str = "B", tokens: bool = False, start: str = "") -> str:
    return TEXT.format(
        axes="B, T <= 16, H, K, V" if tokens else "B, H, K, V",
        T="T, " if tokens else "",
        flag=flag,
        state=state,
        start=f"inplace {start}",
        run="scan[T]" if tokens else "step",
    )


def arguments(definition: gdsl.Definition, sizes: dict[str, int]) -> dict[str, NDArray[Any]]:
    """Row 0 starts anew and finds NaN, the others carry on."""
    given = dict(gdsl.random_inputs(definition, sizes, seed=1))
    given["keep"] = np.arange(sizes["B"]) % 3 != 0
    given["s0"][::3] = np.nan
    return given


def agree(given: dict[str, Any], definition: gdsl.Definition, **how: Any) -> None:
    right = gdsl.run(definition, given, precision="float64")
    got = gdsl.run(definition, given, backend="simulator", **how)
    for name, array in right.items():
        assert np.isfinite(array).all()
        np.testing.assert_allclose(got[name], array, atol=1e-5)


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("state", ["B, H, K, V", "B, H, V, K"])
@pytest.mark.parametrize("B", [3, 70])
def test_b28_one_token(state: str, lnc: int, B: int) -> None:
    definition = gdsl.loads(text(state))
    agree(arguments(definition, {**SIZES, "B": B}), definition, lnc=lnc)


@pytest.mark.parametrize("given", [True, False])
def test_b28_a_state_that_may_be_missing(given: bool) -> None:
    definition = gdsl.loads(text(start="or zeros "))
    arrays = arguments(definition, SIZES)
    if not given:
        del arrays["s0"]
    agree(arrays, definition)


@pytest.mark.parametrize("lnc", [1, 2])
def test_b28_several_tokens(lnc: int) -> None:
    definition = gdsl.loads(text(tokens=True))
    arrays = arguments(definition, {**SIZES, "T": 4})
    agree(arrays, definition, lnc=lnc, settings={"form": "recurrent"})


@pytest.mark.parametrize("tokens", [False, True])
def test_the_batch_may_be_declared_anywhere(tokens: bool) -> None:
    """The flag says which axis it is over, whatever stands first in the text."""
    source = text(tokens=tokens).replace("axes B, ", "axes ").replace("K, V\n", "K, V, B\n", 1)
    definition = gdsl.loads(source)
    sizes = {**SIZES, "T": 4} if tokens else SIZES
    agree(
        arguments(definition, sizes), definition, settings={"form": "recurrent"} if tokens else {}
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (text(flag="H"), r"the flag `keep` is over \[H\]"),
        (text("H, B, K, V"), r"not the outermost axis of `s0`"),
    ],
)
def test_what_is_not_emitted_is_refused(source: str, message: str) -> None:
    """An ignored flag would be a wrong answer."""
    with pytest.raises(CompileError, match=message):
        _ = gdsl.compile(gdsl.loads(source)).text
