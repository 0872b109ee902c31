"""Every built-in of the language on small numbers, against numpy written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from backends.interpreter import RUNNER
from gdsl.errors import RunError
from gdsl.ir.kernel import Kernel
from gdsl.runner import RunOptions

RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 4))
Y = RNG.standard_normal((3, 4))
ROW = RNG.standard_normal(4)


def value(kernel_of: Callable[[str], Kernel], expression: str) -> Any:
    """Evaluate an expression over x, y [A, D] and row [D]."""
    text = f"""
kernel one_expression:
    axes A, D, E
    input x, y: f32[A, D]
    input row: f32[D]
    input other: f32[E]
    param p: float = 0.5
    param n: int = 3
    param flag: bool = true
    used = x + y + row + p + n + where(flag, 1, 2) + sum[E](other)
    output out: f32[A, D] = {expression} + 0 * used
    """
    arguments = {"x": X, "y": Y, "row": ROW, "other": np.zeros(4)}
    return RUNNER.run(kernel_of(text), arguments, RunOptions("float64"))["out"]


@pytest.mark.parametrize(
    ("expression", "right"),
    [
        ("x + y * row - y / 2", X + Y * ROW - Y / 2),
        ("x ** 2", X**2),
        ("2 ** -x", 2**-X),
        ("-x ** 2", -(X**2)),
        ("sum[D](x * y)", (X * Y).sum(1, keepdims=True) + 0 * X),
        ("sum[A](x)", X.sum(0) + 0 * X),
        ("sum[A, D](x * row)", (X * ROW).sum() + 0 * X),
        ("sum[D](row * row)", (ROW * ROW).sum() + 0 * X),
        ("mean[D](x)", X.mean(1, keepdims=True) + 0 * X),
        ("max[D](x)", X.max(1, keepdims=True) + 0 * X),
        ("min[A](x)", X.min(0) + 0 * X),
        ("min(x, y)", np.minimum(X, Y)),
        ("max(x, 0)", np.maximum(X, 0)),
        ("where(x > y, x, row)", np.where(X > Y, X, ROW)),
        ("where(x <= 0, 1, 2)", np.where(X <= 0, 1, 2)),
        ("abs(x)", abs(X)),
        ("exp(x)", np.exp(X)),
        ("log(x * x)", np.log(X * X)),
        ("tanh(x)", np.tanh(X)),
        ("sqrt(x * x)", abs(X)),
        ("rsqrt(x * x)", 1 / abs(X)),
        ("index[D]()", np.arange(4) + 0 * X),
        ("index[A]() * 10 + index[D]()", np.arange(3)[:, None] * 10 + np.arange(4) + 0.0),
        ("D ** -0.5", 0.5 + 0 * X),
        ("p * n + x", 1.5 + X),
        ("rename[E -> D](other + index[E]())", np.arange(4) + 0 * X),
        ("bf16(x)", X),
    ],
)
def test_expression(kernel_of: Callable[[str], Kernel], expression: str, right: Any) -> None:
    np.testing.assert_allclose(value(kernel_of, expression), right, rtol=1e-14, atol=1e-14)


def test_rename_needs_one_size(kernel_of: Callable[[str], Kernel]) -> None:
    text = """
kernel renamed:
    axes A, D
    input x: f32[A]
    input w: f32[D]
    output out: f32[D] = rename[A -> D](x) + w
    """
    with pytest.raises(RunError, match="needs axes of one size, but A is 3 and D is 4"):
        RUNNER.run(kernel_of(text), {"x": np.ones(3), "w": np.ones(4)}, RunOptions("float64"))


def test_head_number_of_a_composite_axis(kernel_of: Callable[[str], Kernel]) -> None:
    text = """
kernel heads:
    axes Hk, G, Hv = (Hk G)
    input x: f32[Hv]
    input k: f32[Hk]
    output out: f32[Hv] = x + 0 * k + index[Hk]() * G + index[G]()
    """
    arguments = {"x": np.zeros(6), "k": np.zeros(2)}
    out = RUNNER.run(kernel_of(text), arguments, RunOptions("float64"))["out"]
    assert out.tolist() == [0, 1, 2, 3, 4, 5]


def test_tensor_layouts_are_transposed_by_name(kernel_of: Callable[[str], Kernel]) -> None:
    """The same state as [K, V], [V, K] and with a product and a unit dimension."""
    text = """
use delta_rule
kernel layout:
    axes B, H, K, V
    input k: f32[B, H, K]
    input v: f32[H, B, V]
    state S: f32[{dims}] = s0
    o, S = step gated_delta(k, k, v, 0.5, 0.25, S)
    output out: f32[B, H, V] = o
    output s1: f32[{dims}] = S
    """
    rng = np.random.default_rng(6)
    k, v, s0 = (rng.standard_normal(s) for s in ((2, 3, 4), (3, 2, 5), (2, 3, 4, 5)))
    right = None
    layouts: tuple[tuple[str, Callable[[Any], Any], Callable[[Any], Any]], ...] = (
        ("B, H, K, V", lambda s: s, lambda s: s),
        ("B, H, V, K", lambda s: s.swapaxes(2, 3), lambda s: s.swapaxes(2, 3)),
        ("(B H), 1, K, V", lambda s: s.reshape(6, 1, 4, 5), lambda s: s.reshape(2, 3, 4, 5)),
        (
            "(V K), H, B",
            lambda s: s.transpose(3, 2, 1, 0).reshape(20, 3, 2),
            lambda s: s.reshape(5, 4, 3, 2).transpose(3, 2, 1, 0),
        ),
    )
    for dims, there, back in layouts:
        kernel = kernel_of(text.replace("{dims}", dims))
        outputs = RUNNER.run(kernel, {"k": k, "v": v, "s0": there(s0)}, RunOptions("float64"))
        got = (outputs["out"], back(outputs["s1"]))
        right = right or got
        np.testing.assert_allclose(got[0], right[0], rtol=1e-13)
        np.testing.assert_allclose(got[1], right[1], rtol=1e-13)


def test_packed_fields_in_order(kernel_of: Callable[[str], Kernel]) -> None:
    text = """
kernel packed:
    axes A, Hk, G, K, V, C = q:(Hk K) | one:1 | v:(Hk G V)
    input x: f32[A, C]
    input like_q: f32[Hk, K]
    input like_v: f32[Hk, G, V]
    q, one, v = unpack[C](x)
    output q_out: f32[A, Hk, K] = q + 0 * like_q
    output one_out: f32[A] = one
    output v_out: f32[A, V, (Hk G)] = v + 0 * like_v
    """
    x = np.arange(2.0 * 23).reshape(2, 23)
    arguments = {"x": x, "like_q": np.zeros((2, 5)), "like_v": np.zeros((2, 3, 2))}
    outputs = RUNNER.run(kernel_of(text), arguments, RunOptions("float64"))
    np.testing.assert_array_equal(outputs["q_out"], x[:, :10].reshape(2, 2, 5))
    np.testing.assert_array_equal(outputs["one_out"], x[:, 10])
    right = x[:, 11:].reshape(2, 2, 3, 2).transpose(0, 3, 1, 2).reshape(2, 2, 6)
    np.testing.assert_array_equal(outputs["v_out"], right)
