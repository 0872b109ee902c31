"""Tensors are put together from their parts as the language takes them apart."""

from typing import Any

import numpy as np

import gdsl
from gdsl import registry
from gdsl.ir.kernel import Let
from gdsl.ir.traverse import inline
from gdsl.regimes.parts import Part, assemble, elementwise_parts, input_parts
from gdsl.runner import RunOptions

TEXT = """\
kernel fields:
    axes B, Hk, G, K, V, P = q:K | k:K | v:(G V)
    input x: f32[B, (Hk P)]
    input w: f32[K]
    input u: f32[V]
    param Hk: int
    q, k, v = unpack[P](x)
    output q_out: f32[B, Hk, K] = q * w
    output k_out: f32[B, Hk, K] = k * w
    output v_out: f32[B, Hk, G, V] = v * u
"""
SIZES = {"B": 2, "Hk": 3, "G": 2, "K": 4, "V": 5}


def test_assembling_is_the_inverse_of_unpack() -> None:
    kernel = gdsl.loads(TEXT).kernel
    item = kernel.inputs[0]
    parts = input_parts(item)
    assert [part.fields for part in parts] == [("q",), ("k",), ("v",)]
    assert parts[2].axes == ("B", "Hk", "G", "V")
    rng = np.random.default_rng(0)
    values = {p: rng.standard_normal([SIZES[axis] for axis in p.axes]) for p in parts}
    x = assemble("x", item.dims, values, SIZES)
    assert x.shape == (2, 3 * (4 + 4 + 2 * 5))
    arguments: dict[str, Any] = {"x": x, "w": np.ones(4), "u": np.ones(5), "Hk": 3}
    outputs = registry.interpreter().run(kernel, arguments, RunOptions("float64"))
    for part, name in zip(parts, ("q_out", "k_out", "v_out"), strict=True):
        np.testing.assert_array_equal(outputs[name], values[part])


def test_a_field_is_reached_through_unpack_and_not_its_neighbours() -> None:
    kernel = gdsl.loads(TEXT).kernel
    lets = {s.target: s.value for s in kernel.body if isinstance(s, Let)}
    k_out = inline(kernel.outputs[1].value, lets)
    assert elementwise_parts(kernel, k_out) == (
        Part("x", ("k",), ("B", "Hk", "K")),
        Part("w", (), ("K",)),
    )


def test_lengths_of_no_token_are_zero() -> None:
    definition = gdsl.load("kda_cte")
    given = gdsl.random_inputs(definition, "B=2,Hk=1,G=1,T=0,K=8,V=8", seed=1)
    assert given["valid_len"].tolist() == [0, 0]
    assert gdsl.run(definition, given)["out"].shape == (2, 1, 0, 8)
