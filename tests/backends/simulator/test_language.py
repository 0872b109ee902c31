"""Functions of `nki.language` against numpy, run from kernel text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backends.simulator.faults import Fault
from backends.simulator.run import SimResult

Run = Callable[..., SimResult]
F = np.float32
RNG = np.random.default_rng(7)
X = RNG.standard_normal((8, 6)).astype(F)
Y = (RNG.standard_normal((8, 6)) + 3).astype(F)


def expression(text: str) -> str:
    """A kernel that returns one expression of tiles x and y."""
    return f"""
@nki.jit
def kernel(a, b):
    x, y = nl.load(a), nl.load(b)
    t = {text}
    if nl.is_psum(t.buffer):
        t = nl.copy(t)
    out = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm)
    nl.store(out, t)
    return out
"""


def erf(x: NDArray[Any]) -> NDArray[Any]:
    from math import erf as scalar

    return np.asarray(np.vectorize(scalar)(x))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nl.add(x, y)", X + Y),
        ("nl.subtract(x, 2.0)", X - 2),
        ("nl.subtract(2.0, x)", 2 - X),
        ("nl.multiply(x, y)", X * Y),
        ("nl.maximum(x, 0.0)", np.maximum(X, 0)),
        ("nl.minimum(x, y)", np.minimum(X, Y)),
        ("nl.greater(x, 0.0)", (X > 0).astype(F)),
        ("nl.power(y, y)", Y**Y),
        ("nl.logical_and(x, nl.greater(x, 0.0))", (X > 0).astype(F)),
        ("nl.abs(x)", np.abs(X)),
        ("nl.negative(x)", -X),
        ("nl.square(x)", X * X),
        ("nl.exp(x)", np.exp(X)),
        ("nl.log(y)", np.log(Y)),
        ("nl.sqrt(y)", np.sqrt(Y)),
        ("nl.rsqrt(y)", 1 / np.sqrt(Y)),
        ("nl.reciprocal(y)", 1 / Y),
        ("nl.sigmoid(x)", 1 / (1 + np.exp(-X))),
        ("nl.silu(x)", X / (1 + np.exp(-X))),
        ("nl.softplus(x)", np.log1p(np.exp(X))),
        ("nl.tanh(x)", np.tanh(X)),
        ("nl.relu(x)", np.maximum(X, 0)),
        ("nl.gelu(x)", 0.5 * X * (1 + erf(X / np.sqrt(2)))),
        ("nl.sign(x)", np.sign(X)),
        ("nl.sin(nl.multiply(x, 20.0))", np.sin(20 * X)),
        ("nl.cos(nl.multiply(x, 20.0))", np.cos(20 * X)),
        ("nl.tan(x)", np.tan(X)),
        ("nl.floor(nl.multiply(x, 3.0))", np.floor(3 * X)),
        ("nl.ceil(nl.multiply(x, 3.0))", np.ceil(3 * X)),
        ("nl.trunc(nl.multiply(x, 3.0))", np.trunc(3 * X)),
        ("nl.sum(x, axis=1)", X.sum(1, keepdims=True)),
        ("nl.sum(x.reshape((8, 3, 2)), axis=2)", X.reshape(8, 3, 2).sum(2)),
        ("nl.sum(x.reshape((8, 3, 2)), axis=(1, 2), keepdims=True)",
         X.sum(1, keepdims=True)[:, :, None]),
        ("nl.max(x, axis=-1)", X.max(1, keepdims=True)),
        ("nl.min(x, axis=[1])", X.min(1, keepdims=True)),
        ("nl.prod(x, axis=1)", X.prod(1, keepdims=True)),
        ("nl.mean(x, axis=1)", X.mean(1, keepdims=True)),
        ("nl.var(x, axis=1)", X.var(1, keepdims=True)),
        ("nl.all(nl.greater(y, 1.0), axis=1)", (Y > 1).all(1, keepdims=True).astype(F)),
        ("nl.softmax(x)", np.exp(X) / np.exp(X).sum(1, keepdims=True)),
        ("nl.rms_norm(x, y, axis=1, n=6)",
         X * Y / np.sqrt((X * X).mean(1, keepdims=True) + 1e-6)),
        ("nl.where(nl.greater(x, 0.0), x, y)", np.where(X > 0, X, Y)),
        ("nl.transpose(x)", X.T),
        ("nl.matmul(x, y, transpose_x=True)", X.T @ Y),
        ("nl.broadcast_to(x[:, 0:1], (8, 5))", np.repeat(X[:, 0:1], 5, 1)),
        ("nl.broadcast_to(x[0:1], (8, 6))", np.repeat(X[0:1], 8, 0)),
        ("nl.expand_dims(x, 1)", X[:, None]),
        ("nl.copy(x)", X),
        ("nl.zeros_like(x)", 0 * X),
        ("nl.full((8, 2), 1.5, nl.float32)", np.full((8, 2), 1.5)),
        ("nl.ones((8, 2), dtype=nl.int32)", np.ones((8, 2))),
        ("nl.load(nl.full((3, 5), 2.0, nl.float32, buffer=nl.hbm))", np.full((3, 5), 2)),
        ("nl.load_transpose2d(a)", X.T),
        ("nl.shared_identity_matrix(4, dtype=nl.float32)", np.eye(4)),
        ("nl.load(nl.shared_constant(numpy.arange(6.0).reshape(2, 3).astype('float32')))",
         np.arange(6).reshape(2, 3)),
        ("nl.gather_flattened(x, nl.full((8, 2), 3, nl.uint32))", np.repeat(X[:, 3:4], 2, 1)),
    ],
)  # fmt: skip
def test_function(run: Run, text: str, expected: NDArray[Any]) -> None:
    found = run("import numpy\n" + expression(text), X, Y).outputs[0]
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nl.add(x, y[:, 0:1])", "S214"),
        ("nl.add(1.0, 2.0)", "S104"),
        ("nl.divide(x, y)", "S109"),
        ("nl.rand((8, 6), nl.float32)", "S109"),
        ("nl.matmul(x, y)", "S109"),
        ("nl.sum(x, axis=0)", "S214"),
        ("nl.softmax(x.reshape((8, 3, 2)))", "S109"),
        ("nl.bypass(x)", "S102"),
        ("nl.arange(8)", "S107"),
        ("nl.broadcast_to(x, (8, 7))", "S214"),
        ("nl.copy(x[:, nl.ds(nisa.register_alloc(0), 2)])", "S110"),
        ("nl.program_id(1)", "S106"),
        ("nl.zeros((8, 2), dtype=nl.float32, buffer='sbuf')", "S202"),
        ("nl.zeros((8, 2), dtype='float64')", "S202"),
    ],
)
def test_function_refuses(run: Run, text: str, code: str) -> None:
    with pytest.raises(Fault) as caught:
        run(expression(text), X, Y)
    assert caught.value.code == code


@pytest.mark.parametrize(("target", "usable"), [("trn2", 212984), ("trn3", 245752)])
def test_tile_sizes_are_those_of_the_target(run: Run, target: str, usable: int) -> None:
    text = """
@nki.jit
def kernel(x):
    assert nl.tile_size.sbuf_fmax_bytes == WANTED and nl.tile_size.pmax == 128, "sizes"
    assert nl.tile_size.psum_bank_fmax == 512 and nl.tile_size.psum_num_banks == 8, "psum"
    return x
"""
    run(text.replace("WANTED", str(usable)), X, target=target)


def test_ranges_are_python_ranges_and_prints_go_to_stderr(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
@nki.jit
def kernel(x):
    for f in (nl.affine_range, nl.sequential_range, nl.static_range):
        assert list(f(1, 5, 2)) == [1, 3], "range"
    nl.device_print("tile", nl.load(x))
    return x
"""
    run(text, np.full((1, 2), 1.5, F))
    captured = capsys.readouterr()
    assert "tile" in captured.err
    assert "1.5" in captured.err
    assert captured.out == ""
