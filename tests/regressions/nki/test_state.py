"""State dtype, order of decay and write, splits, missing parts, repeats, in emitted kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gdsl

BF16 = np.dtype(ml_dtypes.bfloat16)

DECODE = """
use delta_rule
kernel decode:
    axes B, H, K, V
    input k: bf16[B, H, K]
    input v: bf16[B, H, V]
    input g, beta: f32[B, H]
    state S: {dtype}[B, H, K, V] = s0 inplace
    o, S = step gated_delta(k, k, v, exp(g), beta, S)
    output out: f32[B, H, V] = o
    output s0 = S
"""


def decoded(
    launch: Callable[..., Any],
    state: Any,
    k: float = 0.0,
    g: float = 0.0,
    beta: float = 0.0,
    steps: int = 1,
) -> Any:
    """Return the state after calls on v = 1; its dtype chooses the text."""
    text = DECODE.replace("{dtype}", "bf16" if state.dtype == BF16 else "f32")
    gates = {"g": np.full((1, 1), g), "beta": np.full((1, 1), beta)}
    rows = {"k": np.full((1, 1, 1), k).astype(BF16), "v": np.ones((1, 1, 1)).astype(BF16)}
    for _ in range(steps):
        state = launch(text, **rows, **gates, s0=state)["s0"]
    return state


def of(value: float, dtype: Any) -> Any:
    return np.full((1, 1, 1, 1), value).astype(dtype)


@pytest.mark.parametrize("g", [-0.001, -0.003])
def test_b21_an_f32_state_decays_by_every_token(launch: Callable[..., Any], g: float) -> None:
    """40 calls here, 1,000 in the case: 0.3678794 and 0.0497871, to the rounding of a call."""
    state = decoded(launch, of(1.0, np.float32), g=g, steps=40)
    assert state.dtype == np.float32
    assert state.item() ** 25 == pytest.approx(math.exp(1000 * g), rel=1e-4)


@pytest.mark.parametrize(
    ("stuck", "call"),
    [
        (1.0, {"g": -0.001}),
        (0.6484375, {"g": -0.003}),
        (0.25, {"k": 1.0, "g": -1e-4, "beta": 0.001}),
    ],
)
def test_b21_a_bf16_state_sticks_where_its_ulp_is_too_coarse(
    launch: Callable[..., Any], stuck: float, call: dict[str, Any]
) -> None:
    """A fixed point of one call is one of all: the declared storage, not an fp32 copy beside it."""
    state = decoded(launch, of(stuck, BF16), **call)
    assert state.dtype == BF16
    assert float(state.item()) == stuck
    assert decoded(launch, of(stuck, np.float32), **call).item() != stuck


def test_b49_decay_is_applied_and_the_state_is_stored(launch: Callable[..., Any]) -> None:
    call: dict[str, Any] = {"k": 1.0, "g": -1.0, "beta": 0.5}
    first = decoded(launch, of(0.0, np.float32), **call)
    assert first.item() == 0.5
    assert decoded(launch, first, **call).item() == pytest.approx(0.5919699, abs=2e-7)


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_b30_any_split_equals_one_call(scalar_tokens: Callable[..., Any], cut: int) -> None:
    states = [0.5, 1.25, 2.125, 3.0625]
    v = [1.0, 2.0, 3.0, 4.0]
    left = scalar_tokens(v[:cut])
    found = list(left["states"])
    if v[cut:]:
        found += list(scalar_tokens(v[cut:], s0=left["s1"].item())["states"])
    assert found == states


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_b09_a_log_decay_of_zero_is_the_plain_delta_rule(
    scalar_tokens: Callable[..., Any], zero: float
) -> None:
    """beta = 0.5, v = 1: S_T = 1 - 2^-T, and minus zero acts as zero."""
    outputs = scalar_tokens([1.0] * 7, g=zero)
    assert outputs["states"].tolist() == [1 - 2.0**-t for t in range(1, 8)]


PLAIN = """
use delta_rule
kernel plain:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input beta: f32[B, H]
    state S: f32[B, H, K, V] = s0
    o, S = step delta(q, k, v, beta, S)
    output out: f32[B, H, V] = o
    output s1 = S
"""


def random_step(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    B, H, K, V = 2, 3, 8, 4
    return {
        "q": rng.standard_normal((B, H, K)),
        "k": rng.standard_normal((B, H, K)) / 3,
        "v": rng.standard_normal((B, H, V)),
        "beta": rng.random((B, H)),
        "s0": rng.standard_normal((B, H, K, V)),
    }


def test_b09_b54_no_gate_is_a_gate_of_zero(launch: Callable[..., Any], step_text: str) -> None:
    """The rule without a decay and the rule with g = 0 are two kernels with one result."""
    arguments = random_step(54)
    plain = launch(PLAIN, **arguments)
    for name, array in launch(step_text, g=np.zeros((2, 3)), **arguments).items():
        np.testing.assert_allclose(array, plain[name], rtol=1e-6, atol=1e-6)


def test_b54_a_gate_left_out_is_its_default(launch: Callable[..., Any], step_text: str) -> None:
    text = step_text.replace("in (-inf, 0]", "in (-inf, 0] or 0.0")
    arguments = random_step(55)
    with_zeros = launch(text, g=np.zeros((2, 3)), **arguments)
    for name, array in launch(text, **arguments).items():
        assert array.tobytes() == with_zeros[name].tobytes()


def test_b62_b70_no_state_is_a_state_of_zeros_bit_for_bit(
    launch: Callable[..., Any], step_text: str
) -> None:
    text = step_text.replace("= s0", "= s0 or zeros")
    arguments = {**random_step(62), "g": -np.ones((2, 3))}
    zeros = launch(text, **{**arguments, "s0": np.zeros((2, 3, 8, 4))})
    arguments.pop("s0")
    for _ in range(2):
        for name, array in launch(text, **arguments).items():
            assert array.tobytes() == zeros[name].tobytes()


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_b62_repeats_and_cores_give_the_same_bits(launch: Callable[..., Any], target: str) -> None:
    kernel = gdsl.load("gdn_tkg")
    arguments = gdsl.random_inputs(kernel, {"B": 3, "Hv": 11, "K": 16, "V": 8}, seed=62)
    first = launch("gdn_tkg", target=target, **arguments)
    for lnc in (1, 2):
        again = launch("gdn_tkg", target=target, lnc=lnc, **arguments)
        assert {n: x.tobytes() for n, x in again.items()} == {
            n: x.tobytes() for n, x in first.items()
        }


@pytest.mark.parametrize("T", [1, 2])
def test_b70_one_row_and_few_tokens_keep_their_shape(
    launch: Callable[..., Any], tokens_text: str, T: int
) -> None:
    one = np.ones((1, T, 1, 1))
    outputs = launch(
        tokens_text, q=one, k=one, v=one, g=np.zeros((1, T, 1)), beta=np.ones((1, T, 1)),
        valid_len=np.array([T], np.int32), s0=np.zeros((1, 1, 1, 1)),
    )  # fmt: skip
    assert outputs["out"].shape == (1, T, 1, 1)
    assert outputs["s1"].shape == (1, 1, 1, 1)
    assert outputs["states"].shape == (1, T, 1, 1, 1)


def test_b44_dtypes_of_two_calls_do_not_mix(launch: Callable[..., Any]) -> None:
    """bf16, then f16 with the same shapes: 1.0 stays 1.0 (its f16 bits are 0.0078 as bf16)."""
    text = PLAIN.replace("axes B, H, K, V", "axes B, H, K, V\n    dtypes X in bf16, f16, f32")
    text = text.replace("q, k: f32", "q, k: X").replace("v: f32[B, H, V]\n", "v: X[B, H, V]\n", 1)
    for dtype in (BF16, np.dtype(np.float16), np.dtype(np.float32), BF16):
        one = np.ones((1, 1, 1)).astype(dtype)
        outputs = launch(text, q=one, k=one, v=one, beta=np.ones((1, 1)), s0=np.zeros((1, 1, 1, 1)))
        assert outputs["out"].item() == 1.0


def test_b71_scratch_is_never_read_before_it_is_written(launch: Callable[..., Any]) -> None:
    """Unwritten memory is NaN in the simulator, in SBUF, PSUM and HBM outputs alike."""
    for name, sizes in {
        "gdn_tkg": {"B": 1, "Hv": 37, "K": 16, "V": 8},
        "kda_tkg": {"B": 1, "H": 37, "K": 16, "V": 8},
        "gdn_tkg_tokens": {"B": 1, "T": 3, "Hk": 3, "G": 2, "K": 16, "V": 8},
    }.items():
        arguments = gdsl.random_inputs(gdsl.load(name), sizes, seed=71)
        for output, array in launch(name, lnc=2, **arguments).items():
            assert np.isfinite(np.asarray(array, np.float64)).all(), (name, output)


PRODUCT = """
use delta_rule
kernel product:
    axes B, H, N, K, V
    input q: f32[B, H, K]
    input k: f32[B, H, N, K]
    input v: f32[B, H, N, V]
    input g: f32[B, H]
    input beta: f32[B, H, N]
    state S: f32[B, H, K, V] = s0
    o, S = step delta_product(q, k, v, exp(g), beta, S)
    output out: f32[B, H, V] = o
    output s1 = S
"""


def test_b73_sub_steps_decay_once(launch: Callable[..., Any], step_text: str) -> None:
    """As one token of two sub-steps, and as two calls, the second with a decay of 1."""
    keys, values, betas = [[1.0, 0.0], [0.0, 1.0]], [3.0, 5.0], [1.0, 0.5]
    once = launch(
        PRODUCT, q=np.ones((1, 1, 2)), k=[[keys]], v=[[[[v] for v in values]]],
        g=[[math.log(0.5)]], beta=[[betas]], s0=np.ones((1, 1, 2, 1)),
    )  # fmt: skip
    state, out = np.ones((1, 1, 2, 1)), None
    for key, v, decay, beta in zip(keys, values, (0.5, 1.0), betas, strict=True):
        outputs = launch(
            step_text, q=np.ones((1, 1, 2)), k=[[key]], v=[[[v]]], g=[[math.log(decay)]],
            beta=[[beta]], s0=state,
        )  # fmt: skip
        state, out = outputs["s1"], outputs["out"]
    assert out is not None
    for found, result in ((once["s1"], once["out"]), (state, out)):
        np.testing.assert_allclose(found.ravel(), [3.0, 2.75], rtol=1e-6)
        assert result.item() == pytest.approx(5.75, rel=1e-6)
