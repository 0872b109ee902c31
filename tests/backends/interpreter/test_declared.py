"""`declared`: float32 arithmetic, dtypes of the text at arguments, casts, outputs and states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from backends.interpreter import RUNNER
from gdsl.errors import RunError
from gdsl.ir.kernel import Kernel
from gdsl.runner import Precision, RunOptions

BF16 = np.dtype(ml_dtypes.bfloat16)

CAST = """
kernel cast:
    axes N
    dtypes X in bf16, f16, f32
    input x: X[N]
    input y: f32[N]
    output sum_out: f32[N] = x + y
    output inner: f32[N] = bf16(x + y) * 3
    output half: f16[N] = x + y
    output narrow: X[N] = x + y
    output whole: i32[N] = i32(y)
"""

STEP = """
use delta_rule
kernel step_kernel:
    axes H, K, V
    dtypes X in bf16, f16, f32
    input q, k: X[H, K]
    input v: X[H, V]
    input g, beta: f32[H]
    state S: bf16[H, K, V] = s0
    o, S = step gated_delta(q, k, v, exp(g), beta, S)
    output out: X[H, V] = o
    output wide: f32[H, V] = o
    output s1: bf16[H, K, V] = S
"""


@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float16), np.dtype(np.float32)])
def test_rounding_happens_where_the_text_says_and_nowhere_else(
    kernel_of: Callable[[str], Kernel], dtype: Any
) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(1000).astype(dtype)
    y = (3 * rng.standard_normal(1000)).astype(np.float32)
    outputs = RUNNER.run(kernel_of(CAST), {"x": x, "y": y}, RunOptions("declared"))
    total = x.astype(np.float32) + y
    np.testing.assert_array_equal(outputs["sum_out"], total)
    np.testing.assert_array_equal(outputs["inner"], total.astype(BF16).astype(np.float32) * 3)
    np.testing.assert_array_equal(outputs["half"], total.astype(np.float16))
    np.testing.assert_array_equal(outputs["narrow"], total.astype(dtype))
    np.testing.assert_array_equal(outputs["whole"], y.astype(np.int32))
    assert {name: array.dtype for name, array in outputs.items()} == {
        "sum_out": np.float32,
        "inner": np.float32,
        "half": np.float16,
        "narrow": dtype,
        "whole": np.int32,
    }


@pytest.mark.parametrize(("precision", "dtype"), [("float64", "f8"), ("float32", "f4")])
def test_wide_precisions_round_nothing(
    kernel_of: Callable[[str], Kernel], precision: Precision, dtype: str
) -> None:
    x, y = np.linspace(-1, 1, 7), np.linspace(2, 9, 7)
    outputs = RUNNER.run(kernel_of(CAST), {"x": x, "y": y}, RunOptions(precision))
    total = x.astype(dtype) + y.astype(dtype)
    for name, right in (("sum_out", total), ("half", total), ("narrow", total)):
        assert outputs[name].dtype == np.dtype(dtype)
        np.testing.assert_array_equal(outputs[name], right)
    np.testing.assert_array_equal(outputs["inner"], total * 3)
    assert outputs["whole"].dtype == np.int32


@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float16)])
def test_a_step_computes_in_float32_and_stores_the_state_once(
    kernel_of: Callable[[str], Kernel], dtype: Any
) -> None:
    """Against the same step in float64 from the same rounded operands: float32 error, no more."""
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((3, n)).astype(dtype) for n in (8, 8, 5))
    k = (k.astype(float) / np.linalg.norm(k.astype(float), axis=1, keepdims=True)).astype(dtype)
    g, beta = -rng.random(3).astype(np.float32), rng.random(3).astype(np.float32)
    state = rng.standard_normal((3, 8, 5)).astype(BF16)
    arguments = {"q": q, "k": k, "v": v, "g": g, "beta": beta, "s0": state}
    outputs = RUNNER.run(kernel_of(STEP), arguments, RunOptions("declared"))
    S = state.astype(float) * np.exp(g.astype(float))[:, None, None]
    read = np.einsum("hk,hkv->hv", k.astype(float), S)
    S = S + k.astype(float)[:, :, None] * (beta[:, None] * (v.astype(float) - read))[:, None]
    o = np.einsum("hk,hkv->hv", q.astype(float), S)
    np.testing.assert_allclose(outputs["wide"], o, atol=2e-6)
    assert outputs["out"].dtype == dtype
    np.testing.assert_array_equal(outputs["out"], outputs["wide"].astype(dtype))
    half_ulp = 2.0**-8 * np.abs(S) + 2e-6
    assert (np.abs(outputs["s1"].astype(float) - S) <= half_ulp).all()
    assert outputs["s1"].dtype == BF16


def test_one_dtype_variable_means_one_dtype(kernel_of: Callable[[str], Kernel]) -> None:
    one = np.ones((1, 2))
    gates = {"g": np.zeros(1, np.float32), "beta": np.ones(1, np.float32)}
    arguments = {"q": one.astype(BF16), "k": one.astype(np.float16), "v": one.astype(BF16)}
    state = {"s0": np.zeros((1, 2, 2), BF16)}
    with pytest.raises(RunError) as error:
        RUNNER.run(kernel_of(STEP), {**arguments, **gates, **state}, RunOptions("declared"))
    (found,) = error.value.diagnostics
    assert found.code == "E0705"
    assert found.message == "`k` is f16, but `q` fixes `X` to bf16"


def test_an_int64_index_or_a_float_flag_is_refused(kernel_of: Callable[[str], Kernel]) -> None:
    text = """
kernel index_kernel:
    axes N
    input n: i32[N]
    output out: f32[N] = n * 2
    """
    with pytest.raises(RunError) as error:
        RUNNER.run(kernel_of(text), {"n": np.arange(3)}, RunOptions("declared"))
    assert "`n` is int64, but i32 is declared" in error.value.diagnostics[0].message
    with pytest.raises(RunError) as error:
        RUNNER.run(kernel_of(text), {"n": np.ones(3)}, RunOptions("float64"))
    assert "integers are declared" in error.value.diagnostics[0].message
    doubled = RUNNER.run(kernel_of(text), {"n": np.arange(3)}, RunOptions("float64"))
    assert doubled["out"].tolist() == [0, 2, 4]


EIGHT_BITS = """
kernel eight_bits:
    axes N, C
    input w: f8e4m3[N, C]
    input x: f32[N]
    output total: f32[C] = sum[N](x * w)
    output rounded: f32[N] = f8e4m3(x)
"""


def test_eight_bits_are_read_exactly_and_rounded_to_where_the_text_says(
    kernel_of: Callable[[str], Kernel],
) -> None:
    """All finite values of the type in one tensor; ties go to even, 248 and more to infinity."""
    bits = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3)
    w = bits[np.isfinite(bits.astype(np.float32))][None]
    x = np.array([1.0], np.float32)
    outputs = RUNNER.run(kernel_of(EIGHT_BITS), {"w": w, "x": x}, RunOptions("declared"))
    np.testing.assert_array_equal(outputs["total"], w[0].astype(np.float32))
    assert np.abs(outputs["total"]).max() == 240.0

    x = np.array([1.0625, 1.1875, 2.0**-9, 2.0**-11, 247.0, 248.0, -1e9], np.float32)
    arguments = {"w": np.zeros((7, 1), w.dtype), "x": x}
    outputs = RUNNER.run(kernel_of(EIGHT_BITS), arguments, RunOptions("declared"))
    wanted = [1.0, 1.25, 2.0**-9, 0.0, 240.0, np.inf, -np.inf]
    np.testing.assert_array_equal(outputs["rounded"], np.array(wanted, np.float32))


def test_eight_bits_are_not_taken_for_others(kernel_of: Callable[[str], Kernel]) -> None:
    arguments = {"w": np.zeros((1, 1), BF16), "x": np.zeros(1, np.float32)}
    with pytest.raises(RunError, match="`w` is bf16, but f8e4m3 is declared"):
        RUNNER.run(kernel_of(EIGHT_BITS), arguments, RunOptions("declared"))
