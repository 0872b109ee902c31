"""Committed texts of emitted kernels: what a change of the emitter does to its product.

The files are read in review and run below, so they must be importable on their own. After a change
that is meant: `python -m gdsl compile KERNEL -t TARGET -o tests/golden/KERNEL_TARGET.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from backends.simulator import RUNNER
from gdsl import api
from gdsl.ir.dtypes import Dtype
from gdsl.regimes.typed import random_arguments
from gdsl.shapes import resolve_sizes

GOLDEN = Path(__file__).parents[2] / "golden"
KERNELS = (
    "gdn_tkg",
    "gdn_tkg_grouped",
    "gdn_tkg_pool",
    "gdn_tkg_tokens",
    "kda_tkg",
    "gdn_verify",
    "gdn_block_tkg",
    "gdn_cte",
    "kda_cte_bounded",
)


@pytest.mark.parametrize("kernel", KERNELS)
def test_emitted_text_is_the_committed_one(kernel: str) -> None:
    program = api.compile(api.load(kernel), target="trn2")
    assert program.text == (GOLDEN / f"{kernel}_trn2.py").read_text()


def test_text_for_more_keys_is_the_committed_one_and_the_definition() -> None:
    """`--set key_tiles=2`; an odd number of keys, so that the second tile has one fewer."""
    definition, path = api.load("kda_tkg"), GOLDEN / "kda_tkg_key_tiles_2_trn2.py"
    program = api.compile(definition, target="trn2", settings={"key_tiles": 2})
    assert program.text == path.read_text()
    sizes = resolve_sizes(definition.kernel, (), {"B": 3, "H": 13, "K": 131, "V": 8})
    given = random_arguments(definition.kernel, sizes, 0)
    wanted = dict(api.run(definition, given))
    out = np.zeros_like(given["v"])
    result = RUNNER.simulate(path, "kda_tkg", {**given, "out": out}, lnc=2)
    for found, (name, exact) in zip(result.outputs, wanted.items(), strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5, err_msg=name)


def test_emission_does_not_depend_on_what_was_compiled_before() -> None:
    first = api.compile(api.load("gdn_tkg"), target="trn2").text
    api.compile(api.load("kda_tkg"), target="trn2")
    assert api.compile(api.load("gdn_tkg"), target="trn2").text == first


@pytest.mark.parametrize(
    ("rows", "K", "V", "lnc"), [((1, 3), 32, 16, 1), ((3, 43), 24, 40, 2), ((5, 33), 8, 8, 1)]
)
def test_committed_text_computes_the_recurrence(
    rows: tuple[int, int], K: int, V: int, lnc: int
) -> None:
    """One tile, several groups with a remainder, several tiles; the reference is plain numpy."""
    definition = api.load("gdn_tkg")
    sizes = resolve_sizes(definition.kernel, (), {"B": rows[0], "Hv": rows[1], "K": K, "V": V})
    given = random_arguments(definition.kernel, sizes, 0)
    given = {name: np.asarray(value, np.float32) for name, value in given.items()}
    result = RUNNER.simulate(GOLDEN / "gdn_tkg_trn2.py", "gdn_tkg", given, lnc=lnc)
    out, state = _gdn_step(given)
    np.testing.assert_allclose(np.asarray(result.outputs[0], np.float64), out, rtol=9e-3, atol=1e-3)
    np.testing.assert_allclose(result.outputs[1], state, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        ("gdn_verify", {"B": 2, "T": 3, "P": 4, "Hk": 3, "G": 2, "K": 16, "V": 8, "W": 4}),
        ("gdn_block_tkg", {"B": 3, "Hid": 256, "Hk": 3, "G": 2, "K": 16, "V": 8, "W": 4}),
    ],
)
@pytest.mark.parametrize("lnc", [1, 2])
def test_committed_text_of_several_sections_is_the_definition(
    kernel: str, sizes: dict[str, int], lnc: int
) -> None:
    """Rounded where the text rounds, so that states differ by the order of fp32 sums alone."""
    definition = api.load(kernel)
    given = random_arguments(definition.kernel, resolve_sizes(definition.kernel, (), sizes), 0)
    wanted = dict(api.run(definition, given))
    result = RUNNER.simulate(GOLDEN / f"{kernel}_trn2.py", kernel, given, lnc=lnc)
    for found, (name, array) in zip(result.outputs, wanted.items(), strict=True):
        got, exact = (np.asarray(a, np.float32) for a in (found, array))
        rtol = 1e-5 if array.dtype == np.float32 else 2**-7
        np.testing.assert_allclose(got, exact, rtol=rtol, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(("kernel", "heads"), [("gdn_cte", (1, 3)), ("kda_cte_bounded", (2, 1))])
@pytest.mark.parametrize("lnc", [1, 2])
def test_committed_text_of_a_prompt_is_the_definition(
    kernel: str, heads: tuple[int, int], lnc: int
) -> None:
    """Two chunks with a tail, from a state that is not zero, in fp32."""
    definition = api.load(kernel)
    sizes = {"B": 1, "Hk": heads[0], "G": heads[1], "T": 131, "K": 16, "V": 8}
    complete = resolve_sizes(definition.kernel, (), sizes)
    given = random_arguments(definition.kernel, complete, 0, Dtype.F32)
    wanted = dict(api.run(definition, given))
    result = RUNNER.simulate(GOLDEN / f"{kernel}_trn2.py", kernel, given, lnc=lnc)
    for found, (name, exact) in zip(result.outputs, wanted.items(), strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-4, err_msg=name)


def _gdn_step(given: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    x = {name: value.astype(np.float64) for name, value in given.items()}
    batch = x["a"].size // x["A_log"].size
    A, bias = np.tile(x["A_log"], batch), np.tile(x["dt_bias"], batch)
    decay = np.exp(-np.exp(A) * np.logaddexp(0, x["a"] + bias))[:, None, None]
    beta = 1 / (1 + np.exp(-x["b"]))[:, None]
    unit = {n: x[n] / np.sqrt((x[n] ** 2).sum(-1, keepdims=True) + 1e-6) for n in "qk"}
    state = decay * x["state_in"]
    delta = beta * (x["v"] - np.einsum("rk,rkv->rv", unit["k"], state))
    state = state + unit["k"][:, :, None] * delta[:, None, :]
    o = np.einsum("rk,rkv->rv", unit["q"], state) * x["q"].shape[-1] ** -0.5
    normed = o / np.sqrt((o**2).mean(-1, keepdims=True) + 1e-6) * x["norm_weight"]
    return normed * x["z"] / (1 + np.exp(-x["z"])), state
